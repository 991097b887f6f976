//! A row as turns to answer. Once with the recorded history before each turn, and once as it would have gone with the model's own
//! calls: what it called stands where the recorded call stood, followed by the recorded result.

use anyhow::{Context as _, Result, ensure};

use super::score::{Judged, Offered, Turn, judge, judge_recorded};
use super::{Answer, Generate, parse};
use crate::dataset::render::{ChatTemplate, Thinking};
use crate::dataset::row::{Call, CallKind, Message, Row};

/// The turns of a row, ready to be answered.
#[derive(Debug)]
pub(super) struct Task<'a> {
    row: &'a Row,
    offered: Offered,
    /// One for each trained message, in their order.
    prompts: Vec<String>,
}

/// How one engine did in a row.
#[derive(Debug)]
pub(super) struct Replayed {
    /// On the recorded history: one judgement for each trained message.
    pub(super) single: Vec<Judged>,
    /// On the model's own history, as far as it went. The first turn is the same in both.
    pub(super) own: Vec<Judged>,
}

impl<'a> Task<'a> {
    pub(super) fn of(row: &'a Row, template: &ChatTemplate) -> Result<Self> {
        let offered = Offered::of(&row.tools).with_context(|| format!("reading the tools of row {}", row.id))?;
        let mut prompts = Vec::with_capacity(row.trained.len());
        for index in &row.trained {
            let is_answer = row.messages.get(*index).is_some_and(Message::is_assistant);
            ensure!(is_answer, "message {index} of row {} is trained on and is no answer", row.id);
            prompts.push(render(row, &row.messages[..*index], template)?);
        }
        Ok(Self { row, offered, prompts })
    }

    /// What the recorded answers would score.
    pub(super) fn recorded(&self) -> Vec<Judged> {
        (0..self.prompts.len()).map(|place| judge_recorded(self.turn(place, &self.prompts[place]))).collect()
    }

    pub(super) fn replay(
        &self,
        engine: &mut dyn Generate,
        template: &ChatTemplate,
        max_tokens: usize,
    ) -> Result<Replayed> {
        let mut ask = |prompt: &str| {
            engine.generate(prompt, max_tokens).with_context(|| format!("answering a turn of row {}", self.row.id))
        };
        let answers = self.prompts.iter().map(|prompt| ask(prompt)).collect::<Result<Vec<_>>>()?;
        let single =
            answers.iter().enumerate().map(|(place, answer)| judge(self.turn(place, &self.prompts[place]), answer));
        let mut replayed = Replayed { single: single.collect(), own: Vec::new() };

        let mut messages = self.row.messages.clone();
        for (place, index) in self.row.trained.iter().enumerate() {
            let prompt = render(self.row, &messages[..*index], template)?;
            // The most likely answer to the same prompt is the same.
            let is_recorded = prompt == self.prompts[place];
            let answer = if is_recorded { answers[place].clone() } else { ask(&prompt)? };
            replayed.own.push(judge(self.turn(place, &prompt), &answer));
            // Text stays as it was recorded: what a person said next answers it.
            if !messages[*index].calls().is_empty() {
                let Some(own) = own_call(&answer) else { break };
                messages[*index] = own;
            }
        }
        Ok(replayed)
    }

    fn turn<'t>(&'t self, place: usize, prompt: &'t str) -> Turn<'t> {
        Turn { prompt, recorded: &self.row.messages[self.row.trained[place]], offered: &self.offered }
    }
}

/// As a server does to get a turn, and as training rows are rendered.
fn render(row: &Row, messages: &[Message], template: &ChatTemplate) -> Result<String> {
    let prompt = template.render(messages, &row.tools, true, Thinking::Off);
    prompt.with_context(|| format!("rendering row {}", row.id))
}

/// The first call of an answer with the words around it; nothing if there is none to go on from.
fn own_call(answer: &Answer) -> Option<Message> {
    let parsed = parse(&answer.text);
    let function = parsed.calls.into_iter().next()?;
    Some(Message::Assistant { content: parsed.text, tool_calls: vec![Call { kind: CallKind::Function, function }] })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::eval::Metric;
    use crate::eval::fake::{FakeEngine, call, read, recorded, row, template};

    /// Who was asked what, and how it was judged.
    fn check(answers: &[&str]) -> (FakeEngine, Replayed) {
        let (row, template) = (row("one"), template());
        let mut engine = FakeEngine::scripted(answers.iter().copied());
        let replayed = Task::of(&row, &template).unwrap().replay(&mut engine, &template, 64).unwrap();
        assert_eq!(engine.left(), 0);
        (engine, replayed)
    }

    fn names(judged: &[Judged]) -> Vec<Option<f64>> {
        judged.iter().map(|judged| judged.scores.get(Metric::ToolNameAccuracy)).collect()
    }

    #[test]
    fn asks_for_every_trained_turn_on_the_recorded_history() {
        let (engine, replayed) = check(&recorded().each_ref().map(String::as_str));
        let row = row("one");
        for (prompt, index) in engine.prompts.iter().zip([1, 3, 5]) {
            let rendered = template().render(&row.messages[..index], &row.tools, true, Thinking::Off).unwrap();
            assert_eq!(*prompt, rendered);
        }
        assert_eq!(names(&replayed.single), [Some(1.0), Some(1.0), None]);
        assert_eq!(replayed.single, replayed.own, "the same history is not asked for again");
    }

    #[test]
    fn goes_on_from_the_models_own_calls_with_the_recorded_results() {
        let own = format!("I list.\n{}", call("Bash", &json!({"command": "ls"})));
        let (engine, replayed) =
            check(&[&own, &read("src/b.rs"), "Both are read.", &read("src/c.rs"), "Nothing is read."]);
        assert_eq!(names(&replayed.single), [Some(0.0), Some(1.0), None]);
        assert_eq!(replayed.own.len(), 3);
        let second = &engine.prompts[3];
        assert!(second.contains("I list.<tool_call>") && second.contains("ls") && second.contains("this is a"));
        assert!(!second.contains("\"src/a.rs\""), "the recorded call is gone");
        let third = &engine.prompts[4];
        assert!(third.contains("ls") && third.contains("src/c.rs") && third.contains("this is b"));
        assert!(!third.contains("\"src/b.rs\""));
    }

    #[test]
    fn ends_where_the_model_makes_no_call() {
        let (_, replayed) = check(&["I would read it.", &read("src/b.rs"), "Both are read."]);
        assert_eq!(replayed.single.len(), 3);
        assert_eq!(names(&replayed.own), [Some(0.0)]);
        let (_, replayed) = check(&[&read("src/a.rs"), "<tool_call>{", "Both are read."]);
        assert_eq!(names(&replayed.own), [Some(1.0), Some(0.0)]);
    }

    #[test]
    fn keeps_recorded_text_before_another_turn() {
        let (mut row, template) = (row("one"), template());
        row.messages.push(Message::User { content: "and now?".into() });
        row.messages.push(Message::answer("Nothing.".into()));
        row.trained = vec![5, 7];
        let mut engine = FakeEngine::scripted(["Some other text.", "Nothing."]);
        let replayed = Task::of(&row, &template).unwrap().replay(&mut engine, &template, 64).unwrap();
        assert_eq!(replayed.own.len(), 2);
    }

    #[test]
    fn refuses_a_row_that_trains_on_what_is_no_answer() {
        for index in [0, 2, 6] {
            let mut row = row("odd");
            row.trained = vec![index];
            let error = Task::of(&row, &template()).unwrap_err().to_string();
            assert!(error.contains(&format!("message {index} of row odd")), "{error}");
        }
    }

    #[test]
    fn says_in_which_row_an_engine_failed() {
        let (row, template) = (row("one"), template());
        let mut engine = FakeEngine::scripted([read("src/a.rs")]);
        let error = Task::of(&row, &template).unwrap().replay(&mut engine, &template, 64).unwrap_err();
        assert_eq!(error.to_string(), "answering a turn of row one");
    }
}
