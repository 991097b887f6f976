//! Deadlines that were missed, until the server can be told: a file as long as there are such, one byte for each.
//!
//! Appending a byte and giving a file another name are whole or not at all, so that hooks which run at the same time neither lose nor
//! double a count. Where there is nothing to tell, which is nearly always, it costs one call that finds no file.

use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// More than a server that never answers makes anyone miss in years.
const MAX_COUNT: u64 = 1_000_000;

/// Counts that this process has taken to tell the server.
#[derive(Debug)]
pub(crate) struct Missed {
    file: PathBuf,
    claimed: PathBuf,
    count: u64,
}

/// Counts one more. Whether that succeeds matters to nobody but the count.
pub(crate) fn note(file: &Path) {
    append(file, 1);
}

impl Missed {
    /// Takes what is to be told; `None` where nothing is.
    pub(crate) fn claim(file: &Path) -> Option<Self> {
        let claimed = file.with_extension(std::process::id().to_string());
        std::fs::rename(file, &claimed).ok()?;
        let count = std::fs::metadata(&claimed).ok()?.len();
        Some(Self { file: file.to_owned(), claimed, count })
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The server knows.
    pub(crate) fn forget(self) {
        let _ = std::fs::remove_file(self.claimed);
    }

    /// The server may not know.
    pub(crate) fn put_back(self) {
        append(&self.file, self.count);
        self.forget();
    }
}

fn append(file: &Path, count: u64) {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    if let Ok(mut file) = options.open(file) {
        let _ = file.write_all(&vec![b'.'; count.min(MAX_COUNT) as usize]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("agent-memory-missed-{name}-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        path
    }

    #[test]
    fn counts_each_miss_once_however_many_tell_of_them() {
        let file = file("once");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..10).for_each(|_| note(&file)));
            }
        });
        let claimed = Missed::claim(&file).unwrap();
        assert_eq!(claimed.count(), 80);
        assert!(Missed::claim(&file).is_none(), "another process has it");
        note(&file);
        claimed.put_back();
        let claimed = Missed::claim(&file).unwrap();
        assert_eq!(claimed.count(), 81);
        claimed.forget();
        assert!(Missed::claim(&file).is_none());
    }

    #[test]
    fn has_nothing_to_tell_where_nothing_was_missed() {
        assert!(Missed::claim(&file("nothing")).is_none());
    }
}
