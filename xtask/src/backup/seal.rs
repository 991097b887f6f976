//! What makes a file a backup: its description and its checksum beside it. Both are written before the file gets its name, and
//! without them, or when one byte is not as it was, nothing is restored from it.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use sha2::{Digest, Sha256};

use super::folder::no_backup;
use super::manifest::Manifest;
use super::name::{Locking, Name};
use super::{archive, archive::Written};
use crate::files;
use crate::output::{HintExt, human_bytes};

/// The beginnings of a custom-format archive of Postgres and of an age file.
const ARCHIVE: &[u8] = b"PGDMP";
const AGE: &[u8] = b"age-encryption.org/v1\n";

/// A file that is what it was when it was made.
#[derive(Debug, Clone)]
pub struct Sealed {
    pub path: PathBuf,
    pub name: Name,
    pub manifest: Manifest,
}

/// Writes description and checksum beside a backup that will get this path. The checksum file is one that `sha256sum --check` reads.
pub(super) fn write(path: &Path, written: &Written, manifest: &Manifest) -> Result<()> {
    let text = manifest.text()?;
    let [description, checksums] = beside(path);
    let lines = format!(
        "{}  {}\n{}  {}\n",
        written.sha256,
        file_name(path),
        files::hex(&Sha256::digest(&text)),
        file_name(&description)
    );
    files::write_private(&description, &text)?;
    files::write_private(&checksums, &lines)
}

/// The files beside a backup: its description and its checksums.
pub(super) fn beside(path: &Path) -> [PathBuf; 2] {
    ["json", "sha256"].map(|ending| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{ending}"));
        PathBuf::from(name)
    })
}

/// The description beside a backup, unchecked.
pub(super) fn manifest_of(path: &Path) -> Result<Manifest> {
    let [description, _] = beside(path);
    let text =
        files::read_if_there(&description)?.with_context(|| format!("there is no `{}`", description.display()))?;
    Manifest::parse(&text)
}

/// Reads the whole file and fails unless it is, byte for byte, what was written. Takes about a second for each gigabyte.
pub fn check(path: &Path) -> Result<Sealed> {
    let name = Name::parse(&file_name(path)).ok_or_else(|| no_backup(path))?;
    let told = || format!("`{}` is no whole backup", path.display());
    let checked = checked(path, &name).with_context(told);
    let manifest = checked.hint("nothing was restored from it; `cargo xtask backup list` shows the others")?;
    Ok(Sealed { path: path.to_owned(), name, manifest })
}

fn checked(path: &Path, name: &Name) -> Result<Manifest> {
    let [description, checksums] = beside(path);
    let expected = files::read_if_there(&checksums)?;
    let expected = expected.with_context(|| format!("its checksum `{}` is missing", file_name(&checksums)))?;
    let expected = |path: &Path| {
        let name = file_name(path);
        let found = expected.lines().find_map(|line| line.split_once("  ").filter(|(_, of)| *of == name));
        found.map(|(digest, _)| digest.to_owned()).with_context(|| format!("its checksum says nothing of `{name}`"))
    };
    let text = files::read_if_there(&description)?;
    let text = text.with_context(|| format!("its description `{}` is missing", file_name(&description)))?;
    if files::hex(&Sha256::digest(&text)) != expected(&description)? {
        bail!("its description `{}` was changed after it was made", file_name(&description));
    }
    let manifest = Manifest::parse(&text)?;
    let bytes = path.metadata().context("it cannot be read")?.len();
    if bytes != manifest.bytes {
        bail!("it has {} of {} ({bytes} of {} bytes)", human_bytes(bytes), human_bytes(manifest.bytes), manifest.bytes);
    }
    let (digest, beginning) = archive::digest(path)?;
    if digest != expected(path)? {
        bail!("it was changed after it was made, or the disk has damaged it (its sha256 is {digest})");
    }
    let begins = match name.locking {
        Locking::Plain => ARCHIVE,
        Locking::Encrypted => AGE,
    };
    if !beginning.starts_with(begins) {
        return Err(anyhow!("it does not begin like an archive of Postgres"));
    }
    Ok(manifest)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use memory::store;

    use super::*;

    fn sealed(content: &[u8]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent-memory-20260302T101500Z-manual.dump");
        std::fs::write(&path, content).unwrap();
        let manifest = Manifest {
            backup: Manifest::format(),
            made_at: DateTime::UNIX_EPOCH,
            program: "0.1.0".into(),
            postgres: 180_001,
            schema_version: store::known_schema_version(),
            database_bytes: 2,
            bytes: content.len() as u64,
            tables: Vec::new(),
        };
        let written = Written { bytes: manifest.bytes, sha256: files::hex(&Sha256::digest(content)) };
        write(&path, &written, &manifest).unwrap();
        (folder, path)
    }

    fn refusal(path: &Path) -> String {
        crate::output::report(&check(path).unwrap_err())
    }

    #[test]
    fn takes_a_file_that_is_as_it_was_made() {
        let (_folder, path) = sealed(b"PGDMP and so on");
        assert_eq!(check(&path).unwrap().manifest.bytes, 15);
    }

    #[test]
    fn says_which_part_is_not_as_it_was() {
        let spoilt = |spoil: &dyn Fn(&Path)| {
            let (_folder, path) = sealed(b"PGDMP and so on");
            spoil(&path);
            refusal(&path)
        };
        let write = |path: &Path, text: &str| std::fs::write(path, text).unwrap();
        assert!(spoilt(&|path| write(path, "PGDMP and so")).contains("12 of 15 bytes"));
        assert!(spoilt(&|path| write(path, "PGDMP and so oN")).contains("changed after it was made"));
        assert!(spoilt(&|path| std::fs::remove_file(&beside(path)[1]).unwrap()).contains("checksum"));
        assert!(spoilt(&|path| std::fs::remove_file(&beside(path)[0]).unwrap()).contains("description"));
        let edit = |path: &Path| {
            let text = std::fs::read_to_string(&beside(path)[0]).unwrap();
            write(&beside(path)[0], &text.replace("0.1.0", "0.1.1"));
        };
        assert!(spoilt(&edit).contains("was changed after it was made"));
        let (_folder, path) = sealed(b"something else ");
        assert!(refusal(&path).contains("does not begin like an archive"));
        assert!(refusal(Path::new("/x/notes.txt")).contains("not named like a backup"));
    }
}
