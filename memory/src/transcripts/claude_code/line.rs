//! A line of Claude Code's transcripts, as far as it is read. Written against 2.1.332 and what older versions left on disks.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::json::{Flag, Present, Text, string_of};

/// Line types that are known and hold no prompt, call or answer. `prompt_snapshot` and its like stand in attachments.
pub(super) const BOOKKEEPING: [&str; 31] = [
    "system",
    "progress",
    "summary",
    "file-history-snapshot",
    "file-history-delta",
    "queue-operation",
    "custom-title",
    "ai-title",
    "last-prompt",
    "tag",
    "agent-name",
    "agent-setting",
    "agent-color",
    "mode",
    "permission-mode",
    "pr-link",
    "bridge-session",
    "content-replacement",
    "api-request",
    "api-request-blob",
    "api-request-shape",
    "atis-latch",
    "tools-used",
    "cost-state",
    "worktree-state",
    "started",
    "result",
    "speculation-accept",
    "marble-origami-commit",
    "marble-origami-snapshot",
    "task-summary",
];

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::transcripts) struct Line<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) uuid: Text<'a>,
    #[serde(borrow, default)]
    pub(super) parent_uuid: Text<'a>,
    #[serde(borrow, default)]
    pub(super) session_id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) timestamp: Text<'a>,
    #[serde(borrow, default)]
    pub(super) cwd: Text<'a>,
    #[serde(borrow, default)]
    pub(super) git_branch: Text<'a>,
    #[serde(borrow, default)]
    pub(super) prompt_id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) agent_id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) tool_denial_kind: Text<'a>,
    #[serde(default)]
    pub(super) is_sidechain: Flag,
    #[serde(default)]
    pub(super) is_meta: Flag,
    #[serde(default)]
    pub(super) is_compact_summary: Flag,
    #[serde(default)]
    pub(super) is_api_error_message: Flag,
    /// The line is a copy from the session that this one was forked from.
    #[serde(default)]
    pub(super) forked_from: Present,
    #[serde(borrow, default)]
    pub(super) message: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) tool_use_result: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) attachment: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) compact_metadata: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Message<'a> {
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) model: Text<'a>,
    #[serde(borrow, default)]
    pub(super) content: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Block<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) text: Text<'a>,
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    #[serde(borrow, default)]
    pub(super) tool_use_id: Text<'a>,
    #[serde(default)]
    pub(super) is_error: Flag,
    #[serde(borrow, default)]
    pub(super) input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    pub(super) content: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Attachment<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(super) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) command_mode: Text<'a>,
    #[serde(borrow, default)]
    pub(super) prompt: Option<&'a RawValue>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Compaction<'a> {
    #[serde(borrow, default)]
    pub(super) trigger: Text<'a>,
}

/// A part of a line, read as what it should be; of another shape, it is empty.
pub(super) fn part<'a, T: Deserialize<'a> + Default>(raw: Option<&'a RawValue>) -> T {
    raw.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default()
}

/// The blocks of a content, which may be one string, or an array of blocks and strings.
pub(super) fn blocks(content: Option<&RawValue>) -> Vec<Block<'_>> {
    let Some(content) = content else { return Vec::new() };
    if let Some(text) = string_of(content) {
        return vec![text_block(text)];
    }
    let parts: Vec<&RawValue> = serde_json::from_str(content.get()).unwrap_or_default();
    parts
        .into_iter()
        .filter_map(|part| match string_of(part) {
            Some(text) => Some(text_block(text)),
            None => serde_json::from_str(part.get()).ok(),
        })
        .collect()
}

fn text_block(text: Cow<'_, str>) -> Block<'_> {
    Block { kind: Text(Some(Cow::Borrowed("text"))), text: Text(Some(text)), ..Block::default() }
}
