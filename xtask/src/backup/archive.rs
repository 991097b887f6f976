//! An archive on its way to and from the disk, in a thread of its own: encrypted, hashed and written under a temporary name; read and
//! decrypted again. Its pieces come through a channel, so that never more than a few of them are in memory.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use sha2::{Digest, Sha256};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::cipher::{Key, Lock, Locked};
use super::name::Locking;
use super::seal::Sealed;
use crate::files;
use crate::output::hinted;

/// Pieces that wait between a program and the disk.
const PIECES: usize = 8;
const PIECE_BYTES: usize = 128 * 1024;

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    pub bytes: u64,
    pub sha256: String,
}

/// A channel for pieces.
pub(super) fn pieces() -> (Sender<Vec<u8>>, Receiver<Vec<u8>>) {
    channel(PIECES)
}

/// Writes what comes into a new file that only its owner can read, and waits until the disk has it.
pub(super) fn write(path: &Path, lock: Lock, mut pieces: Receiver<Vec<u8>>) -> Result<Written> {
    let encryptor = lock.encryptor()?;
    let written = (|| {
        let file = Hashing { file: files::create_private(path)?, sha256: Sha256::new(), bytes: 0 };
        let mut locked = Locked::around(file, encryptor)?;
        while let Some(piece) = pieces.blocking_recv() {
            locked.write_all(&piece)?;
        }
        let Hashing { file, sha256, bytes } = locked.finish()?;
        file.sync_all()?;
        io::Result::Ok(Written { bytes, sha256: files::hex(&sha256.finalize()) })
    })();
    written.map_err(|error| told(error, path))
}

/// Reads a file and sends on what was locked in it.
pub(super) fn read(path: &Path, locking: Locking, key: &Key, pieces: &Sender<Vec<u8>>) -> Result<()> {
    let reading = || format!("cannot read `{}`", path.display());
    let file = BufReader::with_capacity(PIECE_BYTES, File::open(path).with_context(reading)?);
    let mut opened: Box<dyn Read + Send> = match locking {
        Locking::Plain => Box::new(file),
        Locking::Encrypted => key.open(file)?,
    };
    loop {
        let mut piece = vec![0; PIECE_BYTES];
        let count = opened.read(&mut piece).with_context(reading)?;
        piece.truncate(count);
        // Nobody listens any more: who did says why.
        if count == 0 || pieces.blocking_send(piece).is_err() {
            return Ok(());
        }
    }
}

/// Fails unless the key opens the file, before anything is done for its sake.
pub(super) fn check_key(sealed: &Sealed, key: &Key) -> Result<()> {
    if sealed.name.locking == Locking::Encrypted {
        let file = File::open(&sealed.path).with_context(|| format!("cannot read `{}`", sealed.path.display()))?;
        key.open(BufReader::new(file)).map(drop)?;
    }
    Ok(())
}

/// The digest of a file as it lies there, and its first bytes.
pub(super) fn digest(path: &Path) -> Result<(String, [u8; 32])> {
    let reading = || format!("cannot read `{}`", path.display());
    let mut file = File::open(path).with_context(reading)?;
    let mut beginning = [0; 32];
    let mut filled = 0;
    while filled < beginning.len() {
        match file.read(&mut beginning[filled..]).with_context(reading)? {
            0 => break,
            count => filled += count,
        }
    }
    file.seek(SeekFrom::Start(0)).with_context(reading)?;
    let mut sha256 = Sha256::new();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let count = file.read(&mut piece).with_context(reading)?;
        if count == 0 {
            return Ok((files::hex(&sha256.finalize()), beginning));
        }
        sha256.update(&piece[..count]);
    }
}

fn told(error: io::Error, path: &Path) -> anyhow::Error {
    let folder = path.parent().unwrap_or(path).display();
    if matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded) {
        let error = anyhow!("the disk under `{folder}` is full");
        return hinted(
            error,
            "earlier backups are as they were; make room (`cargo xtask backup prune`), or let `backup.folder` in settings.toml \
             name another disk",
        );
    }
    anyhow!(error).context(format!("cannot write a backup into `{folder}`"))
}

struct Hashing {
    file: File,
    sha256: Sha256,
    bytes: u64,
}

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.sha256.update(&bytes[..count]);
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
