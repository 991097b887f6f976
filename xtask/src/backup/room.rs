//! Whether a backup will find room, before the first byte of it is written.

use memory::disk::Space;

/// What stays free on the disk: hooks need it for their spool, and Postgres for its own log.
const RESERVE_BYTES: u64 = 256 << 20;

/// What is known of the size before it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Estimate {
    /// The tables now, without their indexes: they are compressed on disk too, so that no dump of them was larger.
    pub table_bytes: u64,
    /// The size of an earlier backup, and that of the whole database when it was made.
    pub earlier: Option<(u64, u64)>,
    pub database_bytes: u64,
}

impl Estimate {
    /// The bytes that it may take: an earlier one, grown with the database and by a quarter, else all of the tables.
    pub(super) fn bytes(self) -> u64 {
        match self.earlier {
            Some((backup, database)) if database > 0 => {
                let grown = backup as f64 * (self.database_bytes as f64 / database as f64) * 1.25;
                (grown as u64).min(self.table_bytes.max(backup))
            }
            _ => self.table_bytes,
        }
    }

    /// How much is missing on a disk; `None` where there is room.
    pub(super) fn missing_on(self, space: Space) -> Option<u64> {
        // On a disk that is smaller than the reserve nothing could ever be made.
        let reserve = RESERVE_BYTES.min(space.total_bytes / 20);
        let missing = (self.bytes() + reserve).saturating_sub(space.free_bytes);
        (missing > 0).then_some(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;

    #[test]
    fn expects_what_an_earlier_one_took_grown_with_the_database() {
        let check = |earlier, expected| {
            let estimate = Estimate { table_bytes: 100 * MB, earlier, database_bytes: 200 * MB };
            assert_eq!(estimate.bytes(), expected * MB);
        };
        check(None, 100);
        check(Some((20 * MB, 200 * MB)), 25);
        check(Some((20 * MB, 100 * MB)), 50);
        check(Some((20 * MB, 0)), 100);
        check(Some((20 * MB, 10 * MB)), 100);
    }

    #[test]
    fn leaves_some_of_the_disk_for_others() {
        let missing = |free_bytes, total_bytes| {
            let estimate = Estimate { table_bytes: 100 * MB, earlier: None, database_bytes: 0 };
            estimate.missing_on(Space { free_bytes, total_bytes })
        };
        assert_eq!(missing(1_000 * MB, 100_000 * MB), None);
        assert_eq!(missing(300 * MB, 100_000 * MB), Some(100 * MB + RESERVE_BYTES - 300 * MB));
        assert_eq!(missing(120 * MB, 200 * MB), None);
        assert_eq!(missing(90 * MB, 200 * MB), Some(20 * MB));
    }
}
