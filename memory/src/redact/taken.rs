//! How often something was taken out since this process began, by the rule that found it.
//!
//! The ids of the built-in rules are known, so that there are never more counts than rules; what a person's own rules find is counted
//! together, for their names may say what nobody else is to know.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

/// Parts between `<private>` and `</private>`.
pub(super) const PRIVATE: &str = "private";
/// All rules of the user.
const OWN: &str = "own-rule";

#[derive(Debug)]
pub(super) struct Taken(BTreeMap<String, AtomicU64>);

impl Taken {
    /// Counts for the built-in rules of these ids.
    pub(super) fn by(ids: impl Iterator<Item = String>) -> Self {
        let all = ids.chain([PRIVATE, OWN].map(str::to_owned));
        Self(all.map(|id| (id, AtomicU64::new(0))).collect())
    }

    pub(super) fn count(&self, id: &str) {
        if let Some(count) = self.0.get(id).or_else(|| self.0.get(OWN)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(super) fn read(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().map(|(id, count)| (id.as_str(), count.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_what_it_does_not_know_as_the_users() {
        let taken = Taken::by(["aws-access-key".to_owned()].into_iter());
        for id in ["aws-access-key", "the-boss", "another", PRIVATE] {
            taken.count(id);
        }
        let read: Vec<_> = taken.read().collect();
        assert_eq!(read, [("aws-access-key", 1), (OWN, 2), (PRIVATE, 1)]);
    }
}
