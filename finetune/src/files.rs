//! Files that are whole or not there: written beside their place, synced, and renamed into it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::dataset::row::hex;

/// What is being written lies under this ending, and is never read.
pub const PARTIAL: &str = "partial";

/// Writes a file through `fill`, which gets the path to write to. Nobody ever sees half of it; a failure leaves what was there before.
pub fn replace<E: From<io::Error>>(path: &Path, fill: impl FnOnce(&Path) -> Result<(), E>) -> Result<(), E> {
    let partial = partial(path);
    let done = fill(&partial).and_then(|()| {
        File::open(&partial)?.sync_all()?;
        fs::rename(&partial, path)?;
        sync_parent(path)?;
        Ok(())
    });
    if done.is_err() {
        // The error that is reported is the one that matters; the next run writes over what is left.
        let _ = fs::remove_file(&partial);
    }
    done
}

/// The same for bytes that are at hand.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace(path, |partial| File::create(partial)?.write_all(bytes))
}

/// Copies a file, whole or not at all.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    replace(to, |partial| fs::copy(from, partial).map(|_| ()))
}

/// The name that a file, or a folder, has while it is written.
pub fn partial(path: &Path) -> PathBuf {
    let mut name = path.file_name().map_or_else(OsString::new, OsString::from);
    name.push(".");
    name.push(PARTIAL);
    path.with_file_name(name)
}

/// SHA-256 of a file's bytes, in hexadecimal.
pub fn sha256(path: &Path) -> io::Result<String> {
    const BUFFER_BYTES: usize = 1 << 20;
    let mut file = File::open(path)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&hasher.finalize())),
            read => hasher.update(&buffer[..read]),
        }
    }
}

/// A rename lasts only when the folder is written too; not every platform lets a folder be opened.
fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if cfg!(unix) => {
            File::open(if parent.as_os_str().is_empty() { Path::new(".") } else { parent })?.sync_all()
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_what_was_there_when_writing_fails() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write(&path, b"whole").unwrap();
        let failed = replace(&path, |partial| {
            fs::write(partial, b"ha")?;
            Err(io::Error::other("the disk is full"))
        });
        assert!(failed.is_err());
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing half-written is left");
    }

    #[test]
    fn hashes_as_sha256sum_does() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        write(&path, b"abc").unwrap();
        assert_eq!(sha256(&path).unwrap(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
