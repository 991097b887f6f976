//! How much room a disk has left.

use std::io;
use std::path::Path;

/// So much free space is enough on any disk, however large.
const ENOUGH_BYTES: u64 = 1 << 30;

/// Room on the disk that a path lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Space {
    /// What a user who is not root may still write.
    pub free_bytes: u64,
    pub total_bytes: u64,
}

impl Space {
    pub fn around(path: &Path) -> io::Result<Self> {
        let space = fs4::statvfs(path)?;
        Ok(Self { free_bytes: space.available_space(), total_bytes: space.total_space() })
    }

    /// Whether less than a twentieth is free, and less than 1 GiB.
    pub fn is_nearly_full(self) -> bool {
        self.free_bytes < self.threshold_bytes()
    }

    /// Whether there is twice the room again at which it counted as nearly full: between the two nothing changes.
    pub fn has_room_again(self) -> bool {
        self.free_bytes >= 2 * self.threshold_bytes()
    }

    fn threshold_bytes(self) -> u64 {
        (self.total_bytes / 20).min(ENOUGH_BYTES)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_the_room_around_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let space = Space::around(folder.path()).unwrap();
        assert!(space.total_bytes > 0 && space.free_bytes <= space.total_bytes, "{space:?}");
        assert!(Space::around(&folder.path().join("missing")).is_err());
    }

    #[test]
    fn is_nearly_full_in_proportion_to_its_size() {
        let of = |free_bytes, total_bytes| Space { free_bytes, total_bytes };
        assert!(of(40, 1_000).is_nearly_full() && !of(60, 1_000).is_nearly_full());
        assert!(!of(60, 1_000).has_room_again() && of(100, 1_000).has_room_again());
        assert!(!of(2 << 30, 1 << 50).is_nearly_full());
    }
}
