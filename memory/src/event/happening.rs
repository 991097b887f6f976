//! What happens in a session besides prompts and calls.

use std::fmt::Write as _;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::Capped;
use crate::redact;

/// Something in a session that is no prompt and no call.
#[derive(Debug, Clone, PartialEq)]
pub struct Happening {
    /// The same however we learn of it: `compacted:<digest of the summary>`, `subagent_ended:<agent id>`.
    pub key: String,
    pub kind: HappeningKind,
    pub prompt_id: Option<String>,
    /// What it is about: a subagent's id, a command's name, a folder.
    pub subject: Option<String>,
    /// The summary, the subagent's answer, the error.
    pub text: Option<Capped>,
    pub details: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HappeningKind {
    Compacted,
    SubagentStarted,
    SubagentEnded,
    TurnFailed,
    PromptExpanded,
    FolderChanged,
    PermissionDenied,
    Noticed,
}

impl HappeningKind {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Compacted => "compacted",
            Self::SubagentStarted => "subagent_started",
            Self::SubagentEnded => "subagent_ended",
            Self::TurnFailed => "turn_failed",
            Self::PromptExpanded => "prompt_expanded",
            Self::FolderChanged => "folder_changed",
            Self::PermissionDenied => "permission_denied",
            Self::Noticed => "noticed",
        }
    }
}

impl Happening {
    /// The key of a compaction: the digest of its summary, which the hook and the transcript both tell.
    pub fn compaction_key(summary: &str) -> String {
        const KEPT_BYTES: usize = 16;
        // What a hook told has lost its secrets by now, a transcript has not.
        let digest = Sha256::digest(redact::clean(summary.trim()).as_bytes());
        let mut key = format!("{}:", HappeningKind::Compacted.as_str());
        for byte in &digest[..KEPT_BYTES] {
            // Writing to a String does not fail.
            let _ = write!(key, "{byte:02x}");
        }
        key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_a_compaction_by_the_summary_and_not_by_the_space_around_it() {
        let key = Happening::compaction_key("All done.");
        assert_eq!(key, Happening::compaction_key("\nAll done.\n"));
        assert_ne!(key, Happening::compaction_key("All undone."));
        assert_eq!(key.len(), "compacted:".len() + 32);
    }
}
