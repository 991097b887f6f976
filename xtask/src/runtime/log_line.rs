//! A line of a service's log, for people.

use std::borrow::Cow;

use serde_json::Value;

/// A line of a log as a person reads it: what is a JSON object of our server becomes the line that it would have written as text.
pub(crate) fn readable(line: &str) -> Cow<'_, str> {
    let Ok(Value::Object(mut members)) = serde_json::from_str::<Value>(line) else { return line.into() };
    let mut take = |name: &str| match members.shift_remove(name) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    };
    let (Some(time), Some(level), Some(message)) = (take("timestamp"), take("level"), take("message")) else {
        return line.into();
    };
    let target = take("target").unwrap_or_default();
    let fields = members.iter().map(|(name, value)| match value {
        Value::String(text) => format!(" {name}={text:?}"),
        value => format!(" {name}={value}"),
    });
    format!("{time} {level:>5} {target}: {message}{}", fields.collect::<String>()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_a_json_line_as_the_text_it_stands_for() {
        let line = r#"{"timestamp":"2026-03-02T10:00:00Z","level":"WARN","message":"a job failed","job.kind":"learn","job.attempts":2,"target":"memory::queue"}"#;
        let text = r#"2026-03-02T10:00:00Z  WARN memory::queue: a job failed job.kind="learn" job.attempts=2"#;
        assert_eq!(readable(line), text);
    }

    #[test]
    fn leaves_every_other_line_as_it_is() {
        for line in ["2026-03-02 INFO listening", r#"{"a":1}"#, "{", "", r#"{"level":1,"timestamp":2,"message":3}"#] {
            assert_eq!(readable(line), line);
        }
    }
}
