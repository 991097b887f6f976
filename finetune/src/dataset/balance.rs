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

/// Shares are aimed at a little inside of what is asked: a few rows are lost after this.
const MARGIN: f64 = 0.03;
/// Each decision changes what the others count; after this many rounds nothing moves any more.
const ROUNDS: usize = 8;

/// Brings rows to the shares. What goes is drawn by the seed; what cannot be reached by leaving out stays as it is, for the audit to
/// tell.
pub(super) fn balance(rows: &[Weighed], shares: &Shares, seed: u64) -> Balance {
    let mut left: Vec<usize> = (0..rows.len()).collect();
    let mut masked = BTreeMap::new();
    for _ in 0..ROUNDS {
        let before = left.len();
        trim_texts(rows, &mut left, shares.text * (1.0 - MARGIN), seed);
        trim_calls(rows, &mut left, shares.answered * (1.0 + MARGIN), seed);
        masked = mask_calls(rows, &left, shares.tool * (1.0 - MARGIN), seed);
        left.retain(|place| !is_empty(&rows[*place], masked.get(place)));
        if left.len() == before {
            break;
        }
    }
    let mut places = left.into_iter().peekable();
    let without: Vec<usize> = (0..rows.len()).filter(|place| places.next_if_eq(place).is_none()).collect();
    masked.retain(|place, _| without.binary_search(place).is_err());
    Balance { without, masked }
}

fn count(rows: &[Weighed], left: &[usize], ending: Ending) -> usize {
    left.iter().filter(|place| rows[**place].ending == ending).count()
}

fn trim_texts(rows: &[Weighed], left: &mut Vec<usize>, share: f64, seed: u64) {
    let texts = count(rows, left, Ending::Text);
    let others = left.len() - texts;
    if others > 0 && share < 1.0 {
        let most = (others as f64 * share / (1.0 - share)) as usize;
        leave_out(rows, left, Ending::Text, texts.saturating_sub(most), seed);
    }
}

fn trim_calls(rows: &[Weighed], left: &mut Vec<usize>, share: f64, seed: u64) {
    let answered = count(rows, left, Ending::Answered);
    if answered > 0 && share > 0.0 {
        let most = (answered as f64 * (1.0 - share).max(0.0) / share) as usize;
        let excess = (left.len() - answered).saturating_sub(most).min(count(rows, left, Ending::Call));
        leave_out(rows, left, Ending::Call, excess, seed);
    }
}

fn is_empty(row: &Weighed, masked: Option<&Vec<u32>>) -> bool {
    row.ending == Ending::Call && masked.is_some_and(|masked| masked.len() == row.calls.len())
}

fn leave_out(rows: &[Weighed], left: &mut Vec<usize>, ending: Ending, count: usize, seed: u64) {
    let mut those: Vec<_> = left.iter().copied().filter(|place| rows[*place].ending == ending).collect();
    those.sort_by_cached_key(|place| draw(seed, &["share", &rows[*place].id]));
    those.truncate(count);
    those.sort_unstable();
    left.retain(|place| those.binary_search(place).is_err());
}

/// Takes the loss from calls of tools that are more than their share: they stay in the conversation, and are not learnt from.
fn mask_calls(rows: &[Weighed], left: &[usize], share: f64, seed: u64) -> BTreeMap<usize, Vec<u32>> {
    let mut by_tool: BTreeMap<u16, Vec<(usize, u32)>> = BTreeMap::new();
    for place in left {
        for (tool, message) in &rows[*place].calls {
            by_tool.entry(*tool).or_default().push((*place, *message));
        }
    }
    let mut masked: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
    let counts: Vec<_> = by_tool.values().map(Vec::len).collect();
    let Some(most) = most_of_one(&counts, share) else { return masked };
    for calls in by_tool.values_mut().filter(|calls| calls.len() > most) {
        calls.sort_by_cached_key(|(place, message)| draw(seed, &["tool", &rows[*place].id, &message.to_string()]));
        for (place, message) in calls.drain(most..) {
            masked.entry(place).or_default().push(message);
        }
    }
    for messages in masked.values_mut() {
        messages.sort_unstable();
    }
    masked
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
    fn keeps_the_calls_where_only_the_texts_are_too_many() {
        let mut rows: Vec<_> = (0..100).map(|number| row(number, Ending::Answered, &[(number % 5) as u16])).collect();
        rows.extend((100..200).map(|number| row(number, Ending::Call, &[(number % 5) as u16])));
        rows.extend((200..1_000).map(|number| row(number, Ending::Text, &[])));
        let balance = balance(&rows, &Shares::default(), 7);
        let left: Vec<_> = (0..rows.len()).filter(|place| !balance.without.contains(place)).collect();
        assert_eq!(count(&rows, &left, Ending::Answered), 100);
        assert_eq!(count(&rows, &left, Ending::Call), 100);
        assert!((30..=35).contains(&count(&rows, &left, Ending::Text)));
    }

    #[test]
    fn masks_what_leaving_out_has_made_too_much() {
        let mut rows: Vec<_> = (0..175).map(|number| row(number, Ending::Answered, &[0, 0])).collect();
        rows.extend((175..825).map(|number| row(number, Ending::Call, &[(number % 3 + 1) as u16])));
        let balance = balance(&rows, &Shares::default(), 7);
        let left: Vec<_> = (0..rows.len()).filter(|place| !balance.without.contains(place)).collect();
        let answered = count(&rows, &left, Ending::Answered) as f64 / left.len() as f64;
        assert!(answered >= 0.30, "{answered}");
        let shares = tool_shares(&rows, &balance);
        assert!(shares.iter().all(|share| *share <= 0.35), "{shares:?}");
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
            // Four tools with five calls or more can always be brought below that.
            if counts.iter().filter(|count| **count >= 5).count() >= 4 {
                prop_assert!(tool_shares(&rows, &balance).iter().all(|share| *share <= 0.35));
            }
        }
    }
}
