//! Results of calls: paired with their calls by id, for parallel calls fork the chain of lines.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::super::emit::{Emitter, Moment, hash_of};
use super::super::json::{Text, string_of, value_of};
use super::line::{Block, Line, blocks};
use super::{Pending, Reader};
use crate::event::{
    Capped, Happening, HappeningKind, Key, MAX_OUTPUT_BYTES, Outcome, Subagent, ToolCall, bounded_id, output_of_tool,
    without_nul,
};

/// Members of an edit's response that are no output (`event::output` leaves them out too).
const WHOLE_FILES: [&str; 2] = ["originalFile", "structuredPatch"];

/// How a refused call reads in versions that do not mark it.
const REFUSALS: [&str; 5] = [
    "The user doesn't want to proceed with this tool use",
    "The user doesn't want to take this action right now",
    "Permission to use ",
    "Claude requested permissions to ",
    "PreToolUse:",
];

impl Reader {
    pub(super) fn results(
        &mut self,
        line: &Line<'_>,
        blocks: &[Block<'_>],
        moment: &Moment<'_>,
        emit: &mut Emitter<'_, '_>,
    ) {
        let results = blocks.iter().filter(|block| block.kind.is("tool_result"));
        let is_alone = results.clone().count() == 1;
        for block in results {
            let Some(id) = block.tool_use_id.get() else {
                emit.skip("a result without its call");
                continue;
            };
            let Some(mut call) = self.pending.remove(id) else {
                let was_told = self.finished.contains(&hash_of(id));
                emit.skip(if was_told { "told before" } else { "a result without its call" });
                continue;
            };
            self.finished.insert(hash_of(id));
            call.moment.at = moment.at;
            if let Some(prompt) = line.prompt_id.get() {
                call.prompt_id = Some(bounded_id(without_nul(prompt)));
            }
            let moment = call.moment.clone();
            if block.is_error.0 {
                let said = text_of(block);
                if is_refusal(line, &said) {
                    emit.happening(&moment, refused(id, &call, &said));
                } else {
                    // As the hook has it: a failed call has an error and no response.
                    emit.call(&moment, call.finished(id, None, failure(&said)));
                }
                continue;
            }
            // Older versions put several results into one line, and then the structured one belongs to nobody in particular.
            let structured = line.tool_use_result.filter(|_| is_alone).and_then(response_of);
            let output = structured.unwrap_or_else(|| Value::String(text_of(block)));
            emit.call(&moment, call.finished(id, Some(&output), Outcome::Succeeded));
        }
    }
}

impl Pending {
    pub(super) fn finished(self, id: &str, output: Option<&Value>, outcome: Outcome) -> ToolCall {
        let kept = output.and_then(|output| output_of_tool(&self.tool_name, output));
        let output_cut = kept.as_ref().and_then(|output| output.preview.truncated_at_bytes);
        let (output_preview, whole) = kept.map(|output| (output.preview.text, output.whole)).unzip();
        let commit = output.and_then(|output| output.pointer("/gitOperation/commit/sha")).and_then(Value::as_str);
        ToolCall {
            key: Key::Given(bounded_id(without_nul(id))),
            prompt_id: self.prompt_id,
            tool_name: self.tool_name,
            input: self.input,
            output_preview,
            output: whole.flatten(),
            outcome,
            duration_ms: None,
            subagent: self.subagent,
            commit_sha: commit.map(str::to_owned),
            truncated_at_bytes: self.truncated_at_bytes.max(output_cut),
        }
    }
}

pub(super) fn happened_to(subagent: &Subagent, key: String, kind: HappeningKind, text: Option<Capped>) -> Happening {
    let details = subagent.kind.as_ref().map_or_else(|| json!({}), |kind| json!({ "type": kind }));
    Happening { key, kind, prompt_id: None, subject: Some(subagent.id.clone()), text, details }
}

/// A tool's response, without the whole files in it that nobody reads of it.
fn response_of(raw: &RawValue) -> Option<Value> {
    let Ok(Members(members)) = serde_json::from_str(raw.get()) else {
        return value_of(raw).filter(|value| !value.is_null());
    };
    let kept = members.into_iter().filter(|(name, _)| !WHOLE_FILES.contains(&name.as_ref()));
    Some(Value::Object(kept.filter_map(|(name, raw)| Some((name.into_owned(), value_of(raw)?))).collect()))
}

/// The members of an object as they stand in the line.
struct Members<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
                let mut found = Vec::new();
                while let Some((Text(name), value)) = members.next_entry::<Text<'de>, &'de RawValue>()? {
                    found.push((name.unwrap_or_default(), value));
                }
                Ok(found)
            }
        }
        Ok(Self(from.deserialize_map(Each)?))
    }
}

/// A call that never ran, because a rule, a hook or the person did not let it.
fn refused(id: &str, call: &Pending, reason: &str) -> Happening {
    Happening {
        key: format!("permission_denied:{}", bounded_id(without_nul(id))),
        kind: HappeningKind::PermissionDenied,
        prompt_id: call.prompt_id.clone(),
        subject: Some(call.tool_name.clone()),
        text: Some(Capped::new(reason, MAX_OUTPUT_BYTES)),
        details: json!({ "tool_use_id": id, "input": call.input }),
    }
}

fn is_refusal(line: &Line<'_>, said: &str) -> bool {
    if line.tool_denial_kind.get().is_some() {
        return true;
    }
    REFUSALS.iter().any(|refusal| said.starts_with(refusal))
}

fn failure(said: &str) -> Outcome {
    let error = said.strip_prefix("<tool_use_error>").map_or(said, |rest| rest.trim_end_matches("</tool_use_error>"));
    let error = if error.trim().is_empty() { "the tool failed without a message" } else { error };
    Outcome::Failed { error: Capped::new(error, MAX_OUTPUT_BYTES).text }
}

/// The text of a result, whose content may be a string or blocks; images and references have none.
fn text_of(block: &Block<'_>) -> String {
    let Some(content) = block.content else { return String::new() };
    if let Some(text) = string_of(content) {
        return text.into_owned();
    }
    let parts = blocks(Some(content));
    let texts = parts.iter().filter_map(|part| match part.kind.get() {
        Some("text") => part.text.get().map(str::to_owned),
        Some(other) => Some(format!("[{other}]")),
        None => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
