//! The job itself: what is started, and the name under which schedulers know it.

use std::path::PathBuf;

use memory::home::Home;
use sha2::{Digest as _, Sha256};

/// What a backup that is due is made with; it ends at once where none is due.
pub(super) const ARGUMENTS: [&str; 4] = ["backup", "--scheduled", "--if-due", "--quiet"];

/// The backup of one installation. The program finds its home by lying in it.
#[derive(Debug, Clone)]
pub struct Job {
    pub(super) program: PathBuf,
    pub(super) home: Home,
    /// Another installation of the same user has another one.
    pub(super) name: String,
    /// Not the same on all machines, which may share a disk.
    pub(super) minute: u8,
}

impl Job {
    pub fn of(home: &Home) -> Self {
        let digest = Sha256::digest(home.root().as_os_str().as_encoded_bytes());
        let short = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
        Self {
            program: home.program("agent-memory"),
            home: home.clone(),
            name: format!("agent-memory-backup-{short:08x}"),
            minute: digest[4] % 60,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_installations_have_two_jobs() {
        let (one, other) = (Job::of(&Home::at("/home/ann/one")), Job::of(&Home::at("/home/ann/other")));
        assert_ne!(one.name, other.name);
        assert_eq!(one.name, Job::of(&Home::at("/home/ann/one")).name);
        assert!(one.minute < 60 && other.minute < 60);
    }
}
