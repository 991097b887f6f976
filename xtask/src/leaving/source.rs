//! Where an import's lines come from: a single file, or a folder with one a table. Each line is given with the place where it stands,
//! for whoever has to find it.

use std::fmt::{self, Display};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::manifest::Manifest;
use crate::output::hinted;

/// A file and a line in it, counted from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub file: PathBuf,
    pub line: u64,
}

impl Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}`, line {}", self.file.display(), self.line)
    }
}

/// A row as it stands there.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub table: String,
    pub line: String,
    pub place: Place,
}

/// An export, opened.
pub(super) struct Source {
    pub manifest: Manifest,
    path: PathBuf,
    lines: Lines,
    /// Of a folder: the tables whose files were not opened yet, last first.
    tables: Vec<String>,
    /// Of a folder: the table whose file is open.
    table: Option<String>,
    is_single: bool,
}

impl Source {
    /// Opens a file or a folder, and reads what it says of itself.
    pub(super) fn open(path: &Path) -> Result<Self> {
        let told = || format!("`{}` cannot be imported", path.display());
        let is_single = !path.is_dir();
        let opened = if is_single { Self::single(path) } else { Self::folder(path) };
        opened.with_context(told)
    }

    fn single(path: &Path) -> Result<Self> {
        let mut lines = Lines::open(path)?;
        let (first, _) = lines.next()?.context("it is empty")?;
        let manifest = Manifest::parse(&first)?;
        Ok(Self { manifest, path: path.to_owned(), lines, tables: Vec::new(), table: None, is_single: true })
    }

    fn folder(path: &Path) -> Result<Self> {
        let file = path.join("manifest.json");
        let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read `{}`", file.display()))?;
        let manifest = Manifest::parse(&text)?;
        let tables = manifest.tables.iter().rev().map(|table| table.shape.table.clone()).collect();
        Ok(Self { manifest, path: path.to_owned(), lines: Lines::open(&file)?, tables, table: None, is_single: false })
    }

    /// The next row; `None` at the end, which a single file must say itself: then the manifest has the digests of the lines.
    pub(super) fn next(&mut self) -> Result<Option<Row>> {
        if self.is_single { self.next_of_file() } else { self.next_of_folder() }
    }

    fn next_of_folder(&mut self) -> Result<Option<Row>> {
        loop {
            if let Some(table) = &self.table
                && let Some((line, place)) = self.lines.next()?
            {
                return Ok(Some(Row { table: table.clone(), line, place }));
            }
            let Some(table) = self.tables.pop() else { return Ok(None) };
            self.lines = Lines::open(&self.path.join(format!("{table}.ndjson")))?;
            self.table = Some(table);
        }
    }

    fn next_of_file(&mut self) -> Result<Option<Row>> {
        let Some((line, place)) = self.lines.next()? else {
            let error = anyhow!("`{}` ends before its last line: it was cut off", self.path.display());
            return Err(hinted(error, "copy it again from where it was made; nothing was imported"));
        };
        // One enum of both would buffer what it reads, and a raw value cannot be buffered.
        if let Ok(row) = serde_json::from_str::<RowLine<'_>>(&line) {
            return Ok(Some(Row { table: row.table, line: row.row.get().to_owned(), place }));
        }
        let Ok(end) = serde_json::from_str::<EndLine>(&line) else {
            bail!("{place}: it is neither a row nor the end of an export");
        };
        if let Some((_, place)) = self.lines.next()? {
            bail!("{place}: there is more after the end of the export");
        }
        self.manifest = *end.end;
        Ok(None)
    }
}

#[derive(Deserialize)]
struct RowLine<'a> {
    table: String,
    #[serde(borrow)]
    row: &'a RawValue,
}

#[derive(Deserialize)]
struct EndLine {
    end: Box<Manifest>,
}

/// The lines of one file.
struct Lines {
    path: PathBuf,
    file: BufReader<File>,
    count: u64,
}

impl Lines {
    fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).with_context(|| format!("cannot read `{}`", path.display()))?;
        Ok(Self { path: path.to_owned(), file: BufReader::new(file), count: 0 })
    }

    fn next(&mut self) -> Result<Option<(String, Place)>> {
        let mut bytes = Vec::new();
        let count = self.file.read_until(b'\n', &mut bytes);
        if count.with_context(|| format!("cannot read `{}`", self.path.display()))? == 0 {
            return Ok(None);
        }
        self.count += 1;
        let place = Place { file: self.path.clone(), line: self.count };
        if bytes.last() == Some(&b'\n') {
            bytes.pop();
        }
        let line = String::from_utf8(bytes).map_err(|_| anyhow!("{place}: it is not UTF-8"))?;
        Ok(Some((line, place)))
    }
}

#[cfg(test)]
mod tests {
    use memory::store::TableSum;
    use memory::store::leaving::TableShape;

    use super::*;

    fn manifest() -> Manifest {
        let shape = TableShape { table: "mem_a".into(), columns: vec!["id".into()], key: Vec::new(), next_id: None };
        let sum = TableSum { table: "mem_a".into(), rows: 1, checksum: "0f".into() };
        Manifest::new(1, vec![shape], &[sum]).unwrap()
    }

    fn single(lines: &[&str]) -> Result<Vec<Row>> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("all.ndjson");
        let text = lines.iter().flat_map(|line| [*line, "\n"]).collect::<String>();
        std::fs::write(&path, text.replace("MANIFEST", &serde_json::to_string(&manifest()).unwrap())).unwrap();
        let mut source = Source::open(&path)?;
        let mut rows = Vec::new();
        while let Some(row) = source.next()? {
            rows.push(row);
        }
        Ok(rows)
    }

    #[test]
    fn a_single_file_is_read_to_its_end() {
        let rows =
            single(&["MANIFEST", r#"{"table":"mem_a","row":{"id":1, "x":"\u0041"}}"#, r#"{"end":MANIFEST}"#]).unwrap();
        assert_eq!(rows.len(), 1);
        assert_eq!((rows[0].table.as_str(), rows[0].line.as_str()), ("mem_a", r#"{"id":1, "x":"\u0041"}"#));
        assert_eq!(rows[0].place.line, 2);
    }

    #[test]
    fn says_in_which_line_what_is_wrong() {
        let told = |lines: &[&str]| crate::output::report(&single(lines).unwrap_err());
        let row = r#"{"table":"mem_a","row":{"id":1}}"#;
        assert!(told(&["MANIFEST", row]).contains("it was cut off"));
        assert!(told(&["MANIFEST", row, r#"{"table":"mem_a","ro"#]).contains("line 3: it is neither a row"));
        assert!(told(&["MANIFEST", r#"{"end":MANIFEST}"#, row]).contains("line 3: there is more"));
        assert!(told(&[]).contains("it is empty"));
        assert!(told(&["{}"]).contains("no export of agent-memory"));
    }
}
