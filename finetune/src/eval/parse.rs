//! An answer as a server reads it: Hermes-style calls, one JSON object in each `<tool_call>` block, and the text around them.
//!
//! It is as strict as the form that is trained: what a server might still make sense of (arguments written as a JSON string, a fence in
//! place of the tags) is no call.

use serde_json::Value;

use crate::dataset::row::{Function, Message};

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Parsed {
    /// What stands outside of calls, and after a thought.
    pub text: String,
    pub calls: Vec<Function>,
    /// Blocks that are no call: unclosed, unopened, no JSON, or JSON of another form.
    pub malformed: usize,
}

impl Parsed {
    /// Whether the answer is, or tries to be, a call.
    pub fn tries_to_call(&self) -> bool {
        !self.calls.is_empty() || self.malformed > 0
    }

    /// A recorded message, as if a model had answered with it.
    pub fn recorded(message: &Message) -> Self {
        let calls = message.calls().iter().map(|call| call.function.clone()).collect();
        Self { text: message.content().to_owned(), calls, malformed: 0 }
    }
}

pub fn parse(answer: &str) -> Parsed {
    let mut parsed = Parsed::default();
    let mut text = String::new();
    let mut rest = without_thought(answer);
    while let Some(at) = rest.find(OPEN) {
        text.push_str(&rest[..at]);
        let (call, after) = block(&rest[at + OPEN.len()..]);
        match call {
            Some(call) => parsed.calls.push(call),
            None => parsed.malformed += 1,
        }
        rest = after;
    }
    text.push_str(rest);
    parsed.malformed += text.matches(CLOSE).count();
    text.replace(CLOSE, "").trim().clone_into(&mut parsed.text);
    parsed
}

/// The call in a block whose opening tag was read, and what follows the block.
fn block(inside: &str) -> (Option<Function>, &str) {
    let mut values = serde_json::Deserializer::from_str(inside).into_iter::<Value>();
    if let Some(Ok(value)) = values.next() {
        // Read as JSON first: an argument may hold the closing tag.
        let after = inside[values.byte_offset()..].trim_start();
        if let Some(after) = after.strip_prefix(CLOSE) {
            return (function(value), after);
        }
    }
    match (inside.find(CLOSE), inside.find(OPEN)) {
        (Some(close), open) if open.is_none_or(|open| close < open) => (None, &inside[close + CLOSE.len()..]),
        (_, Some(open)) => (None, &inside[open..]),
        _ => (None, ""),
    }
}

fn function(value: Value) -> Option<Function> {
    serde_json::from_value(value).ok().filter(|function: &Function| !function.name.is_empty())
}

/// A thought is for nobody to read and calls nothing; one that never ends is all there is.
fn without_thought(answer: &str) -> &str {
    match answer.trim_start().strip_prefix("<think>") {
        Some(thought) => thought.split_once("</think>").map_or("", |(_, after)| after),
        None => answer,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn names(parsed: &Parsed) -> Vec<&str> {
        parsed.calls.iter().map(|call| call.name.as_str()).collect()
    }

    fn malformed(answer: &str) -> usize {
        let parsed = parse(answer);
        assert_eq!(parsed.calls, [], "{answer}");
        parsed.malformed
    }

    #[test]
    fn reads_text_and_several_calls() {
        let parsed = parse(
            "I look.\n<tool_call>\n{\"name\": \"Read\", \"arguments\": {\"file_path\": \"a\"}}\n</tool_call>\n\
             <tool_call>\n{\"name\": \"Bash\", \"arguments\": {}}\n</tool_call>",
        );
        assert_eq!(parsed.text, "I look.");
        assert_eq!(names(&parsed), ["Read", "Bash"]);
        assert_eq!(Value::Object(parsed.calls[0].arguments.clone()), json!({"file_path": "a"}));
        assert_eq!(parsed.malformed, 0);
        assert!(parsed.tries_to_call() && !parse("just words").tries_to_call());
    }

    #[test]
    fn counts_what_is_no_call() {
        assert_eq!(malformed("<tool_call>\n{\"name\": \"Read\", \"arguments\": {}}"), 1, "unclosed");
        assert_eq!(malformed("{\"name\": \"Read\", \"arguments\": {}}\n</tool_call>"), 1, "unopened");
        assert_eq!(malformed("<tool_call>{name: Read}</tool_call>"), 1, "no JSON");
        assert_eq!(malformed("<tool_call>{\"name\": \"Read\"}</tool_call>"), 1, "no arguments");
        assert_eq!(malformed("<tool_call>{\"name\": \"\", \"arguments\": {}}</tool_call>"), 1, "no name");
        assert_eq!(
            malformed("<tool_call>{\"name\": \"Read\", \"arguments\": {}} and</tool_call>"),
            1,
            "more than JSON"
        );
        assert_eq!(
            malformed("<tool_call>{\"name\": \"Read\", \"arguments\": \"{\\\"file_path\\\": \\\"a\\\"}\"}</tool_call>"),
            1,
            "arguments as a string"
        );
    }

    #[test]
    fn goes_on_after_a_block_that_is_no_call() {
        let call = "<tool_call>{\"name\": \"Read\", \"arguments\": {}}</tool_call>";
        for broken in ["<tool_call>{", "<tool_call>{]</tool_call>"] {
            let parsed = parse(&format!("{broken}\n{call}"));
            assert_eq!((names(&parsed), parsed.malformed), (vec!["Read"], 1), "{broken}");
        }
    }

    #[test]
    fn reads_an_argument_that_holds_the_tags() {
        let parsed = parse(
            "<tool_call>{\"name\": \"Write\", \"arguments\": {\"content\": \"</tool_call><tool_call>\"}}</tool_call>",
        );
        assert_eq!((names(&parsed), parsed.malformed), (vec!["Write"], 0));
    }

    #[test]
    fn takes_no_thought_for_an_answer() {
        let call = "<tool_call>{\"name\": \"Read\", \"arguments\": {}}</tool_call>";
        assert_eq!(
            parse(&format!("<think>{call}</think>\n\nDone.")),
            Parsed { text: "Done.".into(), ..Parsed::default() }
        );
        assert_eq!(parse(&format!("<think>on and on {call}")), Parsed::default());
    }

    /// The texts are of Hugging Face's `apply_chat_template` (tests/chat-template/make.py).
    #[test]
    fn reads_calls_as_the_templates_of_base_models_write_them() {
        let conversations: Value =
            serde_json::from_str(include_str!("../../../tests/chat-template/conversations.json")).unwrap();
        let mut read = 0;
        for rendered in [
            include_str!("../../../tests/chat-template/qwen3.json"),
            include_str!("../../../tests/chat-template/qwen2_5.json"),
        ] {
            let rendered: Value = serde_json::from_str(rendered).unwrap();
            let texts = rendered["rendered"].as_array().unwrap();
            for rendered in texts.iter().filter(|rendered| rendered["asks"] == false) {
                let conversation = &conversations[rendered["conversation"].as_u64().unwrap() as usize]["messages"];
                let messages: Vec<Message> = serde_json::from_value(conversation.clone()).unwrap();
                let messages = messages.iter().take(rendered["messages"].as_u64().unwrap() as usize);
                let turns = rendered["text"].as_str().unwrap().split("<|im_start|>assistant\n").skip(1);
                for (message, turn) in messages.filter(|message| message.is_assistant()).zip(turns) {
                    let parsed = parse(turn.split("<|im_end|>").next().unwrap());
                    assert_eq!((&parsed.calls, parsed.malformed), (&Parsed::recorded(message).calls, 0), "{turn}");
                    read += parsed.calls.len();
                }
            }
        }
        assert!(read > 20, "{read}");
    }

    proptest! {
        #[test]
        fn reads_back_every_call_that_is_written(
            calls in proptest::collection::vec(("[A-Za-z_]{1,8}", "\\PC{0,20}"), 0..4), text in "[a-z ]{0,20}",
        ) {
            let written = calls.iter().map(|(name, value)| {
                let call = json!({ "name": name, "arguments": { "value": value } });
                format!("\n{OPEN}\n{call}\n{CLOSE}")
            });
            let parsed = parse(&std::iter::once(text.clone()).chain(written).collect::<String>());
            prop_assert_eq!(parsed.malformed, 0);
            prop_assert_eq!(parsed.text.as_str(), text.trim());
            prop_assert_eq!(parsed.calls.len(), calls.len());
            for (read, (name, value)) in parsed.calls.iter().zip(&calls) {
                prop_assert_eq!(&read.name, name);
                prop_assert_eq!(read.arguments["value"].as_str(), Some(value.as_str()));
            }
        }

        #[test]
        fn reads_whatever_a_model_may_write(answer in "(<tool_call>|</tool_call>|<think>|</think>|[{}\"a:, ]){0,12}") {
            let parsed = parse(&answer);
            prop_assert!(!parsed.text.contains(OPEN) && !parsed.text.contains(CLOSE));
        }
    }
}
