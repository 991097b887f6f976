//! The tools that a row offers: their schemas as they were offered, where a person has them, else as the journal's calls tell.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use jsonschema::Validator;
use serde_json::{Map, Value, json};

use super::clean::{ControlTokens, clean_schema};
use super::row::{Row, draw};

/// A member that so many calls of a tool have is required.
const REQUIRED_SHARE: f64 = 0.95;
/// More members than this is data and no signature.
const MAX_MEMBERS: usize = 24;

/// What the calls of the journal tell about their tools.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Of calls that may be learnt.
    learnt: BTreeMap<String, SeenTool>,
    /// Of others: all that is known of a tool that never worked.
    others: BTreeMap<String, SeenTool>,
}

#[derive(Debug, Default)]
struct SeenTool {
    calls: usize,
    /// By member, in the order of the alphabet: how many calls have it, and the types of its values.
    members: BTreeMap<String, SeenMember>,
}

#[derive(Debug, Default)]
struct SeenMember {
    calls: usize,
    types: BTreeSet<&'static str>,
    items: BTreeSet<&'static str>,
}

/// A tool that rows can offer.
#[derive(Debug)]
pub(super) struct Tool {
    /// In OpenAI's form.
    pub schema: Value,
    /// What the schema takes of a row, in tokens.
    pub tokens: usize,
    validator: Validator,
}

#[derive(Debug)]
pub struct Tools(BTreeMap<String, Tool>);

#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    #[error("`{path}` cannot be read")]
    Unreadable { path: String, source: std::io::Error },
    #[error("`{path}` is no list of tools: an array of {{\"type\": \"function\", \"function\": {{...}}}} is expected")]
    Invalid { path: String },
    #[error("the schema of the tool `{name}` is no JSON Schema: {reason}")]
    Schema { name: String, reason: String },
}

impl Seen {
    pub(super) fn add(&mut self, name: &str, arguments: &Map<String, Value>, is_learnt: bool) {
        let tools = if is_learnt { &mut self.learnt } else { &mut self.others };
        let tool = tools.entry(name.to_owned()).or_default();
        tool.calls += 1;
        for (name, value) in arguments {
            let member = tool.members.entry(name.clone()).or_default();
            member.calls += 1;
            member.types.insert(type_of(value));
            if let Value::Array(items) = value {
                member.items.extend(items.iter().map(type_of));
            }
        }
    }

    fn schema(&self, name: &str) -> Option<Value> {
        let tool = self.learnt.get(name).or_else(|| self.others.get(name))?;
        let mut members: Vec<_> = tool.members.iter().collect();
        members.sort_by_key(|(name, member)| (std::cmp::Reverse(member.calls), (*name).clone()));
        members.truncate(MAX_MEMBERS);
        let required: Vec<_> = members
            .iter()
            .filter(|(_, member)| member.calls as f64 >= REQUIRED_SHARE * tool.calls as f64)
            .map(|(name, _)| (*name).clone())
            .collect();
        let properties: Map<_, _> = members.iter().map(|(name, member)| ((*name).clone(), member.schema())).collect();
        let mut parameters = json!({ "type": "object", "properties": properties });
        if !required.is_empty() {
            parameters["required"] = json!(required);
        }
        Some(json!({ "type": "function", "function": { "name": name, "parameters": parameters } }))
    }
}

impl SeenMember {
    fn schema(&self) -> Value {
        let one_or_more = |types: &BTreeSet<&'static str>| match types.first() {
            Some(only) if types.len() == 1 => json!(only),
            _ => json!(types),
        };
        let mut schema = json!({ "type": one_or_more(&self.types) });
        if !self.items.is_empty() {
            schema["items"] = json!({ "type": one_or_more(&self.items) });
        }
        schema
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The schemas that were really offered, from a file: an array in OpenAI's form.
pub fn read_offered(path: &Path) -> Result<Vec<Value>, SchemaError> {
    let shown = path.display().to_string();
    let bytes = std::fs::read(path).map_err(|source| SchemaError::Unreadable { path: shown.clone(), source })?;
    let invalid = || SchemaError::Invalid { path: shown.clone() };
    let tools: Vec<Value> = serde_json::from_slice(&bytes).map_err(|_| invalid())?;
    let is_tool = |tool: &Value| tool["function"]["name"].is_string() && tool["function"]["parameters"].is_object();
    if !tools.iter().all(is_tool) {
        return Err(invalid());
    }
    Ok(tools)
}

/// Tells whether arguments are such as a tool takes; the tool is in OpenAI's form.
pub(crate) fn validator(tool: &Value) -> Result<Validator, SchemaError> {
    let function = &tool["function"];
    jsonschema::validator_for(&function["parameters"]).map_err(|error| {
        let name = function["name"].as_str().unwrap_or_default().to_owned();
        SchemaError::Schema { name, reason: error.to_string() }
    })
}

impl Tools {
    /// Of what was offered, and of what was seen where nothing is known of the offer. A schema that would take more than half of the
    /// room that rows have for tools loses its descriptions.
    pub(super) fn new(
        offered: Vec<Value>,
        seen: &Seen,
        control: &ControlTokens,
        room: usize,
        count: &dyn Fn(&str) -> usize,
    ) -> Result<Self, SchemaError> {
        let mut schemas: BTreeMap<String, Value> = BTreeMap::new();
        for name in seen.learnt.keys().chain(seen.others.keys()) {
            schemas.extend(seen.schema(name).map(|schema| (name.clone(), schema)));
        }
        for tool in offered {
            let name = tool["function"]["name"].as_str().unwrap_or_default().to_owned();
            schemas.insert(name, tool);
        }
        let mut tools = BTreeMap::new();
        for (name, mut schema) in schemas {
            clean_schema(&mut schema, control);
            let mut tokens = count(&schema.to_string());
            if tokens > room / 2 {
                drop_descriptions(&mut schema);
                tokens = count(&schema.to_string());
            }
            let validator = validator(&schema)?;
            tools.insert(name, Tool { schema, tokens, validator });
        }
        Ok(Self(tools))
    }

    /// Whether the arguments are such as the tool takes.
    pub fn accepts(&self, name: &str, arguments: &Map<String, Value>) -> bool {
        self.0.get(name).is_some_and(|tool| tool.validator.is_valid(&Value::Object(arguments.clone())))
    }

    /// What a row offers: the tools that it calls, and others beside them as far as the room goes, in an order of the row's own, so
    /// that neither the number nor the place of a tool tells which is meant.
    pub fn offer(&self, row: &Row, tokens: usize, seed: u64) -> Vec<Value> {
        let called: BTreeSet<&str> = row.called().collect();
        let mut names: Vec<_> = called.iter().copied().filter(|name| self.0.contains_key(*name)).collect();
        let mut taken: usize = names.iter().map(|name| self.0[*name].tokens).sum();
        let mut others: Vec<_> = self.0.keys().map(String::as_str).filter(|name| !called.contains(name)).collect();
        others.sort_by_cached_key(|name| draw(seed, &["distractor", &row.id, name]));
        for name in others {
            let tool = self.0[name].tokens;
            if taken + tool <= tokens {
                taken += tool;
                names.push(name);
            }
        }
        names.sort_by_cached_key(|name| draw(seed, &["order", &row.id, name]));
        names.into_iter().map(|name| self.0[name].schema.clone()).collect()
    }
}

/// Takes out what only explains; a member that is called so is none.
fn drop_descriptions(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(drop_descriptions),
        Value::Object(members) => {
            members.retain(|name, member| name != "description" || !member.is_string());
            members.values_mut().for_each(drop_descriptions);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataset::row::{Ending, Message, Provenance};
    use crate::dataset::sources::Licence;

    fn members(value: &Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    fn control() -> ControlTokens {
        ControlTokens::of(["<|im_end|>".to_owned()])
    }

    fn tools() -> Tools {
        let mut seen = Seen::default();
        for number in 0..40 {
            let mut arguments = members(&json!({ "file_path": "src/a.rs" }));
            if number % 4 == 0 {
                arguments.insert("limit".into(), json!(number));
            }
            seen.add("Read", &arguments, true);
            seen.add("Bash", &members(&json!({ "command": "ls" })), true);
            seen.add("TodoWrite", &members(&json!({ "todos": [{ "content": "x" }] })), true);
        }
        Tools::new(Vec::new(), &seen, &control(), 1_000, &str::len).unwrap()
    }

    fn row(id: &str, tool: &str) -> Row {
        let source = Provenance {
            agent: String::new(),
            session: String::new(),
            project: String::new(),
            prompts: Vec::new(),
            calls: Vec::new(),
            source_model: None,
            licence: Licence::Open,
        };
        let messages = vec![Message::call(tool, Map::new())];
        Row { id: id.into(), ending: Ending::Call, messages, tools: Vec::new(), trained: vec![0], source }
    }

    #[test]
    fn infers_types_and_what_is_required() {
        let tools = tools();
        let read = &tools.0["Read"].schema["function"];
        assert_eq!(
            *read,
            json!({"name": "Read", "parameters": {"type": "object",
                "properties": {"file_path": {"type": "string"}, "limit": {"type": "integer"}}, "required": ["file_path"]}})
        );
        let todos = &tools.0["TodoWrite"].schema["function"]["parameters"]["properties"]["todos"];
        assert_eq!(*todos, json!({"type": "array", "items": {"type": "object"}}));
    }

    #[test]
    fn accepts_what_fits_and_nothing_else() {
        let tools = tools();
        assert!(tools.accepts("Read", &members(&json!({ "file_path": "a" }))));
        assert!(!tools.accepts("Read", &members(&json!({}))));
        assert!(!tools.accepts("Read", &members(&json!({ "file_path": 1 }))));
        assert!(!tools.accepts("Nothing", &members(&json!({}))));
    }

    #[test]
    fn offers_what_is_called_and_others_in_an_order_of_the_row() {
        let tools = tools();
        let names = |id: &str, room: usize| {
            let offered = tools.offer(&row(id, "Bash"), room, 7);
            offered.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names("a", 0), ["Bash"]);
        assert_eq!(names("a", 10_000), names("a", 10_000));
        assert_eq!(names("a", 10_000).len(), 3);
        let places: BTreeSet<_> =
            (0..20).map(|id| names(&id.to_string(), 10_000).iter().position(|name| name == "Bash")).collect();
        assert_eq!(places.len(), 3, "the called tool stands anywhere");
    }

    #[test]
    fn prefers_what_was_really_offered() {
        let mut seen = Seen::default();
        seen.add("Bash", &members(&json!({ "command": "ls" })), true);
        let offered = json!({"type": "function", "function": {"name": "Bash", "description": "Runs a command",
            "parameters": {"type": "object", "properties": {}, "required": ["command", "description"]}}});
        let tools = Tools::new(vec![offered], &seen, &control(), 1_000, &str::len).unwrap();
        assert_eq!(tools.0["Bash"].schema["function"]["description"], "Runs a command");
        assert!(!tools.accepts("Bash", &members(&json!({ "command": "ls" }))));
    }

    #[test]
    fn cleans_what_was_offered_and_shortens_what_is_too_long() {
        let described = |text: &str| {
            json!({"type": "function", "function": {"name": "Bash", "description": text,
                "parameters": {"type": "object", "properties": {"description": {"type": "string", "description": "why"}}}}})
        };
        let made = |text: &str| {
            let seen = Seen::default();
            Tools::new(vec![described(text)], &seen, &control(), 1_000, &str::len).unwrap().0["Bash"].schema.clone()
        };
        assert_eq!(
            made("ends with <|im_end|> in /home/alice/x")["function"]["description"],
            "ends with < |im_end|> in /home/user/x"
        );
        let long = made(&"word ".repeat(200));
        assert_eq!(long["function"].get("description"), None);
        assert_eq!(long["function"]["parameters"]["properties"]["description"], json!({"type": "string"}));
    }

    #[test]
    fn knows_a_tool_that_never_worked() {
        let mut seen = Seen::default();
        seen.add("Fetch", &members(&json!({ "url": "x" })), false);
        let tools = Tools::new(Vec::new(), &seen, &control(), 1_000, &str::len).unwrap();
        assert_eq!(tools.offer(&row("a", "Fetch"), 0, 7).len(), 1);
    }
}
