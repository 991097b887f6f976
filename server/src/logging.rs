//! Where the server's log goes and how it looks: to stderr, to stdout, or to files of a bounded size and number. Beside its own it keeps
//! the log of the embedded Postgres small, which only appends.
//!
//! A log holds nothing of what is remembered. The message of a panic may quote what was being read, so only its place is told.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;

use anyhow::Context as _;
use file_rotate::compression::Compression;
use file_rotate::suffix::AppendCount;
use file_rotate::{ContentLimit, FileRotate};
use memory::home::Home;
use memory::settings::{LogFormat, Logs};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::writer::BoxMakeWriter;

use crate::storage::Folders;

/// In place of a file: standard output, for containers.
const STDOUT: &str = "-";
/// A log of Postgres grows by a few lines in that time, unless something is very wrong.
const INTERVAL: Duration = Duration::from_mins(1);

/// Begins to log; without a file to stderr. To be called once.
pub fn log_to(file: Option<&Path>, logs: &Logs) -> anyhow::Result<()> {
    let writer = match file {
        None => BoxMakeWriter::new(io::stderr),
        Some(path) if path == Path::new(STDOUT) => BoxMakeWriter::new(io::stdout),
        Some(path) => BoxMakeWriter::new(Mutex::new(rotating(path, logs)?)),
    };
    let filter = EnvFilter::builder()
        .with_env_var("AGENT_MEMORY_LOG")
        .try_from_env()
        .unwrap_or_else(|_| EnvFilter::new("info,sqlx::postgres::notice=warn"));
    let subscriber = tracing_subscriber::fmt().with_writer(writer).with_ansi(false).with_env_filter(filter);
    match logs.format {
        LogFormat::Text => subscriber.init(),
        LogFormat::Json => subscriber.json().flatten_event(true).init(),
    }
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(panic.place = place, "a part of the server broke off; this is a bug");
    }));
    Ok(())
}

fn rotating(path: &Path, logs: &Logs) -> anyhow::Result<FileRotate<AppendCount>> {
    let cannot = || format!("cannot write the log `{}`", path.display());
    let mut options = std::fs::OpenOptions::new();
    options.read(true).create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    // The library would go on without a file, or not at all.
    path.parent().map_or(Ok(()), std::fs::create_dir_all).with_context(cannot)?;
    options.open(path).with_context(cannot)?;
    let limit = ContentLimit::BytesSurpassed(max_bytes(logs));
    Ok(FileRotate::new(path, AppendCount::new(logs.files), limit, Compression::None, Some(options)))
}

/// A log of no size would be none.
fn max_bytes(logs: &Logs) -> usize {
    usize::try_from(logs.max_bytes.0).unwrap_or(usize::MAX).max(1)
}

/// Looks once a minute after the log of the embedded Postgres.
pub(crate) async fn keep_short_until(home: Option<&Home>, folders: &Folders, shutdown: &CancellationToken) {
    let Some(home) = home else { return };
    loop {
        let (path, logs) = (home.logs().join("postgres.log"), folders.settings().logs);
        match tokio::task::spawn_blocking(move || shorten(&path, &logs)).await {
            // Without the embedded runtime there is none.
            Ok(Err(error)) if error.kind() != ErrorKind::NotFound => {
                tracing::warn!(error = &error as &dyn std::error::Error, "the log of Postgres stays as long as it is");
            }
            _ => {}
        }
        if shutdown.run_until_cancelled(tokio::time::sleep(INTERVAL)).await.is_none() {
            return;
        }
    }
}

/// Copies a log that has grown long and empties it: who writes to it goes on with what is open. What is written in between is lost.
fn shorten(path: &Path, logs: &Logs) -> io::Result<()> {
    if std::fs::metadata(path)?.len() <= max_bytes(logs) as u64 {
        return Ok(());
    }
    for number in (1..logs.files).rev() {
        match std::fs::rename(older(path, number), older(path, number + 1)) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    if logs.files > 0 {
        std::fs::copy(path, older(path, 1))?;
    }
    std::fs::File::options().write(true).open(path)?.set_len(0)
}

fn older(path: &Path, number: usize) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use memory::settings::ByteSize;

    use super::*;

    const SMALL: Logs = Logs { max_bytes: ByteSize(100), files: 2, format: LogFormat::Text };

    fn sizes(folder: &Path) -> Vec<(String, u64)> {
        let entries = std::fs::read_dir(folder).unwrap().map(Result::unwrap);
        let mut sizes: Vec<_> =
            entries.map(|entry| (entry.file_name().into_string().unwrap(), entry.metadata().unwrap().len())).collect();
        sizes.sort();
        sizes
    }

    #[test]
    fn keeps_the_servers_log_to_a_size_and_a_number_of_files_across_starts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server.log");
        for start in 0..5 {
            let mut log = rotating(&path, &SMALL).unwrap();
            for line in 0..10 {
                writeln!(log, "start {start}, line {line}, of about forty bytes").unwrap();
            }
        }
        let sizes = sizes(folder.path());
        assert_eq!(
            sizes.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
            ["server.log", "server.log.1", "server.log.2"]
        );
        assert!(sizes.iter().all(|(_, size)| *size <= 200), "{sizes:?}");
        assert!(std::fs::read_to_string(&path).unwrap().ends_with("start 4, line 9, of about forty bytes\n"));
    }

    #[cfg(unix)]
    #[test]
    fn is_nobody_elses_to_read() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("server.log");
        drop(rotating(&path, &SMALL).unwrap());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn shortens_a_log_that_another_process_goes_on_writing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("postgres.log");
        assert_eq!(shorten(&path, &SMALL).unwrap_err().kind(), ErrorKind::NotFound);
        let mut theirs = std::fs::File::options().append(true).create(true).open(&path).unwrap();
        for round in 0..4 {
            theirs.write_all(&[b'0' + round; 150]).unwrap();
            shorten(&path, &SMALL).unwrap();
        }
        theirs.write_all(b"end").unwrap();
        shorten(&path, &SMALL).unwrap();
        let expected = [("postgres.log", 3), ("postgres.log.1", 150), ("postgres.log.2", 150)];
        assert_eq!(sizes(folder.path()), expected.map(|(name, size)| (name.to_owned(), size)));
        assert!(std::fs::read_to_string(older(&path, 1)).unwrap().starts_with('3'));
    }
}
