//! The spool: a folder of envelopes that the server has yet to fetch, one file an event.
//!
//! A file appears under its name only when it is whole. The server deletes it; nobody else does.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use crate::envelope::Envelope;

/// For how long a file is likely to lie there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stay {
    /// A server that is slow now takes it in seconds. Then the disk is likely to be busy too, and waiting for it would be the
    /// delay that the deadline has just prevented.
    Short,
    /// Until there is a server: the file must outlive a power cut.
    Long,
}

/// Writes the envelope into the folder, which is made if it is missing.
pub(crate) fn keep(folder: &Path, envelope: &Envelope, stay: Stay) -> io::Result<()> {
    let name = envelope.file_name();
    let unfinished = folder.join(format!(".tmp-{name}"));
    let file = match create(&unfinished) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            create_folder(folder)?;
            create(&unfinished)?
        }
        other => other?,
    };
    let kept =
        write(file, folder, envelope.as_bytes(), stay).and_then(|()| std::fs::rename(&unfinished, folder.join(name)));
    if kept.is_err() {
        // The disk is full, or the folder gone: half a file would stay for ever.
        let _ = std::fs::remove_file(&unfinished);
        return kept;
    }
    if stay == Stay::Long {
        sync_folder(folder);
    }
    Ok(())
}

fn write(mut file: File, folder: &Path, bytes: &[u8], stay: Stay) -> io::Result<()> {
    file.write_all(bytes)?;
    give_to_owner_of(folder, &file);
    if stay == Stay::Long { file.sync_data() } else { Ok(()) }
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Where root's hooks write for a server that is not root, the folder belongs to the server's user, and so must the file.
#[cfg(unix)]
fn give_to_owner_of(folder: &Path, file: &File) {
    use std::os::unix::fs::{MetadataExt, fchown};
    if let (Ok(folder), Ok(own)) = (std::fs::metadata(folder), file.metadata())
        && folder.uid() != own.uid()
    {
        // Only root can. For anyone else the file stays as it is, which is better than no file.
        let _ = fchown(file, Some(folder.uid()), Some(folder.gid()));
    }
}

#[cfg(not(unix))]
fn give_to_owner_of(_folder: &Path, _file: &File) {}

/// Makes the new name itself outlive a power cut. Windows cannot open a folder for that and does not need to.
fn sync_folder(folder: &Path) {
    if cfg!(unix) {
        let _ = File::open(folder).and_then(|folder| folder.sync_data());
    }
}
