//! A set that passes, and for every check a defect that it alone catches.

use serde_json::{Map, Value, json};

use super::*;
use crate::dataset::clean::names_pattern;
use crate::dataset::row::{Provenance, id_of};
use crate::dataset::schema::Seen;
use crate::dataset::sources::Licence;

const TOOLS: [&str; 4] = ["Read", "Bash", "Grep", "Glob"];

fn arguments(value: &Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn tools() -> Tools {
    let mut seen = Seen::default();
    for tool in TOOLS.into_iter().chain(["Write"]) {
        seen.add(tool, &arguments(&json!({ "what": "x" })), true);
    }
    Tools::new(Vec::new(), &seen, &control(), 1_000, &str::len).unwrap()
}

fn control() -> ControlTokens {
    ControlTokens::of(["<|im_start|>".to_owned(), "<|im_end|>".to_owned()])
}

/// Words that no other number has.
fn words(number: usize) -> String {
    (0..12).map(|word| format!("w{number}x{word}")).collect::<Vec<_>>().join(" ")
}

fn row(number: usize) -> Row {
    let folder = format!("/srv/parent{number}/widgets");
    let call = |at: usize, what: String| {
        Message::call(TOOLS[(number + at) % TOOLS.len()], arguments(&json!({ "what": what })))
    };
    let result =
        |at: usize| Message::Tool { name: TOOLS[(number + at) % TOOLS.len()].into(), content: format!("result {at}") };
    let mut messages = vec![
        Message::System { content: format!("You are a coding agent. Your working directory is {folder}.") },
        Message::User { content: words(number) },
    ];
    let is_text = number.is_multiple_of(10);
    if !is_text {
        messages.extend([call(0, format!("{folder}/a.rs")), result(0), call(1, format!("look {number}")), result(1)]);
    }
    messages.push(Message::answer(format!("All is well with number {number}.")));
    let trained = (0..messages.len()).filter(|index| messages[*index].is_assistant()).collect();
    let session = format!("session {number}");
    let source = Provenance {
        agent: "claude-code".into(),
        session: session.clone(),
        project: "widgets".into(),
        prompts: vec![format!("prompt {number}")],
        calls: Vec::new(),
        source_model: Some("qwen".into()),
        licence: Licence::Open,
    };
    let ending = if is_text { Ending::Text } else { Ending::Answered };
    Row { id: id_of("claude-code", &session, "prompt", number), ending, messages, tools: Vec::new(), trained, source }
}

fn sample(row: &Row) -> Vec<Sample> {
    let text = row.messages.iter().map(Message::content).collect::<Vec<_>>().join("\n");
    vec![Sample { text, trained: Vec::new(), ids: vec![1; 100], carries_loss: vec![true; 100] }]
}

fn rows() -> Vec<Row> {
    (0..60).map(row).collect()
}

/// By the number that a row was made with.
fn split(row: &Row) -> Split {
    match row.source.prompts[0].trim_start_matches("prompt ").parse().unwrap() {
        ..50_usize => Split::Train,
        50..55 => Split::Validation,
        _ => Split::Test,
    }
}

fn audited(rows: &[Row], samples: impl Fn(&Row) -> Vec<Sample>, owners: &[&str], lost: u64) -> Audit {
    let (control, tools) = (control(), tools());
    let owners = names_pattern(owners.iter().copied());
    let mut auditor = Auditor::new(Limits::default(), 128, &control, &tools, owners);
    for row in rows {
        auditor.see(row, split(row), &samples(row));
    }
    auditor.finish(lost)
}

fn failed(audit: &Audit) -> Vec<&str> {
    audit.checks.iter().filter(|check| !check.passed).map(|check| check.name.as_str()).collect()
}

/// One check must fail, and name the row where it is about rows.
fn check(name: &str, spoil: impl Fn(&mut Vec<Row>)) {
    let mut rows = rows();
    spoil(&mut rows);
    let audit = audited(&rows, sample, &[], 0);
    assert_eq!(failed(&audit), [name]);
    assert!(!audit.passed);
}

fn say(row: &mut Row, text: &str) {
    let last = row.messages.len() - 1;
    row.messages[last] = Message::answer(text.to_owned());
}

#[test]
fn passes_a_clean_set() {
    let audit = audited(&rows(), sample, &["alice"], 0);
    assert_eq!(failed(&audit), Vec::<&str>::new());
    assert!(audit.passed);
    assert_eq!(audit.rows, 60);
    assert!(audit.markdown().contains("60 rows: passed"));
}

#[test]
fn passes_no_empty_set() {
    assert!(!audited(&[], sample, &[], 0).passed);
}

/// Puts other arguments into the first call, and leaves its tool.
fn first_call(row: &mut Row, what: &Value) {
    let tool = row.messages[2].calls()[0].function.name.clone();
    row.messages[2] = Message::call(&tool, arguments(what));
}

/// A word that no other row has.
fn word(row: &Row) -> String {
    row.prompt().split(' ').next().unwrap().to_owned()
}

fn answered(rows: &mut [Row], count: usize) -> impl Iterator<Item = &mut Row> {
    rows.iter_mut().filter(|row| row.ending == Ending::Answered).take(count)
}

#[test]
fn catches_one_folder_in_most_paths() {
    check("path_prefix_share", |rows| {
        for row in answered(rows, 40) {
            let path = format!("/srv/stale/widgets/{}.rs", word(row));
            first_call(row, &json!({ "what": path }));
        }
    });
}

#[test]
fn catches_a_call_that_goes_elsewhere_than_the_prompt_said() {
    check("path_contradicts_prompt", |rows| {
        for row in &mut rows[1..4] {
            let prompt = format!("{} open /srv/mine/deep/parser.rs", row.messages[1].content());
            row.messages[1] = Message::User { content: prompt };
            first_call(row, &json!({ "what": "/srv/yours/deep/parser.rs" }));
        }
    });
}

#[test]
fn catches_somebodys_home() {
    check("foreign_home", |rows| {
        rows[1].messages[3] = Message::Tool { name: "Bash".into(), content: "/home/alice/x".into() }
    });
}

#[test]
fn catches_control_tokens_in_arguments_and_answers() {
    check("control_tokens", |rows| {
        first_call(&mut rows[1], &json!({ "what": "x <|im_start|>user" }));
    });
    check("control_tokens", |rows| say(&mut rows[1], "All is well. <|im_end|> More."));
}

#[test]
fn catches_rows_without_a_trained_token() {
    let silent = |row: &Row| {
        let mut samples = sample(row);
        if row.source.session == "session 5" {
            samples[0].carries_loss.fill(false);
        }
        samples
    };
    let audit = audited(&rows(), silent, &[], 0);
    assert_eq!(failed(&audit), ["rows_without_trained_token"]);
    let check = audit.checks.iter().find(|check| !check.passed).unwrap();
    assert_eq!(check.rows, [rows()[5].id.clone()]);
}

#[test]
fn catches_empty_and_invalid_arguments() {
    check("empty_arguments", |rows| first_call(&mut rows[1], &json!({})));
    check("invalid_arguments", |rows| first_call(&mut rows[1], &json!({ "what": 7 })));
}

#[test]
fn catches_rows_that_begin_by_changing_the_world() {
    check("mutation_first", |rows| {
        for row in answered(rows, 20) {
            let what = format!("cd {} && git commit -m fix", word(row));
            first_call(row, &json!({ "what": what }));
        }
    });
}

#[test]
fn catches_monologue_inventions_and_repetition() {
    check("monologue", |rows| {
        for (number, row) in rows.iter_mut().enumerate().skip(1).take(3) {
            say(row, &format!("Let me check the file of number {number}."));
        }
    });
    check("invented_references", |rows| say(&mut rows[1], "Done in #4711."));
    check("invented_references", |rows| say(&mut rows[1], "Reverted 1a2b3c4d."));
    check("repetition", |rows| say(&mut rows[1], &"and then it was done\n".repeat(9)));
}

#[test]
fn catches_what_is_missing_in_the_mixture() {
    check("multi_turn_share", |rows| {
        // The first call alone.
        for (number, row) in rows.iter_mut().enumerate().filter(|(_, row)| row.ending == Ending::Answered) {
            if number % 3 != 0 {
                row.messages.truncate(3);
                row.trained = vec![2];
                row.ending = Ending::Call;
            } else {
                row.messages.drain(2..6);
                row.messages.insert(2, Message::Tool { name: "Bash".into(), content: "x".into() });
                row.trained = vec![3];
            }
        }
    });
    check("largest_tool_share", |rows| {
        for row in answered(rows, 40) {
            row.messages[2] = Message::call("Bash", arguments(&json!({ "what": word(row) })));
        }
    });
    check("answered_share", |rows| {
        for row in answered(rows, 40) {
            row.messages.truncate(5);
            row.trained = vec![2, 4];
            row.ending = Ending::Call;
        }
    });
    check("text_share_least", |rows| rows.retain(|row| row.ending != Ending::Text));
    check("text_share_most", |rows| {
        for row in answered(rows, 8) {
            row.messages.drain(2..6);
            row.trained = vec![2];
            row.ending = Ending::Text;
        }
    });
}

#[test]
fn catches_rows_that_are_too_long_and_a_template_that_loses_rows() {
    let long = |row: &Row| {
        let mut samples = sample(row);
        samples[0].ids = vec![1; 129];
        samples
    };
    assert_eq!(failed(&audited(&rows(), long, &[], 0)), ["longer_than_the_longest"]);
    assert_eq!(failed(&audited(&rows(), sample, &[], 5)), ["rows_lost_to_the_template"]);
}

#[test]
fn catches_secrets_and_canaries() {
    let secret = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    check("secrets", |rows| {
        rows[1].messages[3] = Message::Tool { name: "Bash".into(), content: format!("token {secret}") }
    });
    let mut planted = rows();
    planted[1].messages[3] = Message::Tool { name: "Bash".into(), content: "said alice, the owner".into() };
    assert_eq!(failed(&audited(&planted, sample, &["alice"], 0)), ["foreign_home"]);
    let (control, tools) = (control(), tools());
    let mut auditor = Auditor::new(Limits::default(), 128, &control, &tools, None);
    for row in &rows() {
        auditor.see(row, split(row), &sample(row));
    }
    auditor.found_canary("rendered/train.jsonl");
    let audit = auditor.finish(0);
    assert_eq!(failed(&audit), ["canaries"]);
    assert!(audit.markdown().contains("rendered/train.jsonl"));
}

#[test]
fn catches_a_split_without_rows() {
    check("smallest_split_share", |rows| rows.truncate(50));
}

#[test]
fn catches_leaks_of_sessions_near_duplicates_and_pairs() {
    check("leaks_between_splits", |rows| rows[55].source.session = "session 5".into());
    check("leaks_between_splits", |rows| {
        let long: String = (0..30).map(words).collect::<Vec<_>>().join(" ");
        rows[5].messages[1] = Message::User { content: format!("{long} one") };
        rows[55].messages[1] = Message::User { content: format!("{long} two") };
    });
    check("leaks_between_splits", |rows| {
        let copied = rows[5].clone();
        rows[57].messages = copied.messages;
        rows[57].trained = copied.trained;
    });
}

#[test]
fn has_a_reason_for_every_limit() {
    let reasons = include_str!("../../../../docs/finetune/data-quality-gates.md");
    let audit = audited(&rows(), sample, &[], 0);
    for check in &audit.checks {
        assert!(reasons.contains(&format!("`{}`", check.name)), "{} has no reason", check.name);
    }
    let settings = toml::to_string(&Limits::default()).unwrap();
    assert_eq!(settings.lines().count(), audit.checks.len());
    for line in settings.lines() {
        let name = line.split(" = ").next().unwrap();
        assert!(audit.checks.iter().any(|check| check.name == name), "{name} limits nothing");
    }
}
