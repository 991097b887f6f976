//! What came of a lesson that stopped a call: whether the agent repeated that very call, did it another way, or let it be, and whether what it
//! repeated then failed.

use crate::shell;

/// A lesson that stopped a call, or had a person asked.
#[derive(Debug, Clone)]
pub(crate) struct Fired {
    pub(crate) event: i64,
    pub(crate) action: String,
    pub(crate) action_key: String,
}

/// A call of the same session that ran afterwards.
#[derive(Debug, Clone)]
pub(crate) struct LaterCall {
    pub(crate) key: String,
    pub(crate) summary: String,
    pub(crate) failed: bool,
}

/// What came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Settled {
    pub(crate) event: i64,
    /// `obeyed`, or `overridden`.
    pub(crate) outcome: &'static str,
    /// `same`, `changed` or `none`.
    pub(crate) retry: &'static str,
    pub(crate) failed_again: bool,
}

/// So many calls later nobody is doing the same thing any more.
const SOON: usize = 10;

/// Judges by the calls that ran after the lesson, in their order.
pub(crate) fn settle(fired: &Fired, later: &[LaterCall]) -> Settled {
    let event = fired.event;
    let repeated: Vec<_> = later.iter().filter(|call| call.key == fired.action_key).collect();
    if !repeated.is_empty() {
        let failed_again = repeated.iter().any(|call| call.failed);
        return Settled { event, outcome: "overridden", retry: "same", failed_again };
    }
    let is_changed = later.iter().take(SOON).any(|call| shell::are_alike(&fired.action, &call.summary));
    Settled { event, outcome: "obeyed", retry: if is_changed { "changed" } else { "none" }, failed_again: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(later: &[(&str, &str, bool)], expected: (&str, &str, bool)) {
        let fired = Fired { event: 1, action: "git push --force".into(), action_key: "a".into() };
        let later: Vec<_> = later
            .iter()
            .map(|(key, summary, failed)| LaterCall { key: (*key).into(), summary: (*summary).into(), failed: *failed })
            .collect();
        let Settled { outcome, retry, failed_again, .. } = settle(&fired, &later);
        assert_eq!((outcome, retry, failed_again), expected);
    }

    #[test]
    fn tells_a_repeated_call_from_a_changed_one_and_none() {
        check(&[("b", "ls", false), ("a", "git push --force", false)], ("overridden", "same", false));
        check(&[("a", "git push --force", true)], ("overridden", "same", true));
        check(&[("c", "git push --force-with-lease", false)], ("obeyed", "changed", false));
        check(&[("b", "ls", false)], ("obeyed", "none", false));
        check(&[], ("obeyed", "none", false));
    }
}
