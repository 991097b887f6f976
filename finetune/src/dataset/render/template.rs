//! The chat template of the base model, rendered to the same bytes as Hugging Face's `apply_chat_template`.

use minijinja::value::{Kwargs, Value as Jinja};
use minijinja::{Environment, Error, ErrorKind, context};
use serde::Serialize;
use serde_json::Value;

use crate::dataset::row::Message;

const NAME: &str = "chat";

#[derive(Debug)]
pub struct ChatTemplate {
    environment: Environment<'static>,
}

/// Whether a hybrid model is to think before it answers. Templates of others do not ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// As the template has it when nothing is said.
    Default,
    Off,
}

impl ChatTemplate {
    pub fn new(source: String) -> Result<Self, Error> {
        let mut environment = Environment::new();
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment.add_filter("tojson", to_json);
        environment.add_function("raise_exception", refuse);
        environment.add_template_owned(NAME, source)?;
        Ok(Self { environment })
    }

    /// The conversation as text; with `asks` followed by the head of the assistant's next turn.
    pub fn render(
        &self,
        messages: &[Message],
        tools: &[Value],
        asks: bool,
        thinking: Thinking,
    ) -> Result<String, Error> {
        let (messages, tools) = (Jinja::from_serialize(messages), Jinja::from_serialize(tools));
        let template = self.environment.get_template(NAME)?;
        match thinking {
            Thinking::Default => template.render(context! { messages, tools, add_generation_prompt => asks }),
            Thinking::Off => {
                template.render(context! { messages, tools, add_generation_prompt => asks, enable_thinking => false })
            }
        }
    }
}

fn refuse(message: String) -> Result<Jinja, Error> {
    Err(Error::new(ErrorKind::InvalidOperation, message))
}

/// The signature is what the engine asks of a filter.
#[expect(clippy::needless_pass_by_value, reason = "filters take their values")]
fn to_json(value: Jinja, options: Kwargs) -> Result<Jinja, Error> {
    json_of(&value, &options)
}

/// What Hugging Face puts in place of Jinja's own filter: JSON as Python's `json.dumps(value, ensure_ascii=False)` writes it.
fn json_of(value: &Jinja, options: &Kwargs) -> Result<Jinja, Error> {
    let failed = |error: serde_json::Error| Error::new(ErrorKind::BadSerialization, error.to_string());
    // No template of these models asks for indents; one that did would render otherwise than it should.
    options.assert_all_used()?;
    let value = serde_json::to_value(value).map_err(failed)?;
    Ok(Jinja::from_safe_string(python_json(&value).map_err(failed)?))
}

/// With spaces after commas and colons, and nothing escaped that need not be.
pub(super) fn python_json(value: &Value) -> Result<String, serde_json::Error> {
    let mut bytes = Vec::new();
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut bytes, Spaced))?;
    Ok(String::from_utf8(bytes).expect("JSON of strings is UTF-8"))
}

struct Spaced;

impl serde_json::ser::Formatter for Spaced {
    fn begin_array_value<W: ?Sized + std::io::Write>(&mut self, writer: &mut W, first: bool) -> std::io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + std::io::Write>(&mut self, writer: &mut W, first: bool) -> std::io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn write_f64<W: ?Sized + std::io::Write>(&mut self, writer: &mut W, value: f64) -> std::io::Result<()> {
        // Both write the shortest digits that mean the number; Python gives the exponent a sign and two digits.
        let text = format!("{value:?}");
        match text.split_once('e') {
            None => writer.write_all(text.as_bytes()),
            Some((digits, exponent)) => {
                let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |exponent| ('-', exponent));
                write!(writer, "{digits}e{sign}{exponent:0>2}")
            }
        }
    }

    fn begin_object_value<W: ?Sized + std::io::Write>(&mut self, writer: &mut W) -> std::io::Result<()> {
        writer.write_all(b": ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn writes_json_as_python_does() {
        let value = json!({"b": [1, 2.5, true, null], "a": {"text": "<a> & 'ä' \"q\"\n"}, "none": {}, "no": []});
        let expected = r#"{"b": [1, 2.5, true, null], "a": {"text": "<a> & 'ä' \"q\"\n"}, "none": {}, "no": []}"#;
        assert_eq!(python_json(&value).unwrap(), expected);
    }

    #[test]
    fn keeps_the_order_of_members_and_escapes_nothing() {
        let template = ChatTemplate::new("{{ tools[0] | tojson }}".into()).unwrap();
        let text = template.render(&[], &[json!({"z": "<&>", "a": 1})], false, Thinking::Default).unwrap();
        assert_eq!(text, r#"{"z": "<&>", "a": 1}"#);
    }

    #[test]
    fn says_why_a_template_refuses() {
        let template = ChatTemplate::new("{{ raise_exception('no tools here') }}".into()).unwrap();
        let error = template.render(&[], &[], false, Thinking::Default).unwrap_err();
        assert!(error.to_string().contains("no tools here"));
    }
}
