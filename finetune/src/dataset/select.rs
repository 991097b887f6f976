//! Which turns of the journal become rows, and what of a turn is trained on. Text that nobody typed, images and calls that never ran
//! teach nothing.

use std::sync::LazyLock;

use memory::event::NOT_KEPT;
use memory::store::{TrainingCall, TrainingSession, TrainingTurn};
use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::clean::any_string;
use super::settings::{FailedCalls, Filter, Settings, StoppedCalls};
use super::sources::Licence;

/// A prompt, what was done for it, and the closing answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Turn {
    pub prompt_id: String,
    pub prompt: String,
    pub steps: Vec<Step>,
    pub answer: Option<String>,
}

/// A call and what it gave back.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Step {
    pub call_id: String,
    pub tool: String,
    pub arguments: Map<String, Value>,
    pub result: String,
    /// Whether the call may carry loss.
    pub is_trained: bool,
}

/// Why something of the journal is not in the dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dropped {
    /// The source model's licence class was not allowed.
    Licence,
    /// Nobody typed it: a notification, a reminder, a command of the client.
    InjectedText,
    /// It is about a picture.
    Image,
    /// The content was not kept, or only its beginning and end.
    NotWhole,
    /// A call failed, and only successful turns were asked for.
    Failed,
    /// Neither a call nor an answer that could carry loss.
    NothingToTrain,
    /// Longer than the longest row, even alone.
    TooLong,
    /// The rendered text still looks like a secret.
    Secret,
    /// It says nearly the same as a row before it.
    NearDuplicate,
    /// The project's weight.
    Weight,
    /// There are too many of its ending.
    Share,
    /// The base model's template does not render it as a server would send it.
    Template,
}

impl Dropped {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Licence => "licence",
            Self::InjectedText => "injected_text",
            Self::Image => "image",
            Self::NotWhole => "not_whole",
            Self::Failed => "failed",
            Self::NothingToTrain => "nothing_to_train",
            Self::TooLong => "too_long",
            Self::Secret => "secret",
            Self::NearDuplicate => "near_duplicate",
            Self::Weight => "weight",
            Self::Share => "share",
            Self::Template => "template",
        }
    }

    /// As a person reads it.
    pub const fn why(self) -> &'static str {
        match self {
            Self::Licence => "the class of the source model is not among those that are used",
            Self::InjectedText => {
                "nobody typed the prompt: it is a notification, a reminder or a command of the client"
            }
            Self::Image => "it is about a picture",
            Self::NotWhole => "the journal holds only a part of the prompt",
            Self::Failed => "a call of it failed, and only successful turns were asked for",
            Self::NothingToTrain => "it has neither a call nor an answer that could carry loss",
            Self::TooLong => "it is longer than the longest row",
            Self::Secret => "its rendered text still looks like a secret",
            Self::NearDuplicate => "it says nearly the same as a row before it",
            Self::Weight => "the weight of its project",
            Self::Share => "there are too many rows that end like it",
            Self::Template => "the base model's template does not render it as a server would send it",
        }
    }
}

/// Elements that other clients open a prompt of their own with.
const INJECTED: [&str; 4] = ["<environment_context", "<user_instructions", "<permissions", "<bash-input"];

/// How a text that was cut in the middle says so.
const CUT: &str = " bytes left out …]";

/// How calls end that never ran to their end because a person, or a rule of theirs, stopped them.
const STOPPED: [&str; 8] = [
    "interrupted",
    "[Request interrupted",
    "The user doesn't want to",
    "Permission to use ",
    "Claude requested permissions to ",
    "PreToolUse:",
    "exec command rejected by user",
    "Request was aborted",
];

impl Filter {
    pub fn takes(&self, session: &TrainingSession, licence: Licence) -> bool {
        let has = |list: &[String], value: &str| list.iter().any(|item| item == value);
        let takes =
            |list: &[String], value: Option<&str>| list.is_empty() || value.is_some_and(|value| has(list, value));
        takes(&self.projects, Some(&session.project))
            && !has(&self.without_projects, &session.project)
            && takes(&self.agents, Some(&session.agent))
            && takes(&self.source_models, session.source_model.as_deref())
            && self.since.is_none_or(|since| session.started_at >= since)
            && self.until.is_none_or(|until| session.started_at < until)
            && self.licences.contains(&licence)
    }
}

/// The part of a turn that can teach something.
pub(super) fn select(turn: TrainingTurn, settings: &Settings) -> Result<Turn, Dropped> {
    if turn.prompt.trim().is_empty() || !is_whole(&turn.prompt) || turn.calls.iter().any(|call| call.output_is_gone) {
        return Err(Dropped::NotWhole);
    }
    let prompt = typed(&turn.prompt).ok_or(Dropped::InjectedText)?;
    if has_image(&prompt) {
        return Err(Dropped::Image);
    }
    if settings.filter.only_successful && turn.calls.iter().any(|call| !call.success || call.outcome_is_assumed) {
        return Err(Dropped::Failed);
    }
    let was_stopped = turn.calls.iter().any(is_stopped);
    let count = turn.calls.len();
    let steps: Vec<_> = turn.calls.into_iter().filter_map(|call| step(call, settings)).collect();
    // What is said after a person stopped the work is no closing answer, and what rests on a call that is not there is made up.
    let answer = turn.answer.filter(|_| !was_stopped && steps.len() == count);
    let answer = answer.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty() && is_whole(text));
    if answer.is_none() && !steps.iter().any(|step| step.is_trained) {
        return Err(Dropped::NothingToTrain);
    }
    Ok(Turn { prompt_id: turn.prompt_id, prompt, steps, answer })
}

/// Nothing of a call that is left out.
fn step(call: TrainingCall, settings: &Settings) -> Option<Step> {
    let is_stopped = is_stopped(&call);
    if is_stopped && settings.stopped_calls == StoppedCalls::Drop {
        return None;
    }
    if !settings.own_tools && is_own_tool(&call.tool_name) {
        return None;
    }
    let may_be_trained = match (call.success, settings.failed_calls) {
        (true, _) | (false, FailedCalls::Train) => true,
        (false, FailedCalls::Mask) => false,
        (false, FailedCalls::Drop) => return None,
    };
    let arguments = match call.input {
        Value::Object(members) => members,
        // A tool that takes one text and no object.
        other => Map::from_iter([("input".to_owned(), other)]),
    };
    let result = match (call.output, call.error) {
        (Some(output), Some(error)) if !output.contains(&error) => format!("{error}\n{output}"),
        (Some(output), _) => output,
        (None, error) => error.unwrap_or_default(),
    };
    let is_cut = arguments.values().any(|value| any_string(value, &|text| !is_whole(text)));
    // Of what was only counted, not even that it was called like this is known.
    if has_image(&result) || result.contains(NOT_KEPT) {
        return None;
    }
    let is_trained = may_be_trained && !is_stopped && !is_cut && !call.outcome_is_assumed;
    let result = result.trim_end().to_owned();
    Some(Step { call_id: call.tool_use_id, tool: call.tool_name, arguments, result, is_trained })
}

fn is_stopped(call: &TrainingCall) -> bool {
    call.error.as_deref().is_some_and(|error| STOPPED.iter().any(|start| error.starts_with(start)))
}

fn is_own_tool(name: &str) -> bool {
    static OWN: LazyLock<Regex> =
        LazyLock::new(|| Regex::new("(?i)(^|_)agent[-_]memory(_|$)").expect("the pattern is constant"));
    OWN.is_match(name)
}

/// What a person typed of a prompt; nothing where a client wrote all of it, or it is a command to the client.
fn typed(prompt: &str) -> Option<String> {
    static COMMAND: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"^/[a-z][a-z0-9_:-]*(\s|$)").expect("the pattern is constant"));
    let typed = memory::transcripts::typed_by_person(prompt)?;
    let typed = typed.trim();
    let is_injected = INJECTED.iter().any(|tag| typed.starts_with(tag)) || COMMAND.is_match(typed);
    (!is_injected && !typed.is_empty()).then(|| typed.to_owned())
}

/// What the journal, and clients, write where a picture was, or another file that is no text.
fn has_image(text: &str) -> bool {
    static IMAGE: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(r"\[(?:Image #\d+|image|(?:image|audio|video|application)/[a-z0-9.+-]+, [^\]]*|binary, [^\]]*)\]")
            .expect("the pattern is constant")
    });
    IMAGE.is_match(text)
}

/// Whether all of a text was kept.
fn is_whole(text: &str) -> bool {
    !text.contains(NOT_KEPT) && !text.contains(CUT)
}

#[cfg(test)]
mod tests {
    use memory::store::TrainingCall;
    use serde_json::json;

    use super::*;

    fn call(tool: &str, input: Value, output: Option<&str>, error: Option<&str>) -> TrainingCall {
        TrainingCall {
            tool_use_id: "toolu_1".into(),
            tool_name: tool.into(),
            input,
            output: output.map(str::to_owned),
            success: error.is_none(),
            error: error.map(str::to_owned),
            ..TrainingCall::default()
        }
    }

    fn turn(prompt: &str, calls: Vec<TrainingCall>, answer: Option<&str>) -> TrainingTurn {
        TrainingTurn {
            prompt_id: "p1".into(),
            prompt: prompt.into(),
            answer: answer.map(str::to_owned),
            calls,
            ..TrainingTurn::default()
        }
    }

    fn check(prompt: &str, expected: Dropped) {
        let selected = select(turn(prompt, Vec::new(), Some("Yes.")), &Settings::default());
        assert_eq!(selected.unwrap_err(), expected, "{prompt}");
    }

    #[test]
    fn leaves_out_what_nobody_typed_and_pictures() {
        check("<task-notification>done</task-notification>", Dropped::InjectedText);
        check("<system-reminder>be nice</system-reminder>", Dropped::InjectedText);
        check("/compact", Dropped::InjectedText);
        check("/review the parser", Dropped::InjectedText);
        check("<ide_opened_file>a.rs</ide_opened_file>", Dropped::InjectedText);
        check("what is this? [Image #1]", Dropped::Image);
        check("what is this? [image]", Dropped::Image);
        check("begin\n[… 70000 bytes left out …]\nend", Dropped::NotWhole);
        check("  ", Dropped::NotWhole);
        let selected = select(
            turn("/srv/a.rs is wrong\n<system-reminder>x</system-reminder>", Vec::new(), Some("Yes.")),
            &Settings::default(),
        );
        assert_eq!(selected.unwrap().prompt, "/srv/a.rs is wrong");
    }

    #[test]
    fn keeps_a_failed_call_without_its_loss() {
        let calls = || {
            vec![
                call("Bash", json!({"command": "x"}), None, Some("Exit code 1")),
                call("Bash", json!({"command": "y"}), Some("ok"), None),
            ]
        };
        let selected = |failed_calls| {
            select(turn("go", calls(), None), &Settings { failed_calls, ..Settings::default() }).unwrap()
        };
        let trained = |turn: &Turn| turn.steps.iter().map(|step| step.is_trained).collect::<Vec<_>>();
        let masked = selected(FailedCalls::Mask);
        assert_eq!(trained(&masked), [false, true]);
        assert_eq!(masked.steps[0].result, "Exit code 1");
        assert_eq!(trained(&selected(FailedCalls::Drop)), [true]);
        assert_eq!(trained(&selected(FailedCalls::Train)), [true, true]);
        let mut only = Settings::default();
        only.filter.only_successful = true;
        assert_eq!(select(turn("go", calls(), None), &only).unwrap_err(), Dropped::Failed);
    }

    #[test]
    fn leaves_out_what_was_stopped_and_the_last_words_after_it() {
        let refused = "The user doesn't want to proceed with this tool use. The tool use was rejected";
        let calls = || {
            vec![
                call("Bash", json!({"command": "a"}), Some("ok"), None),
                call("Bash", json!({"command": "b"}), None, Some(refused)),
            ]
        };
        let dropped = select(turn("go", calls(), Some("I stopped.")), &Settings::default()).unwrap();
        assert_eq!((dropped.steps.len(), dropped.answer), (1, None));
        let settings = Settings { stopped_calls: StoppedCalls::Mask, ..Settings::default() };
        let masked = select(turn("go", calls(), None), &settings).unwrap();
        assert_eq!(masked.steps.iter().map(|step| step.is_trained).collect::<Vec<_>>(), [true, false]);
    }

    #[test]
    fn leaves_out_its_own_tools_and_results_that_are_pictures() {
        let calls = vec![
            call("mcp__agent-memory__search", json!({"query": "x"}), Some("found"), None),
            call("mcp_agent-memory_search", json!({"query": "x"}), Some("found"), None),
            call("Read", json!({"file_path": "a.png"}), Some("[image/png, 48 kB]"), None),
            call("apply_patch", json!("*** Begin Patch"), Some("done"), None),
        ];
        let selected = select(turn("go", calls, None), &Settings::default()).unwrap();
        let tools: Vec<_> = selected.steps.iter().map(|step| step.tool.as_str()).collect();
        assert_eq!(tools, ["apply_patch"]);
        assert_eq!(selected.steps[0].arguments["input"], "*** Begin Patch", "a text becomes an object");
    }

    #[test]
    fn has_no_answer_that_rests_on_a_call_which_is_not_there() {
        let asked = call("mcp__agent-memory__search", json!({"query": "x"}), Some("We use tabs."), None);
        let only = select(turn("what did we decide?", vec![asked.clone()], Some("We use tabs.")), &Settings::default());
        assert_eq!(only.unwrap_err(), Dropped::NothingToTrain);
        let calls = vec![asked, call("Bash", json!({"command": "x"}), Some("ok"), None)];
        let selected = select(turn("go", calls, Some("We use tabs.")), &Settings::default()).unwrap();
        assert_eq!((selected.steps.len(), selected.answer), (1, None));
        let gone = TrainingCall { output_is_gone: true, ..call("Bash", json!({"command": "x"}), None, None) };
        assert_eq!(select(turn("go", vec![gone], Some("Done.")), &Settings::default()).unwrap_err(), Dropped::NotWhole);
        let not_kept = call("Bash", json!({}), Some(NOT_KEPT), None);
        assert_eq!(
            select(turn("go", vec![not_kept], None), &Settings::default()).unwrap_err(),
            Dropped::NothingToTrain
        );
    }

    #[test]
    fn learns_no_call_that_was_cut_or_whose_outcome_nobody_told() {
        let cut = call("Write", json!({"content": "a\n[… 9 bytes left out …]\nz"}), Some("ok"), None);
        let assumed =
            TrainingCall { outcome_is_assumed: true, ..call("Bash", json!({"command": "x"}), Some("ok"), None) };
        let long = call("Bash", json!({"command": "x"}), Some("a\n[… 9 bytes left out …]\nz"), None);
        let selected = select(turn("go", vec![cut, assumed, long], None), &Settings::default()).unwrap();
        assert_eq!(selected.steps.iter().map(|step| step.is_trained).collect::<Vec<_>>(), [false, false, true]);
    }

    #[test]
    fn needs_something_to_train_on() {
        let calls = vec![call("Bash", json!({"command": "x"}), None, Some("Exit code 1"))];
        assert_eq!(select(turn("go", calls, None), &Settings::default()).unwrap_err(), Dropped::NothingToTrain);
    }
}
