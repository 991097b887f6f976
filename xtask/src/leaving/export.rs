//! Writing everything: from one snapshot, row by row, under a temporary name that is changed when the disk has all of it.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::pin::pin;

use anyhow::{Context, Result, anyhow};
use futures_util::TryStreamExt;
use memory::store::audit::{self, Act};
use memory::store::leaving::TableShape;
use memory::store::{Db, Snapshot};
use sha2::{Digest, Sha256};

use super::manifest::Manifest;
use crate::files;
use crate::output::{HintExt, Step, hinted};

/// What was written.
#[derive(Debug)]
pub struct Exported {
    pub path: PathBuf,
    pub rows: i64,
    pub tables: usize,
    pub bytes: u64,
}

/// Exports into a file, or into a folder where the path is one or has no ending.
pub async fn export(db: &Db, path: &Path, step: &Step) -> Result<Exported> {
    let path = std::path::absolute(path).context("the working folder is gone")?;
    let kind = Kind::of(&path);
    check_is_free(&path, kind)?;
    let unfinished = unfinished_beside(&path)?;
    files::remove(&unfinished)?;
    // First, so that the export holds it too: everything leaves, and the log says so.
    let act = Act { actor: "operator", action: "exported", subject: None, details: serde_json::json!({}) };
    audit::note(db, act).await.context("cannot note the export").hint("run `cargo xtask doctor`")?;
    let written = write(db, &unfinished, kind, step).await;
    let put = written.and_then(|exported| {
        if kind == Kind::Folder && path.is_dir() {
            // An empty one, or it would have been refused.
            std::fs::remove_dir(&path).with_context(|| format!("cannot replace `{}`", path.display()))?;
        }
        std::fs::rename(&unfinished, &path).with_context(|| format!("cannot name `{}`", path.display()))?;
        files::sync_folder(path.parent().unwrap_or(&path))?;
        Ok(Exported { path: path.clone(), ..exported })
    });
    if put.is_err() {
        // The first failure is the one to tell.
        drop(files::remove(&unfinished));
    }
    put
}

/// Fails where an export could not be put, before anything is done for it.
pub fn check_place(path: &Path) -> Result<()> {
    let path = std::path::absolute(path).context("the working folder is gone")?;
    check_is_free(&path, Kind::of(&path))?;
    unfinished_beside(&path).map(drop)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    File,
    Folder,
}

impl Kind {
    fn of(path: &Path) -> Self {
        if path.is_dir() || path.extension().is_none() { Self::Folder } else { Self::File }
    }
}

fn check_is_free(path: &Path, kind: Kind) -> Result<()> {
    let is_free = match kind {
        Kind::File => !path.exists(),
        Kind::Folder => !path.exists() || std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none()),
    };
    if is_free {
        return Ok(());
    }
    Err(hinted(anyhow!("`{}` is there already, and not empty", path.display()), "name another file or folder"))
}

fn unfinished_beside(path: &Path) -> Result<PathBuf> {
    let name = path.file_name().with_context(|| format!("`{}` names no file", path.display()))?.to_string_lossy();
    let above = path.parent().context("the root is no place for an export")?;
    if !above.is_dir() {
        let error = anyhow!("there is no folder `{}`", above.display());
        return Err(hinted(error, "make it, or name another file or folder"));
    }
    Ok(above.join(format!(".tmp-{}-{name}", std::process::id())))
}

async fn write(db: &Db, path: &Path, kind: Kind, step: &Step) -> Result<Exported> {
    let mut snapshot = Snapshot::take(db).await.context("cannot see the journal as it is now")?;
    let schema_version = snapshot.schema_version().await?.context("the database has no schema")?;
    let shapes = snapshot.shapes().await.context("cannot tell what the tables look like")?;
    let sums = snapshot.sums().await.context("cannot count what is in the journal")?;
    let mut manifest = Manifest::new(schema_version, shapes.clone(), &sums)?;
    let mut output = Output::create(path, kind, &manifest).map_err(|error| told(error, path))?;
    let mut rows = 0;
    for (shape, table) in shapes.iter().zip(&mut manifest.tables) {
        step.say(format!(
            "Exporting {} ({rows} of {} rows)",
            shape.table,
            sums.iter().map(|sum| sum.rows).sum::<i64>()
        ));
        output.begin(shape).map_err(|error| told(error, path))?;
        let mut sha256 = Sha256::new();
        let mut lines = pin!(snapshot.lines(shape));
        while let Some(line) = lines.try_next().await.with_context(|| format!("cannot read {}", shape.table))? {
            sha256.update(line.as_bytes());
            sha256.update(b"\n");
            output.line(shape, &line).map_err(|error| told(error, path))?;
            rows += 1;
        }
        table.sha256 = files::hex(&sha256.finalize());
    }
    let bytes = output.finish(&manifest).map_err(|error| told(error, path))?;
    Ok(Exported { path: path.to_owned(), rows, tables: shapes.len(), bytes })
}

/// Where lines go.
struct Output {
    kind: Kind,
    path: PathBuf,
    file: BufWriter<File>,
    /// Of files that are done.
    bytes: u64,
}

impl Output {
    fn create(path: &Path, kind: Kind, manifest: &Manifest) -> io::Result<Self> {
        let path = path.to_owned();
        match kind {
            Kind::File => {
                let mut file = BufWriter::new(files::create_private(&path)?);
                writeln!(file, "{}", serde_json::to_string(manifest)?)?;
                Ok(Self { kind, path, file, bytes: 0 })
            }
            Kind::Folder => {
                files::create_private_folder(&path).map_err(io::Error::other)?;
                let file = BufWriter::new(files::create_private(&path.join("README.txt"))?);
                let mut output = Self { kind, path, file, bytes: 0 };
                output.file.write_all(README.as_bytes())?;
                Ok(output)
            }
        }
    }

    fn begin(&mut self, shape: &TableShape) -> io::Result<()> {
        if self.kind == Kind::Folder {
            self.close()?;
            self.file = BufWriter::new(files::create_private(&self.path.join(format!("{}.ndjson", shape.table)))?);
        }
        Ok(())
    }

    fn line(&mut self, shape: &TableShape, line: &str) -> io::Result<()> {
        match self.kind {
            Kind::File => writeln!(self.file, r#"{{"table":"{}","row":{line}}}"#, shape.table),
            Kind::Folder => writeln!(self.file, "{line}"),
        }
    }

    fn finish(mut self, manifest: &Manifest) -> io::Result<u64> {
        if self.kind == Kind::Folder {
            self.close()?;
            self.file = BufWriter::new(files::create_private(&self.path.join("manifest.json"))?);
            writeln!(self.file, "{}", serde_json::to_string_pretty(manifest)?)?;
        } else {
            writeln!(self.file, r#"{{"end":{}}}"#, serde_json::to_string(manifest)?)?;
        }
        self.close()?;
        Ok(self.bytes)
    }

    fn close(&mut self) -> io::Result<()> {
        self.file.flush()?;
        self.file.get_ref().sync_all()?;
        self.bytes += self.file.get_ref().metadata()?.len();
        Ok(())
    }
}

const README: &str = "Everything that agent-memory remembered: one file a table, one row a line, as JSON.\n\
                      manifest.json says how many rows there are, and their checksums.\n\
                      `cargo xtask import FOLDER` reads it into an empty database.\n\
                      It holds what was typed and what agents did: keep it where nobody else can read it.\n";

fn told(error: io::Error, path: &Path) -> anyhow::Error {
    let folder = path.parent().unwrap_or(path).display();
    let hint = "nothing of the export is left; make room there, or name another disk";
    hinted(anyhow!(error).context(format!("cannot write the export into `{folder}`")), hint)
}
