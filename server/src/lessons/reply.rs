//! The JSON in which each agent takes a decision about a call from its hook. Only members that the agent knows: Codex refuses a reply with
//! any other.

use memory::event::Agent;
use memory::lessons::{Decision, Speech};
use serde_json::{Value, json};

/// Claude Code takes 10,000 characters.
const MAX_CHARS: usize = 9_500;

/// What can be said to that agent: where nobody can be asked, the call is stopped once instead.
pub(super) fn adapted(speech: Speech, agent: Agent) -> Speech {
    let asks = matches!(agent, Agent::ClaudeCode | Agent::VsCode | Agent::Custom);
    let decision = match speech.decision {
        Decision::Asked if !asks => Decision::Stopped,
        decision => decision,
    };
    Speech { decision, ..speech }
}

/// What the hook prints; `None`: the agent takes no such thing. Cursor runs Claude Code's hooks too, and takes another form, which could not
/// be tried.
pub(super) fn reply(agent: Agent, speech: &Speech) -> Option<Value> {
    let text: String = speech.text.chars().take(MAX_CHARS).collect();
    let permission = |decision: &str| {
        json!({ "hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": decision, "permissionDecisionReason": text } })
    };
    match (agent, speech.decision) {
        (Agent::Cursor | Agent::CopilotCli | Agent::OpenCode, _) | (Agent::GeminiCli, Decision::Informed) => None,
        (Agent::GeminiCli, Decision::Stopped | Decision::Asked) => Some(json!({ "decision": "deny", "reason": text })),
        (_, Decision::Stopped) => Some(permission("deny")),
        (_, Decision::Asked) => Some(permission("ask")),
        (_, Decision::Informed) => {
            Some(json!({ "hookSpecificOutput": { "hookEventName": "PreToolUse", "additionalContext": text } }))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(agent: Agent, decision: Decision) -> Option<Value> {
        let speech = Speech { decision, once_key: String::new(), text: "x".into() };
        reply(agent, &adapted(speech, agent))
    }

    #[test]
    fn each_agent_gets_the_members_that_it_knows() {
        let permission = |decision: &str| {
            Some(json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": decision,
                                               "permissionDecisionReason": "x"}}))
        };
        for agent in [Agent::ClaudeCode, Agent::VsCode, Agent::Custom] {
            assert_eq!(said(agent, Decision::Stopped), permission("deny"));
            assert_eq!(said(agent, Decision::Asked), permission("ask"));
        }
        assert_eq!(said(Agent::Codex, Decision::Asked), permission("deny"));
        let told = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": "x"}});
        assert_eq!(said(Agent::Codex, Decision::Informed), Some(told));
        assert_eq!(said(Agent::GeminiCli, Decision::Stopped), Some(json!({"decision": "deny", "reason": "x"})));
        for agent in [Agent::Cursor, Agent::CopilotCli, Agent::OpenCode] {
            assert_eq!(said(agent, Decision::Stopped), None);
        }
        assert_eq!(said(Agent::GeminiCli, Decision::Informed), None);
    }
}
