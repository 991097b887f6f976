//! From turns to rows: a prompt with its calls, results and closing answer, opened by earlier turns of the session as far as there
//! is room. A turn that is longer than a row becomes several, cut between calls; each keeps the system message and the prompt.

use serde_json::Value;

use super::clean::{is_grounded, is_monologue, map_texts, repeats_itself, settle};
use super::row::{Ending, Message, Provenance, Row, id_of};
use super::select::{Dropped, Step, Turn};
use super::sources::Licence;

/// A session, as its rows tell of it.
#[derive(Debug, Clone)]
pub(super) struct Session {
    pub agent: String,
    pub id: String,
    pub project: String,
    pub source_model: Option<String>,
    pub licence: Licence,
    /// The folder of the checkout, as the cleaned texts have it.
    pub folder: Option<String>,
}

/// How much a row holds, in tokens, without the offered tools.
#[derive(Clone, Copy)]
pub(super) struct Room<'a> {
    pub tokens: usize,
    /// How many earlier turns a row may open with.
    pub earlier_turns: usize,
    /// How many tokens a text takes.
    pub count: &'a dyn Fn(&str) -> usize,
    /// Decides where a row's checkout lies.
    pub seed: u64,
}

/// What the base model's template puts around a message, at most.
const MESSAGE_TOKENS: usize = 14;
/// Around a call, with its name and the names of its members.
const CALL_TOKENS: usize = 24;
/// What the template says about tools, and the head of the answer.
const FRAME_TOKENS: usize = 160;

/// A turn with what each part of it takes.
#[derive(Debug, Clone)]
pub(super) struct Measured {
    turn: Turn,
    prompt: usize,
    /// The call, and its result.
    steps: Vec<(usize, usize)>,
    answer: usize,
}

impl Measured {
    pub(super) fn of(turn: Turn, count: &dyn Fn(&str) -> usize) -> Self {
        let steps = turn.steps.iter().map(|step| {
            let arguments = count(&Value::Object(step.arguments.clone()).to_string());
            (arguments + count(&step.tool) + CALL_TOKENS + MESSAGE_TOKENS, count(&step.result) + MESSAGE_TOKENS)
        });
        let steps = steps.collect();
        let answer = turn.answer.as_deref().map_or(0, |answer| count(answer) + MESSAGE_TOKENS);
        Self { prompt: count(&turn.prompt) + MESSAGE_TOKENS, steps, answer, turn }
    }

    fn tokens(&self) -> usize {
        self.prompt + self.steps.iter().map(|(call, result)| call + result).sum::<usize>() + self.answer
    }
}

/// The rows of a turn, and why parts of it became none. `earlier` are the turns before it, the latest last.
pub(super) fn rows(
    session: &Session,
    earlier: &[Measured],
    turn: &Measured,
    room: Room<'_>,
) -> Vec<Result<Row, Dropped>> {
    let system = system_message(session.folder.as_deref());
    let taken = FRAME_TOKENS + (room.count)(&system) + MESSAGE_TOKENS + turn.prompt;
    let Some(free) = room.tokens.checked_sub(taken) else { return vec![Err(Dropped::TooLong)] };
    let parts = parts(turn, free);
    if parts.is_empty() {
        return vec![Err(Dropped::TooLong)];
    }
    let is_whole = parts.len() == 1 && parts[0] == Part { lead: 0, from: 0, to: turn.steps.len(), has_answer: true };
    let earlier = if is_whole { opening(earlier, room, taken + turn.tokens() - turn.prompt) } else { &[] };
    let build = |(number, part): (usize, &Part)| {
        let mut draft = Draft::new(session, &system, earlier, &turn.turn);
        draft.add(&turn.turn, *part);
        draft.finish(id_of(&session.agent, &session.id, &turn.turn.prompt_id, number), room.seed)
    };
    parts.iter().enumerate().map(build).collect()
}

fn system_message(folder: Option<&str>) -> String {
    match folder {
        Some(folder) => format!("You are a coding agent. Your working directory is {folder}."),
        None => "You are a coding agent.".to_owned(),
    }
}

/// The latest of the earlier turns that there is room for. Only turns that were answered make sense to whoever goes on from there.
fn opening<'a>(earlier: &'a [Measured], room: Room<'_>, taken: usize) -> &'a [Measured] {
    let mut free = room.tokens.saturating_sub(taken);
    let mut start = earlier.len();
    while start > 0 && earlier.len() - start < room.earlier_turns {
        let turn = &earlier[start - 1];
        if turn.turn.answer.is_none() || turn.tokens() > free {
            break;
        }
        free -= turn.tokens();
        start -= 1;
    }
    &earlier[start..]
}

/// Some of the steps of a turn, and its answer with the last of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Part {
    /// The first step that is shown. What stands first in a later part carries no loss: without what led to it, it would teach to
    /// begin with it.
    lead: usize,
    /// The first step that no part before this has.
    from: usize,
    to: usize,
    has_answer: bool,
}

/// As few parts as there is room for; a step that has no room alone is in none.
fn parts(turn: &Measured, room: usize) -> Vec<Part> {
    let cost = |number: usize| turn.steps[number].0 + turn.steps[number].1;
    let end = turn.steps.len();
    let mut parts = Vec::new();
    let (mut lead, mut from, mut used) = (0, 0, 0);
    for number in 0..end {
        if used + cost(number) > room {
            if number > from {
                parts.push(Part { lead, from, to: number, has_answer: false });
            }
            (lead, from, used) = (number, number, 0);
            if cost(number) > room {
                (lead, from) = (number + 1, number + 1);
                continue;
            }
            if number > 0 && cost(number - 1) + cost(number) <= room {
                (lead, used) = (number - 1, cost(number - 1));
            }
        }
        used += cost(number);
    }
    let has_answer = used + turn.answer <= room;
    // An answer to what is not in its row teaches to make it up.
    if from < end || (end == 0 && has_answer) {
        parts.push(Part { lead, from, to: end, has_answer });
    }
    parts
}

/// A row that is being put together.
struct Draft {
    messages: Vec<Message>,
    trained: Vec<usize>,
    source: Provenance,
}

impl Draft {
    fn new(session: &Session, system: &str, earlier: &[Measured], turn: &Turn) -> Self {
        let source = Provenance {
            agent: session.agent.clone(),
            session: session.id.clone(),
            project: session.project.clone(),
            prompts: Vec::new(),
            calls: Vec::new(),
            source_model: session.source_model.clone(),
            licence: session.licence,
        };
        let messages = vec![Message::System { content: system.to_owned() }];
        let mut draft = Self { messages, trained: Vec::new(), source };
        for Measured { turn, .. } in earlier {
            draft.ask(turn);
            for step in &turn.steps {
                draft.call(step);
                draft.result(step);
            }
            draft.messages.push(Message::answer(turn.answer.clone().unwrap_or_default()));
        }
        draft.ask(turn);
        draft
    }

    fn ask(&mut self, turn: &Turn) {
        self.messages.push(Message::User { content: turn.prompt.clone() });
        self.source.prompts.push(turn.prompt_id.clone());
    }

    fn call(&mut self, step: &Step) {
        self.messages.push(Message::call(&step.tool, step.arguments.clone()));
        self.source.calls.push(step.call_id.clone());
    }

    fn result(&mut self, step: &Step) {
        self.messages.push(Message::Tool { name: step.tool.clone(), content: step.result.clone() });
    }

    /// The part of the turn that is trained on.
    fn add(&mut self, turn: &Turn, part: Part) {
        for (number, step) in turn.steps.iter().enumerate().take(part.to).skip(part.lead) {
            let is_new = number >= part.from && (number > part.lead || number == 0);
            let call = Message::call(&step.tool, step.arguments.clone());
            if is_new && step.is_trained && self.may_be_learnt(&call) {
                self.trained.push(self.messages.len());
            }
            self.call(step);
            self.result(step);
        }
        if let Some(answer) = turn.answer.as_deref().filter(|_| part.has_answer) {
            let is_report = !is_monologue(answer) && !memory::redact::is_cleaned(answer);
            let answer = Message::answer(answer.to_owned());
            if is_report && self.may_be_learnt(&answer) {
                self.trained.push(self.messages.len());
                self.messages.push(answer);
            }
        }
    }

    /// Neither endless repetition nor a claim that stands nowhere before.
    fn may_be_learnt(&self, message: &Message) -> bool {
        !repeats_itself(message) && message.claims().all(|text| is_grounded(text, &self.messages))
    }

    fn finish(self, id: String, seed: u64) -> Result<Row, Dropped> {
        let Self { messages, trained, source } = self;
        let row = Row { id, ending: Ending::Text, messages, tools: Vec::new(), trained, source };
        let mut row = row.ends_where_trained().ok_or(Dropped::NothingToTrain)?;
        for message in &mut row.messages {
            settle_message(message, &row.id, seed);
        }
        Ok(row)
    }
}

fn settle_message(message: &mut Message, row: &str, seed: u64) {
    match message {
        Message::System { content } | Message::User { content } | Message::Tool { content, .. } => {
            *content = settle(content, row, seed).into_owned();
        }
        Message::Assistant { content, tool_calls } => {
            *content = settle(content, row, seed).into_owned();
            for call in tool_calls {
                let mut arguments = Value::Object(std::mem::take(&mut call.function.arguments));
                map_texts(&mut arguments, &mut |text| settle(text, row, seed).into_owned());
                if let Value::Object(arguments) = arguments {
                    call.function.arguments = arguments;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, json};

    use super::*;

    fn words(text: &str) -> usize {
        text.split_whitespace().count()
    }

    fn step(number: usize, result_words: usize, is_trained: bool) -> Step {
        let arguments = Map::from_iter([("command".to_owned(), json!(format!("step {number}")))]);
        let result = "word ".repeat(result_words);
        Step { call_id: format!("call-{number}"), tool: "Bash".into(), arguments, result, is_trained }
    }

    fn turn(prompt: &str, steps: Vec<Step>, answer: Option<&str>) -> Measured {
        let turn = Turn {
            prompt_id: format!("id of {prompt}"),
            prompt: prompt.into(),
            steps,
            answer: answer.map(str::to_owned),
        };
        Measured::of(turn, &words)
    }

    fn session() -> Session {
        Session {
            agent: "claude-code".into(),
            id: "s1".into(),
            project: "widgets".into(),
            source_model: None,
            licence: Licence::Open,
            folder: Some("/workspace/widgets".into()),
        }
    }

    fn made(earlier: &[Measured], turn: &Measured, tokens: usize) -> Vec<Result<Row, Dropped>> {
        rows(&session(), earlier, turn, Room { tokens, earlier_turns: 2, count: &words, seed: 7 })
    }

    fn endings(rows: &[Result<Row, Dropped>]) -> Vec<Ending> {
        rows.iter().map(|row| row.as_ref().unwrap().ending).collect()
    }

    #[test]
    fn ends_in_the_answer_the_call_or_the_text() {
        check(&turn("fix it", vec![step(1, 5, true)], Some("Done.")), Ending::Answered);
        check(&turn("fix it", vec![step(1, 5, true)], None), Ending::Call);
        check(&turn("why?", Vec::new(), Some("Because.")), Ending::Text);
        // An announcement is no answer: the row ends before it.
        check(&turn("fix it", vec![step(1, 5, true)], Some("Let me look at it.")), Ending::Call);
    }

    fn check(turn: &Measured, expected: Ending) {
        let rows = made(&[], turn, 2_000);
        assert_eq!(endings(&rows), [expected]);
        let row = rows[0].as_ref().unwrap();
        assert_eq!(row.trained.last(), Some(&(row.messages.len() - 1)));
        assert!(row.messages[row.messages.len() - 1].is_assistant());
    }

    #[test]
    fn opens_with_earlier_turns_that_carry_no_loss() {
        let earlier = [turn("first", vec![step(1, 3, true)], Some("One.")), turn("second", Vec::new(), Some("Two."))];
        let rows = made(&earlier, &turn("third", vec![step(2, 3, true)], Some("Three.")), 2_000);
        let row = rows[0].as_ref().unwrap();
        assert_eq!(row.source.prompts, ["id of first", "id of second", "id of third"]);
        assert_eq!(row.source.calls, ["call-1", "call-2"]);
        assert_eq!(row.trained.len(), 2);
        assert_eq!(row.prompt(), "third");
        // A turn that nobody answered opens nothing, and hides what was before it.
        let earlier = [earlier[0].clone(), turn("second", vec![step(9, 1, true)], None)];
        let rows = made(&earlier, &turn("third", Vec::new(), Some("Three.")), 2_000);
        assert_eq!(rows[0].as_ref().unwrap().source.prompts, ["id of third"]);
    }

    #[test]
    fn becomes_several_rows_where_one_is_too_short() {
        let steps: Vec<_> = (0..6).map(|number| step(number, 100, true)).collect();
        let rows = made(&[], &turn("fix it", steps, Some("Done.")), 600);
        assert!(rows.len() > 1);
        assert_eq!(endings(&rows).last(), Some(&Ending::Answered));
        let mut calls = Vec::new();
        for row in &rows {
            let row = row.as_ref().unwrap();
            assert_eq!(row.messages[1].content(), "fix it");
            calls.extend(row.source.calls.clone());
        }
        // Each part opens with the last step of the one before it.
        calls.dedup();
        assert_eq!(calls, (0..6).map(|number| format!("call-{number}")).collect::<Vec<_>>());
    }

    #[test]
    fn leaves_out_what_has_no_room_and_claims_that_stand_nowhere() {
        let rows = made(&[], &turn(&"word ".repeat(900), vec![step(1, 1, true)], None), 600);
        assert_eq!(rows[0].as_ref().unwrap_err(), &Dropped::TooLong);
        let rows = made(&[], &turn("fix it", vec![step(1, 5, true)], Some("Merged as #4711.")), 2_000);
        assert_eq!(endings(&rows), [Ending::Call]);
        let rows = made(&[], &turn("fix it", vec![step(1, 5, false)], None), 2_000);
        assert_eq!(rows[0].as_ref().unwrap_err(), &Dropped::NothingToTrain);
    }

    proptest! {
        #[test]
        fn never_cuts_inside_a_turn_and_never_leaves_a_row_without_a_trained_message(
            results in proptest::collection::vec((1_usize..400, any::<bool>()), 0..12),
            has_answer in any::<bool>(),
            tokens in 250_usize..1_500,
        ) {
            let steps = results.iter().enumerate().map(|(number, (words, trained))| step(number, *words, *trained)).collect();
            let turn = turn("fix it", steps, has_answer.then_some("Done at last."));
            for row in made(&[], &turn, tokens).into_iter().flatten() {
                prop_assert!(!row.trained.is_empty());
                prop_assert!(row.trained.iter().all(|index| row.messages[*index].is_assistant()));
                let is_system = matches!(row.messages[0], Message::System { .. });
                prop_assert!(is_system && row.messages[1].content() == "fix it");
                // Between two calls stands the whole result of the first.
                for pair in row.messages[2..].windows(2) {
                    let follows = matches!(pair[1], Message::Tool { .. });
                    prop_assert_eq!(follows, !pair[0].calls().is_empty());
                }
                let taken: usize = row.messages.iter().map(|message| words(message.content())).sum();
                prop_assert!(taken <= tokens);
            }
        }
    }
}
