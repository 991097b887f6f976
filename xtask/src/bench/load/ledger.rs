//! What was sent and what was promised, held against what the journal has.

use std::collections::{HashMap, HashSet};

use memory::store::bench::JournalRow;
use serde::Serialize;

use super::Key;

/// What the sender was told about an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    /// It is safe.
    Acknowledged,
    /// Nothing, or that it was not taken: it may be there or not.
    Unacknowledged,
}

/// Every event that was sent, once each.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    sent: HashMap<Key, Sent>,
}

/// The ledger beside the journal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Audit {
    pub(crate) sent: usize,
    pub(crate) acknowledged: usize,
    /// Of those sent, which the journal has.
    pub(crate) in_journal: usize,
    /// Acknowledged and not there.
    pub(crate) lost: usize,
    /// Rows that are no event's first: the same key again, or one that nobody sent.
    pub(crate) doubled: usize,
}

impl Ledger {
    /// Notes an event. One that is sent twice is acknowledged if it was once.
    pub(crate) fn note(&mut self, key: Key, sent: Sent) {
        let noted = self.sent.entry(key).or_insert(sent);
        if sent == Sent::Acknowledged {
            *noted = sent;
        }
    }

    /// Takes back what was promised for those events that are not kept, where the promise could be read only from that.
    pub(crate) fn only_if(&mut self, is_kept: impl Fn(&Key) -> bool) {
        for (key, sent) in &mut self.sent {
            if !is_kept(key) {
                *sent = Sent::Unacknowledged;
            }
        }
    }

    pub(crate) fn merge(&mut self, other: Self) {
        other.sent.into_iter().for_each(|(key, sent)| self.note(key, sent));
    }

    pub(crate) fn audit(&self, journal: Vec<JournalRow>) -> Audit {
        let rows = journal.len();
        let journal: HashSet<Key> = journal.into_iter().map(|row| Key { session: row.session, id: row.key }).collect();
        let in_journal = self.sent.keys().filter(|key| journal.contains(*key)).count();
        let acknowledged: Vec<_> =
            self.sent.iter().filter(|(_, sent)| **sent == Sent::Acknowledged).map(|(key, _)| key).collect();
        Audit {
            sent: self.sent.len(),
            acknowledged: acknowledged.len(),
            in_journal,
            lost: acknowledged.into_iter().filter(|key| !journal.contains(*key)).count(),
            doubled: rows - in_journal,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: &str) -> Key {
        Key { session: "s".into(), id: id.into() }
    }

    fn row(id: &str) -> JournalRow {
        JournalRow { session: "s".into(), key: id.into() }
    }

    #[test]
    fn counts_what_was_promised_and_is_not_there_and_what_is_there_too_often() {
        let mut ledger = Ledger::default();
        ledger.note(key("kept"), Sent::Acknowledged);
        ledger.note(key("lost"), Sent::Acknowledged);
        ledger.note(key("refused"), Sent::Unacknowledged);
        ledger.note(key("late"), Sent::Unacknowledged);
        let audit = ledger.audit(vec![row("kept"), row("kept"), row("late"), row("stranger")]);
        assert_eq!(audit, Audit { sent: 4, acknowledged: 2, in_journal: 2, lost: 1, doubled: 2 });
    }

    #[test]
    fn an_event_sent_twice_is_one_and_acknowledged_if_it_was_once() {
        let mut ledger = Ledger::default();
        ledger.note(key("a"), Sent::Acknowledged);
        ledger.note(key("a"), Sent::Unacknowledged);
        assert_eq!(ledger.audit(vec![]), Audit { sent: 1, acknowledged: 1, lost: 1, ..Audit::default() });
        ledger.only_if(|_| false);
        assert_eq!(ledger.audit(vec![]).acknowledged, 0);
    }
}
