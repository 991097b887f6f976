//! How long a reply may be, in tokens, and cutting what is longer: long texts keep head and tail and say between them how much is
//! missing. What was JSON stays JSON.
//!
//! Tokens are estimated: 4 bytes one, and a character of a script without spaces one. Pure functions.

use serde_json::{Map, Value};

/// A quarter of a token.
type Quarters = usize;

/// What every value may take, however little there is: room enough for the mark of what was left out.
const LEAST: Quarters = 96;
/// The member that is the agents' own: it may lose members and elements. The others are ours and have a schema.
const FREE: &str = "input";

/// Records cut to what they may take together.
#[derive(Debug, PartialEq)]
pub(crate) struct Fitted {
    pub(crate) records: Vec<Value>,
    /// What was cut of each record: where it stood, and how much is missing.
    pub(crate) cuts: Vec<Vec<String>>,
}

/// Cuts the longest texts of records until all of them take `max_tokens` together; the shorter ones stay whole. Only texts are cut,
/// and inside `input` lists and objects too.
pub(crate) fn fit(records: Vec<Value>, max_tokens: usize) -> Fitted {
    let costs: Vec<_> = records.iter().map(cost).collect();
    let level = level(&costs, max_tokens * 4).max(LEAST);
    let mut cuts = Vec::with_capacity(records.len());
    let records = records
        .into_iter()
        .map(|record| {
            let mut of_record = Vec::new();
            let record = Cutter { cuts: &mut of_record }.ours(record, level, "");
            cuts.push(of_record);
            record
        })
        .collect();
    Fitted { records, cuts }
}

/// What a value takes, written as JSON.
pub(crate) fn tokens(value: &Value) -> usize {
    cost(value).div_ceil(4)
}

fn cost(value: &Value) -> Quarters {
    match value {
        Value::Null => 4,
        Value::Bool(_) | Value::Number(_) => value.to_string().len(),
        Value::String(text) => cost_of_text(text) + 2,
        Value::Array(items) => 2 + items.iter().map(|item| cost(item) + 1).sum::<Quarters>(),
        Value::Object(members) => {
            2 + members.iter().map(|(name, member)| cost_of_text(name) + 4 + cost(member)).sum::<Quarters>()
        }
    }
}

fn cost_of_text(text: &str) -> Quarters {
    text.chars().map(cost_of_char).sum()
}

fn cost_of_char(c: char) -> Quarters {
    let is_unspaced = matches!(c, '\u{2e80}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{ff00}'..='\u{ffef}'
        | '\u{20000}'..='\u{3ffff}');
    if is_unspaced { 4 } else { c.len_utf8() }
}

/// How much each may take so that all of them together take what is allowed: what is shorter leaves its share to the others.
fn level(costs: &[Quarters], allowed: Quarters) -> Quarters {
    let mut sorted = costs.to_vec();
    sorted.sort_unstable();
    let mut left = allowed;
    for (number, cost) in sorted.iter().enumerate() {
        let sharing = sorted.len() - number;
        if cost * sharing > left {
            return left / sharing;
        }
        left -= cost;
    }
    Quarters::MAX
}

struct Cutter<'a> {
    cuts: &'a mut Vec<String>,
}

impl Cutter<'_> {
    /// A value of ours keeps its members; it may take more than is allowed where they are many.
    fn ours(&mut self, value: Value, allowed: Quarters, place: &str) -> Value {
        if cost(&value) <= allowed {
            return value;
        }
        match value {
            Value::String(text) => Value::String(self.text(&text, allowed, place)),
            Value::Array(items) => {
                let level = level(&items.iter().map(|item| cost(item) + 1).collect::<Vec<_>>(), allowed - 2).max(LEAST);
                let items = items.into_iter().enumerate();
                items.map(|(number, item)| self.ours(item, level - 1, &format!("{place}[{number}]"))).collect()
            }
            Value::Object(members) => {
                let level = level(&costs_of(&members), allowed - 2).max(LEAST);
                let shorter = members.into_iter().map(|(name, member)| {
                    let place = join(place, &name);
                    let allowed = level.saturating_sub(cost_of_text(&name) + 4).max(LEAST);
                    let member = if name == FREE {
                        self.free(member, allowed, &place)
                    } else {
                        self.ours(member, allowed, &place)
                    };
                    (name, member)
                });
                Value::Object(shorter.collect())
            }
            scalar => scalar,
        }
    }

    /// A value that takes at most what is allowed, or [`LEAST`].
    fn free(&mut self, value: Value, allowed: Quarters, place: &str) -> Value {
        if cost(&value) <= allowed {
            return value;
        }
        match value {
            Value::String(text) => Value::String(self.text(&text, allowed, place)),
            Value::Array(items) => self.list(items, allowed, place),
            Value::Object(members) => self.object(members, allowed, place),
            scalar => scalar,
        }
    }

    fn list(&mut self, items: Vec<Value>, allowed: Quarters, place: &str) -> Value {
        let costs: Vec<_> = items.iter().map(|item| cost(item) + 1).collect();
        let Share { kept, level } = share(&costs, allowed);
        let left_out = items.len() - kept;
        let mut shorter: Vec<_> = items
            .into_iter()
            .take(kept)
            .enumerate()
            .map(|(number, item)| self.free(item, level.saturating_sub(1), &format!("{place}[{number}]")))
            .collect();
        if left_out > 0 {
            self.cuts.push(format!("{place}: {left_out} of {} elements left out", costs.len()));
            shorter.push(Value::String(format!("[… {left_out} more elements left out …]")));
        }
        Value::Array(shorter)
    }

    fn object(&mut self, members: Map<String, Value>, allowed: Quarters, place: &str) -> Value {
        let costs = costs_of(&members);
        let Share { kept, level } = share(&costs, allowed);
        let left_out = members.len() - kept;
        let mut shorter = Map::new();
        for (name, member) in members.into_iter().take(kept) {
            let allowed = level.saturating_sub(cost_of_text(&name) + 4);
            let member = self.free(member, allowed, &join(place, &name));
            shorter.insert(name, member);
        }
        if left_out > 0 {
            self.cuts.push(format!("{place}: {left_out} of {} members left out", costs.len()));
            shorter.insert("…".to_owned(), Value::String(format!("[… {left_out} more members left out …]")));
        }
        Value::Object(shorter)
    }

    /// Head and tail of a text, and between them how much is missing.
    fn text(&mut self, text: &str, allowed: Quarters, place: &str) -> String {
        // The mark is longest where everything is missing.
        let room = allowed.saturating_sub(2 + cost_of_text(&mark(text.len())));
        let head = &text[..end_of(text.char_indices(), room - room / 2)];
        let tail_chars =
            text[head.len()..].char_indices().rev().map(|(at, c)| (text.len() - head.len() - at - c.len_utf8(), c));
        let tail = &text[text.len() - end_of(tail_chars, room / 2)..];
        let missing = text.len() - head.len() - tail.len();
        self.cuts.push(format!("{place}: {missing} of {} bytes left out", text.len()));
        format!("{head}{}{tail}", mark(missing))
    }
}

fn mark(missing_bytes: usize) -> String {
    format!("[… {missing_bytes} bytes left out: ask with a larger max_tokens …]")
}

/// Where the characters end that take so much; each comes with how far it is from the beginning.
fn end_of(chars: impl Iterator<Item = (usize, char)>, room: Quarters) -> usize {
    let mut left = room;
    let mut end = 0;
    for (at, c) in chars {
        let Some(rest) = left.checked_sub(cost_of_char(c)) else { break };
        left = rest;
        end = at + c.len_utf8();
    }
    end
}

/// How many parts are kept, and how much each may take.
struct Share {
    kept: usize,
    level: Quarters,
}

/// Each part gets [`LEAST`] and its name, or what it needs if that is less; if that is too much for all, the last ones go.
fn share(costs: &[Quarters], allowed: Quarters) -> Share {
    let inner = allowed.saturating_sub(2);
    let all = level(costs, inner);
    if all >= LEAST * 2 {
        return Share { kept: costs.len(), level: all };
    }
    let inner = inner.saturating_sub(LEAST);
    let mut taken = 0;
    let kept = costs
        .iter()
        .take_while(|cost| {
            taken += (**cost).min(LEAST * 2);
            taken <= inner
        })
        .count();
    Share { kept, level: level(&costs[..kept], inner) }
}

fn costs_of(members: &Map<String, Value>) -> Vec<Quarters> {
    members.iter().map(|(name, member)| cost_of_text(name) + 4 + cost(member)).collect()
}

fn join(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::from),
            "[a-z äß字库\n\"]{0,40}".prop_map(Value::from),
            ("[a-z 漢é]{1,20}", 1..400usize).prop_map(|(text, times)| Value::from(text.repeat(times))),
        ];
        leaf.prop_recursive(3, 40, 12, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..12).prop_map(Value::from),
                prop::collection::hash_map("[a-z]{1,8}", inner, 0..12)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn keeps_an_input_within_its_budget_and_whole_where_it_fits(input in any_json(), allowed in 0..6_000usize) {
            let mut cuts = Vec::new();
            let fitted = Cutter { cuts: &mut cuts }.free(input.clone(), allowed, "input");
            prop_assert!(cost(&fitted) <= allowed.max(LEAST), "{} of {allowed}: {fitted}", cost(&fitted));
            prop_assert_eq!(cuts.is_empty(), fitted == input);
            prop_assert_eq!(cost(&input) <= allowed || matches!(input, Value::Null | Value::Number(_)), cuts.is_empty());
        }

        #[test]
        fn cuts_a_text_in_the_middle_and_nowhere_else(text in "[a-zäß字库 ]{0,2000}", allowed in LEAST..3_000usize) {
            let mut cuts = Vec::new();
            let fitted = Cutter { cuts: &mut cuts }.free(Value::from(text.clone()), allowed, "output");
            let fitted = fitted.as_str().unwrap();
            if cuts.is_empty() {
                prop_assert_eq!(fitted, text);
            } else {
                let (head, rest) = fitted.split_once("[… ").unwrap();
                let (missing, tail) = rest.split_once(" bytes left out: ask with a larger max_tokens …]").unwrap();
                prop_assert!(text.starts_with(head) && text.ends_with(tail));
                prop_assert_eq!(head.len() + tail.len() + missing.parse::<usize>().unwrap(), text.len());
            }
        }

        #[test]
        fn keeps_the_members_of_a_record(input in any_json(), output in "[a-z字]{0,3000}", max_tokens in 50..2_000usize) {
            let record = json!({"id": "call-1", "input": input, "output": output, "failed": false});
            let Fitted { records, cuts } = fit(vec![record.clone(), json!({"id": "note-1"})], max_tokens);
            let names = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
            prop_assert_eq!(names(&records[0]), names(&record));
            prop_assert_eq!(&records[0]["id"], "call-1");
            prop_assert_eq!(&records[1], &json!({"id": "note-1"}));
            prop_assert_eq!(cuts[0].is_empty(), records[0] == record);
            let taken: usize = records.iter().map(tokens).sum();
            prop_assert!(taken <= max_tokens.max(150), "{taken} of {max_tokens}");
        }
    }

    #[test]
    fn leaves_to_long_texts_what_short_ones_do_not_take() {
        let records = vec![json!({"output": "x".repeat(8_000)}), json!({"output": "y".repeat(400)})];
        let Fitted { records, cuts } = fit(records, 500);
        assert_eq!(records[1]["output"], "y".repeat(400));
        let length = records[0]["output"].as_str().unwrap().len();
        assert!((1_400..=1_600).contains(&length), "{length}");
        assert!(cuts[0][0].starts_with("output: 6") && cuts[0][0].ends_with(" of 8000 bytes left out"), "{cuts:?}");
    }

    #[test]
    fn counts_a_character_without_spaces_as_a_token() {
        assert_eq!(tokens(&json!("漢字漢字")), 5);
        assert_eq!(tokens(&json!("abcdabcd")), 3);
    }

    #[test]
    fn leaves_out_the_last_of_many_small_parts() {
        let record = json!({"input": {"numbers": (0..10_000).collect::<Vec<_>>(), "command": "ls"}});
        let Fitted { records, cuts } = fit(vec![record], 300);
        assert_eq!(records[0]["input"]["command"], "ls");
        let numbers = records[0]["input"]["numbers"].as_array().unwrap();
        assert!(numbers.len() > 100 && numbers.last().unwrap().as_str().unwrap().contains("more elements"));
        assert!(
            cuts[0][0].starts_with("input.numbers: ") && cuts[0][0].ends_with("of 10000 elements left out"),
            "{cuts:?}"
        );
    }
}
