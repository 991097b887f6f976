//! What share of the rows ends how, and what share of the trained calls is of which tool. A model that saw one tool in most rows
//! calls that tool; one that never saw an answer never answers.

use std::collections::BTreeMap;

use super::row::{Ending, draw};
use super::settings::Shares;

/// What balancing knows of a row.
#[derive(Debug, Clone)]
pub(super) struct Weighed {
    pub id: String,
    pub ending: Ending,
    /// The trained calls: the tool, and the index of the message.
    pub calls: Vec<(u16, u32)>,
}

/// What becomes of the rows.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Balance {
    /// Places of rows that are left out, in order.
    pub without: Vec<usize>,
    /// By place of a row: the messages of it that lose their loss.
    pub masked: BTreeMap<usize, Vec<u32>>,
}

/// Brings rows to the shares. What goes is drawn by the seed; what cannot be reached by leaving out stays as it is, for the audit to
/// tell.
pub(super) fn balance(rows: &[Weighed], shares: &Shares, seed: u64) -> Balance {
    let mut balance = Balance::default();
    mask_calls(rows, shares.tool, seed, &mut balance);
    let mut left: Vec<usize> =
        (0..rows.len()).filter(|place| !is_empty(&rows[*place], balance.masked.get(place))).collect();

    let count = |left: &[usize], ending| left.iter().filter(|place| rows[**place].ending == ending).count();
    let answered = count(&left, Ending::Answered);
    let others = left.len() - answered;
    if answered > 0 && shares.answered > 0.0 {
        let most = (answered as f64 * (1.0 - shares.answered) / shares.answered) as usize;
        let calls = count(&left, Ending::Call);
        let excess = others.saturating_sub(most).min(calls);
        leave_out(rows, &mut left, Ending::Call, excess, seed);
    }
    let texts = count(&left, Ending::Text);
    let others = left.len() - texts;
    if others > 0 && shares.text < 1.0 {
        let most = (others as f64 * shares.text / (1.0 - shares.text)) as usize;
        leave_out(rows, &mut left, Ending::Text, texts.saturating_sub(most), seed);
    }

    let mut left = left.into_iter().peekable();
    balance.without = (0..rows.len()).filter(|place| left.next_if_eq(place).is_none()).collect();
    balance.masked.retain(|place, _| balance.without.binary_search(place).is_err());
    balance
}

fn is_empty(row: &Weighed, masked: Option<&Vec<u32>>) -> bool {
    row.ending == Ending::Call && masked.is_some_and(|masked| masked.len() == row.calls.len())
}

fn leave_out(rows: &[Weighed], left: &mut Vec<usize>, ending: Ending, count: usize, seed: u64) {
    let mut those: Vec<_> = left.iter().copied().filter(|place| rows[*place].ending == ending).collect();
    those.sort_by_key(|place| draw(seed, &["share", &rows[*place].id]));
    those.truncate(count);
    those.sort_unstable();
    left.retain(|place| those.binary_search(place).is_err());
}

/// Takes the loss from calls of tools that are more than their share: they stay in the conversation, and are not learnt from.
fn mask_calls(rows: &[Weighed], share: f64, seed: u64, balance: &mut Balance) {
    let mut by_tool: BTreeMap<u16, Vec<(usize, u32)>> = BTreeMap::new();
    for (place, row) in rows.iter().enumerate() {
        for (tool, message) in &row.calls {
            by_tool.entry(*tool).or_default().push((place, *message));
        }
    }
    let counts: Vec<_> = by_tool.values().map(Vec::len).collect();
    let Some(most) = most_of_one(&counts, share) else { return };
    for calls in by_tool.values_mut().filter(|calls| calls.len() > most) {
        calls.sort_by_key(|(place, message)| draw(seed, &["tool", &rows[*place].id, &message.to_string()]));
        for (place, message) in calls.drain(most..) {
            balance.masked.entry(place).or_default().push(message);
        }
    }
    balance.masked.values_mut().for_each(|messages| messages.sort_unstable());
}

/// The largest number of calls of one tool with which no tool has more than its share; none if there is none, or nothing to do.
fn most_of_one(counts: &[usize], share: f64) -> Option<usize> {
    let largest = counts.iter().copied().max()?;
    let fits = |most: usize| {
        let sum: usize = counts.iter().map(|count| (*count).min(most)).sum();
        most as f64 <= share * sum as f64
    };
    if fits(largest) {
        return None;
    }
    // The share of the largest grows with what it may be.
    let (mut low, mut high) = (0, largest);
    while low + 1 < high {
        let middle = low.midpoint(high);
        if fits(middle) { low = middle } else { high = middle }
    }
    (low > 0).then_some(low)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row(number: usize, ending: Ending, tools: &[u16]) -> Weighed {
        let calls = tools.iter().enumerate().map(|(at, tool)| (*tool, at as u32 * 2 + 2)).collect();
        Weighed { id: format!("row{number}"), ending, calls }
    }

    fn tool_shares(rows: &[Weighed], balance: &Balance) -> Vec<f64> {
        let mut counts = BTreeMap::<u16, usize>::new();
        for (place, row) in rows.iter().enumerate().filter(|(place, _)| !balance.without.contains(place)) {
            let masked = balance.masked.get(&place).cloned().unwrap_or_default();
            for (tool, _) in row.calls.iter().filter(|(_, message)| !masked.contains(message)) {
                *counts.entry(*tool).or_default() += 1;
            }
        }
        let all: usize = counts.values().sum();
        counts.values().map(|count| *count as f64 / all as f64).collect()
    }

    #[test]
    fn takes_the_loss_from_a_tool_that_is_everywhere() {
        let mut rows: Vec<_> = (0..60).map(|number| row(number, Ending::Answered, &[0, 0])).collect();
        rows.extend((60..100).map(|number| row(number, Ending::Answered, &[1, 2, 3])));
        let balance = balance(&rows, &Shares::default(), 7);
        assert!(balance.without.is_empty());
        let shares = tool_shares(&rows, &balance);
        assert!(shares.iter().all(|share| *share <= 0.35), "{shares:?}");
        assert_eq!(shares.len(), 4);
    }

    #[test]
    fn leaves_out_what_ends_too_often_in_the_same_way() {
        let mut rows: Vec<_> = (0..70).map(|number| row(number, Ending::Call, &[(number % 5) as u16])).collect();
        rows.extend((70..80).map(|number| row(number, Ending::Answered, &[(number % 5) as u16])));
        rows.extend((80..100).map(|number| row(number, Ending::Text, &[])));
        let balance = balance(&rows, &Shares::default(), 7);
        let left: Vec<_> = (0..100).filter(|place| !balance.without.contains(place)).collect();
        let share =
            |ending| left.iter().filter(|place| rows[**place].ending == ending).count() as f64 / left.len() as f64;
        assert!(share(Ending::Answered) >= 0.30, "{}", share(Ending::Answered));
        assert!(share(Ending::Text) <= 0.15, "{}", share(Ending::Text));
    }

    #[test]
    fn leaves_what_leaving_out_does_not_mend() {
        let rows: Vec<_> = (0..10).map(|number| row(number, Ending::Call, &[0])).collect();
        assert_eq!(balance(&rows, &Shares::default(), 7), Balance::default());
    }

    proptest! {
        #[test]
        fn keeps_every_tool_within_its_share_if_there_are_enough(counts in proptest::collection::vec(1_usize..60, 4..9)) {
            let mut rows = Vec::new();
            for (tool, count) in counts.iter().enumerate() {
                rows.extend((0..*count).map(|number| row(tool * 100 + number, Ending::Answered, &[tool as u16])));
            }
            let balance = balance(&rows, &Shares { answered: 0.0, text: 1.0, tool: 0.35 }, 7);
            if most_of_one(&counts, 0.35).is_some() {
                prop_assert!(tool_shares(&rows, &balance).iter().all(|share| *share <= 0.35 + 1e-9));
            }
        }
    }
}
