//! One answer against the recorded one: which metrics apply, and what each of them says.

use std::collections::{BTreeMap, BTreeSet};

use jsonschema::Validator;
use serde_json::Value;

use super::metrics::{Metric, Scores};
use super::parse::Parsed;
use super::{Answer, ast, grounding, loops, parse};
use crate::dataset::row::{Call, Function, Message};
use crate::dataset::{SchemaError, validator};

/// The tools that a row offers.
#[derive(Debug)]
pub(super) struct Offered(BTreeMap<String, Tool>);

#[derive(Debug)]
struct Tool {
    validator: Validator,
    required: Vec<String>,
}

/// What an answer is judged by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Turn<'a> {
    pub(super) prompt: &'a str,
    pub(super) recorded: &'a Message,
    pub(super) offered: &'a Offered,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Judged {
    pub(super) scores: Scores,
    /// The tool of the first call that was recorded, and that of the first that was made.
    pub(super) recorded: Option<String>,
    pub(super) called: Option<String>,
}

impl Offered {
    pub(super) fn of(tools: &[Value]) -> Result<Self, SchemaError> {
        let mut offered = BTreeMap::new();
        for tool in tools {
            let function = &tool["function"];
            let required = function["parameters"]["required"].as_array().into_iter().flatten();
            let required = required.filter_map(Value::as_str).map(str::to_owned).collect();
            let name = function["name"].as_str().unwrap_or_default().to_owned();
            offered.insert(name, Tool { validator: validator(tool)?, required });
        }
        Ok(Self(offered))
    }

    fn accepts(&self, call: &Function) -> bool {
        let tool = self.0.get(&call.name);
        tool.is_some_and(|tool| tool.validator.is_valid(&Value::Object(call.arguments.clone())))
    }

    fn required(&self, name: &str) -> &[String] {
        self.0.get(name).map_or(&[], |tool| &tool.required)
    }
}

pub(super) fn judge(turn: Turn<'_>, answer: &Answer) -> Judged {
    judge_parsed(turn, answer, &parse(&answer.text))
}

/// The recorded answer's own scores: where a metric applies to it, a model is asked for it.
pub(super) fn judge_recorded(turn: Turn<'_>) -> Judged {
    let answer = Answer { text: turn.recorded.content().to_owned(), stopped: true, tokens: 0 };
    judge_parsed(turn, &answer, &Parsed::recorded(turn.recorded))
}

fn judge_parsed(turn: Turn<'_>, answer: &Answer, given: &Parsed) -> Judged {
    let mut scores = Scores::default();
    let mut set = |metric, is_so: bool| scores.set(metric, f64::from(u8::from(is_so)));
    let recorded = turn.recorded.calls();
    set(Metric::StopRate, answer.stopped);
    set(Metric::LoopRate, loops::loops(answer, given));
    if !recorded.is_empty() || given.tries_to_call() {
        set(Metric::ParseRate, given.malformed == 0 && !given.calls.is_empty());
        let is_accepted = given.calls.iter().all(|call| turn.offered.accepts(call));
        set(Metric::SchemaValidRate, is_accepted && !given.calls.is_empty());
    }
    if recorded.is_empty() {
        set(Metric::NeedlessCallRate, given.tries_to_call());
        set(Metric::TextAnswerRate, !given.tries_to_call() && !given.text.is_empty());
    }
    let first_recorded = recorded.first().map(|call| &call.function);
    let paths = given.calls.first().map(grounding::paths).unwrap_or_default();
    if !paths.is_empty() {
        let is_told = |path: &&str| grounding::is_told(path, turn.prompt, first_recorded);
        set(Metric::PathGrounding, paths.iter().all(is_told));
    }
    if let Some(first) = first_recorded {
        let given_first = given.calls.first().filter(|call| call.name == first.name);
        set(Metric::ToolNameAccuracy, given_first.is_some());
        set(Metric::ExactMatch, are_alike(given, recorded, |given, recorded| given == recorded));
        let required = |name: &str| turn.offered.required(name);
        let is_same = |given: &Function, recorded: &Function| ast::matches(given, recorded, required(&recorded.name));
        set(Metric::AstMatch, are_alike(given, recorded, is_same));
        scores.set(Metric::ArgumentKeyF1, given_first.map_or(0.0, |given| key_f1(given, first)));
    }
    Judged {
        scores,
        recorded: first_recorded.map(|call| call.name.clone()),
        called: given.calls.first().map(|call| call.name.clone()),
    }
}

/// Whether an answer has the recorded calls in their order, and no others.
fn are_alike(given: &Parsed, recorded: &[Call], is_same: impl Fn(&Function, &Function) -> bool) -> bool {
    let mut pairs = given.calls.iter().zip(recorded);
    given.malformed == 0
        && given.calls.len() == recorded.len()
        && pairs.all(|(given, recorded)| is_same(given, &recorded.function))
}

/// The harmonic mean of which share of the given names was recorded, and which share of the recorded ones was given.
fn key_f1(given: &Function, recorded: &Function) -> f64 {
    let given: BTreeSet<_> = given.arguments.keys().collect();
    let recorded: BTreeSet<_> = recorded.arguments.keys().collect();
    let all = given.len() + recorded.len();
    let both = given.intersection(&recorded).count();
    if all == 0 { 1.0 } else { 2.0 * both as f64 / all as f64 }
}

#[cfg(test)]
mod tests {
    use Metric::{
        ArgumentKeyF1, AstMatch, ExactMatch, LoopRate, NeedlessCallRate, ParseRate, PathGrounding, SchemaValidRate,
        StopRate, TextAnswerRate, ToolNameAccuracy,
    };
    use serde_json::json;

    use super::*;
    use crate::eval::METRICS;
    use crate::eval::fake::{call, members, tools};

    const PROMPT: &str = "read src/a.rs";

    fn judged(recorded: &Message, text: &str, stopped: bool) -> Scores {
        let offered = Offered::of(&tools()).unwrap();
        let turn = Turn { prompt: PROMPT, recorded, offered: &offered };
        judge(turn, &Answer { text: text.into(), stopped, tokens: 5 }).scores
    }

    /// Where a call to read `src/a.rs` was recorded.
    fn check_call(text: &str, metric: Metric) -> Option<f64> {
        let recorded = Message::call("Read", members(&json!({"file_path": "src/a.rs", "limit": 5})));
        judged(&recorded, text, true).get(metric)
    }

    /// Where text was recorded.
    fn check_text(text: &str, metric: Metric) -> Option<f64> {
        judged(&Message::answer("All is well.".into()), text, true).get(metric)
    }

    fn read(arguments: &Value) -> String {
        call("Read", arguments)
    }

    #[test]
    fn asks_for_a_well_formed_call_where_one_was_recorded_or_tried() {
        let good = read(&json!({"file_path": "x"}));
        assert_eq!(check_call(&good, ParseRate), Some(1.0));
        assert_eq!(check_call("I would read it.", ParseRate), Some(0.0));
        assert_eq!(check_call("<tool_call>{", ParseRate), Some(0.0));
        assert_eq!(check_call(&format!("{good}<tool_call>{{"), ParseRate), Some(0.0), "one of two");
        assert_eq!(check_text("Well.", ParseRate), None);
        assert_eq!(check_text("<tool_call>{", ParseRate), Some(0.0));
        assert_eq!(check_text(&good, ParseRate), Some(1.0));
    }

    #[test]
    fn asks_for_offered_tools_and_arguments_that_fit() {
        let good = read(&json!({"file_path": "x"}));
        assert_eq!(check_call(&good, SchemaValidRate), Some(1.0));
        assert_eq!(check_call(&read(&json!({"file_path": 1})), SchemaValidRate), Some(0.0));
        assert_eq!(check_call(&read(&json!({})), SchemaValidRate), Some(0.0));
        assert_eq!(check_call(&call("Fly", &json!({})), SchemaValidRate), Some(0.0), "not offered");
        assert_eq!(check_call(&format!("{good}{}", read(&json!({}))), SchemaValidRate), Some(0.0), "one of two");
        assert_eq!(check_call("I would read it.", SchemaValidRate), Some(0.0));
        assert_eq!(check_text("Well.", SchemaValidRate), None);
    }

    #[test]
    fn compares_the_first_call_with_the_recorded_one() {
        let other = call("Bash", &json!({"command": "ls"}));
        let right = read(&json!({"file_path": "src/a.rs", "limit": 5}));
        assert_eq!(check_call(&right, ToolNameAccuracy), Some(1.0));
        assert_eq!(check_call(&other, ToolNameAccuracy), Some(0.0));
        assert_eq!(check_call(&format!("{other}{right}"), ToolNameAccuracy), Some(0.0), "the first counts");
        assert_eq!(check_call("no call", ToolNameAccuracy), Some(0.0));
        assert_eq!(check_text(&right, ToolNameAccuracy), None);
    }

    #[test]
    fn weighs_argument_names() {
        let f1 = |text: &str| check_call(text, ArgumentKeyF1).unwrap();
        assert!((f1(&read(&json!({"file_path": "b"}))) - 2.0 / 3.0).abs() < 1e-9);
        assert!((f1(&read(&json!({"file_path": "b", "limit": 1}))) - 1.0).abs() < 1e-9);
        assert!(f1(&call("Bash", &json!({"file_path": "b"}))).abs() < 1e-9, "another tool");
        assert!(f1("no call").abs() < 1e-9);
        let empty = judged(&Message::call("List", members(&json!({}))), &call("List", &json!({})), true);
        assert_eq!(empty.get(ArgumentKeyF1), Some(1.0));
        assert_eq!(check_text("Well.", ArgumentKeyF1), None);
    }

    #[test]
    fn tells_the_same_from_what_means_the_same() {
        let right = read(&json!({"limit": 5, "file_path": "src/a.rs"}));
        let alike = read(&json!({"file_path": "./src/a.rs"}));
        let other = read(&json!({"file_path": "src/b.rs"}));
        assert_eq!((check_call(&right, ExactMatch), check_call(&right, AstMatch)), (Some(1.0), Some(1.0)));
        assert_eq!((check_call(&alike, ExactMatch), check_call(&alike, AstMatch)), (Some(0.0), Some(1.0)));
        assert_eq!((check_call(&other, ExactMatch), check_call(&other, AstMatch)), (Some(0.0), Some(0.0)));
        let without = read(&json!({"limit": 5}));
        assert_eq!(check_call(&without, AstMatch), Some(0.0), "the schema asks for the path");
        let more = format!("{right}{other}");
        assert_eq!((check_call(&more, ExactMatch), check_call(&more, AstMatch)), (Some(0.0), Some(0.0)));
        let broken = format!("{right}<tool_call>{{");
        assert_eq!((check_call(&broken, ExactMatch), check_call(&broken, AstMatch)), (Some(0.0), Some(0.0)));
        assert_eq!((check_text("Well.", ExactMatch), check_text("Well.", AstMatch)), (None, None));
    }

    #[test]
    fn asks_for_text_where_text_was_recorded() {
        for (text, is_text, calls) in
            [("Well.", 1.0, 0.0), ("", 0.0, 0.0), ("Well. <tool_call>{", 0.0, 1.0), (&read(&json!({})), 0.0, 1.0)]
        {
            assert_eq!(check_text(text, TextAnswerRate), Some(is_text), "{text}");
            assert_eq!(check_text(text, NeedlessCallRate), Some(calls), "{text}");
        }
        assert_eq!((check_call("Well.", TextAnswerRate), check_call("Well.", NeedlessCallRate)), (None, None));
    }

    #[test]
    fn looks_for_paths_that_nobody_told_of() {
        assert_eq!(check_call(&read(&json!({"file_path": "src/a.rs"})), PathGrounding), Some(1.0));
        assert_eq!(check_call(&read(&json!({"file_path": "path/to/file"})), PathGrounding), Some(0.0));
        let second = format!("{}{}", read(&json!({"file_path": "src/a.rs"})), read(&json!({"file_path": "made/up"})));
        assert_eq!(check_call(&second, PathGrounding), Some(1.0), "the first call counts");
        assert_eq!(check_call(&call("Bash", &json!({"command": "ls"})), PathGrounding), None);
        assert_eq!(check_text("see made/up.rs", PathGrounding), None);
    }

    #[test]
    fn watches_for_loops_and_for_the_end_of_every_turn() {
        let recorded = Message::answer("All is well.".into());
        assert_eq!(judged(&recorded, "Well.", true).get(StopRate), Some(1.0));
        assert_eq!(judged(&recorded, "Well.", false).get(StopRate), Some(0.0));
        assert_eq!(judged(&recorded, "Well.", true).get(LoopRate), Some(0.0));
        assert_eq!(judged(&recorded, &"well ".repeat(40), true).get(LoopRate), Some(1.0));
    }

    #[test]
    fn finds_no_fault_with_what_was_recorded() {
        let offered = Offered::of(&tools()).unwrap();
        let recorded = Message::call("Read", members(&json!({"file_path": "nobody/told.rs"})));
        let judged = judge_recorded(Turn { prompt: PROMPT, recorded: &recorded, offered: &offered });
        for facts in &METRICS {
            let best = f64::from(u8::from(facts.higher_is_better));
            assert!(judged.scores.get(facts.metric).is_none_or(|score| (score - best).abs() < 1e-9), "{}", facts.name);
        }
        assert_eq!((judged.recorded.as_deref(), judged.called.as_deref()), (Some("Read"), Some("Read")));
    }

    #[test]
    fn names_the_tool_whose_schema_is_none() {
        let tool = json!({"type": "function", "function": {"name": "Odd", "parameters": {"type": "nonsense"}}});
        assert!(Offered::of(&[tool]).unwrap_err().to_string().contains("`Odd`"));
    }
}
