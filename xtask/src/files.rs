//! Small files written so that nobody ever sees half of one, and secrets so that nobody else sees them at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// Who may read a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// 0600
    Private,
    /// 0644
    Readable,
    /// 0755
    Executable,
}

/// The text of a file, or `None` where there is none.
pub fn read_if_there(path: &Path) -> Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read `{}`", path.display())),
    }
}

/// Writes a file of mode 0600 under a temporary name and renames it.
pub fn write_private(path: &Path, text: &str) -> Result<()> {
    write(path, text.as_bytes(), Mode::Private)
}

/// Writes a file under a temporary name and renames it.
pub fn write(path: &Path, content: &[u8], mode: Mode) -> Result<()> {
    replace(path, mode, |file| file.write_all(content))
}

/// Writes all that a reader gives under a temporary name and renames it.
pub fn write_from(reader: &mut impl Read, path: &Path, mode: Mode) -> Result<()> {
    replace(path, mode, |file| io::copy(reader, file).map(drop))
}

/// Writes a private file only if it does not hold that text already; says whether it did.
pub fn write_private_if_changed(path: &Path, text: &str) -> Result<bool> {
    if read_if_there(path)?.as_deref() == Some(text) {
        return Ok(false);
    }
    write_private(path, text)?;
    Ok(true)
}

/// Makes `to` a copy of `from` unless it is one already; says whether it was made. A program that runs from `to` keeps
/// running: the new one takes its name, not its place.
pub fn install(from: &Path, to: &Path, mode: Mode) -> Result<bool> {
    if is_copy(from, to)? {
        return Ok(false);
    }
    let mut source = File::open(from).with_context(|| format!("cannot read `{}`", from.display()))?;
    replace(to, mode, |file| io::copy(&mut source, file).map(drop))?;
    Ok(true)
}

/// Whether both files hold the same; a first one that is not there is a failure, a second one that is not there is another.
pub fn is_copy(from: &Path, to: &Path) -> Result<bool> {
    same_content(from, to).with_context(|| format!("cannot compare `{}` with what is installed", from.display()))
}

/// A new file that only its owner can read, for what comes piece by piece.
pub fn create_private(path: &Path) -> io::Result<File> {
    options(Mode::Private).write(true).create_new(true).open(path)
}

/// Waits until the disk knows the names in a folder; where a system has no such thing, it does that by itself.
pub fn sync_folder(path: &Path) -> Result<()> {
    #[cfg(unix)]
    File::open(path)
        .and_then(|folder| folder.sync_all())
        .with_context(|| format!("the disk does not take `{}`", path.display()))?;
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// Creates a folder, and those above it, that only its owner may enter. What exists keeps its mode.
pub fn create_private_folder(path: &Path) -> Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).with_context(|| format!("cannot create the folder `{}`", path.display()))
}

/// Makes sure that only its owner may enter a folder that exists.
pub fn make_private(path: &Path) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(0o700))
            .with_context(|| format!("cannot close `{}` to others", path.display()))?;
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}

/// Removes a file or a whole folder; says whether there was one.
pub fn remove(path: &Path) -> Result<bool> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => Err(error),
    };
    removed.with_context(|| format!("cannot remove `{}`", path.display()))?;
    Ok(true)
}

/// Opens a log for appending. One that has grown beyond 10 MB becomes `<name>.1` first, in place of an older one.
pub fn open_log(path: &Path) -> Result<File> {
    const LONG_BYTES: u64 = 10_000_000;
    if fs::metadata(path).is_ok_and(|metadata| metadata.len() > LONG_BYTES) {
        let mut older = path.as_os_str().to_owned();
        older.push(".1");
        fs::rename(path, &older).with_context(|| format!("cannot put `{}` aside", path.display()))?;
    }
    open_for_appending(path)
}

/// Opens a log for appending, however long it is.
pub fn open_for_appending(path: &Path) -> Result<File> {
    options(Mode::Private)
        .append(true)
        .create(true)
        .open(path)
        .with_context(|| format!("cannot open the log `{}`", path.display()))
}

/// The last lines of a text file; empty where there is none.
pub fn tail(path: &Path, lines: usize) -> String {
    let Ok(bytes) = fs::read(path) else { return String::new() };
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<_> = text.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

/// Where downloads that outlive a test run are kept: `agent-memory` in the user's folder for caches.
pub fn cache_folder() -> Result<PathBuf> {
    let shell = xshell::Shell::new().context("the working folder is gone")?;
    let folder = |name, below: &str| {
        shell.var_os(name).filter(|value| !value.is_empty()).map(|value| PathBuf::from(value).join(below))
    };
    folder("XDG_CACHE_HOME", "agent-memory")
        .or_else(|| folder("LOCALAPPDATA", "agent-memory/cache"))
        .or_else(|| folder("HOME", ".cache/agent-memory"))
        .context("no folder for caches: neither XDG_CACHE_HOME nor HOME is set")
}

/// 32 random bytes in hex: a token or a password.
pub fn random_secret() -> Result<String> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| anyhow::anyhow!("the system gives no random bytes: {error}"))?;
    Ok(hex(&bytes))
}

pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn replace(path: &Path, mode: Mode, content: impl FnOnce(&mut File) -> io::Result<()>) -> Result<()> {
    let temporary = temporary_beside(path);
    let written = (|| {
        // Created anew, never followed: the folder may belong to an account that root lends Postgres to.
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = options(mode).write(true).create_new(true).open(&temporary)?;
        content(&mut file)?;
        file.sync_all()?;
        drop(file);
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        // The first failure is the one to tell; a leftover is only untidy.
        drop(fs::remove_file(&temporary));
    }
    written.with_context(|| format!("cannot write `{}`", path.display()))
}

fn temporary_beside(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!(".tmp-{}-{name}", std::process::id()))
}

fn options(mode: Mode) -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.mode(match mode {
            Mode::Private => 0o600,
            Mode::Readable => 0o644,
            Mode::Executable => 0o755,
        });
    }
    #[cfg(not(unix))]
    let _ = mode;
    options
}

fn same_content(one: &Path, other: &Path) -> io::Result<bool> {
    let mut file = File::open(one)?;
    let mut installed = match File::open(other) {
        Ok(found) => found,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    if file.metadata()?.len() != installed.metadata()?.len() {
        return Ok(false);
    }
    let (mut read, mut expected) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    loop {
        let count = file.read(&mut read)?;
        if count == 0 {
            return Ok(true);
        }
        installed.read_exact(&mut expected[..count])?;
        if read[..count] != expected[..count] {
            return Ok(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installs_a_copy_once_and_again_only_when_the_content_differs() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from"), folder.path().join("to"));
        fs::write(&from, "one").unwrap();
        assert!(install(&from, &to, Mode::Executable).unwrap());
        assert!(!install(&from, &to, Mode::Executable).unwrap());
        fs::write(&from, "two").unwrap();
        assert!(install(&from, &to, Mode::Executable).unwrap());
        assert_eq!(fs::read_to_string(&to).unwrap(), "two");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "no temporary file is left");
    }

    #[cfg(unix)]
    #[test]
    fn writes_secrets_for_their_owner_only() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("home");
        create_private_folder(&inner).unwrap();
        write_private(&inner.join("token"), "t").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&inner), mode(&inner.join("token"))), (0o700, 0o600));
    }

    #[test]
    fn puts_a_long_log_aside_before_it_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("server.log");
        File::create(&log).unwrap().set_len(11_000_000).unwrap();
        writeln!(open_log(&log).unwrap(), "new").unwrap();
        assert_eq!(tail(&log, 5), "new");
        assert!(folder.path().join("server.log.1").exists());
    }

    #[test]
    fn secrets_are_long_and_never_the_same() {
        let (one, other) = (random_secret().unwrap(), random_secret().unwrap());
        assert_eq!(one.len(), 64);
        assert_ne!(one, other);
    }
}
