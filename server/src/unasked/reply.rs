//! The JSON in which each agent takes context from its hook. Only members that the agent knows: Codex refuses a reply with any other.

use memory::event::Agent;
use memory::store::Occasion;
use serde_json::{Value, json};

/// Claude Code writes what is longer into a file and shows a preview; it takes 10,000.
const MAX_CHARS: usize = 9_500;

/// How the agent calls the event; `None`: it takes no context from a hook of that event. Cursor's prompts take none, Copilot CLI drops
/// what is said to a prompt, and OpenCode's plugin passes nothing on.
pub(super) const fn event_name(agent: Agent, occasion: Occasion) -> Option<&'static str> {
    match (agent, occasion) {
        (Agent::OpenCode, _) | (Agent::Cursor | Agent::CopilotCli, Occasion::PromptHits) => None,
        (Agent::Cursor, Occasion::Brief) => Some("sessionStart"),
        (Agent::GeminiCli, Occasion::PromptHits) => Some("BeforeAgent"),
        (_, Occasion::Brief) => Some("SessionStart"),
        (_, Occasion::PromptHits) => Some("UserPromptSubmit"),
    }
}

/// The agents that show a line to the person and not to the model.
pub(super) const fn shows_notices(agent: Agent) -> bool {
    matches!(agent, Agent::ClaudeCode | Agent::Codex | Agent::GeminiCli)
}

/// A line for the person, beside what the hook prints anyway or alone.
pub(super) fn with_notice(reply: Option<Value>, notice: Option<String>) -> Option<Value> {
    let Some(notice) = notice else { return reply };
    let mut reply = reply.unwrap_or_else(|| json!({}));
    reply["systemMessage"] = notice.into();
    Some(reply)
}

/// What the hook prints.
pub(super) fn reply(agent: Agent, occasion: Occasion, text: String) -> Option<Value> {
    let name = event_name(agent, occasion)?;
    let text = if text.chars().count() > MAX_CHARS { text.chars().take(MAX_CHARS).collect() } else { text };
    Some(match agent {
        Agent::Cursor => json!({ "additional_context": text }),
        Agent::CopilotCli => json!({ "additionalContext": text }),
        _ => json!({ "hookSpecificOutput": { "hookEventName": name, "additionalContext": text } }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(agent: Agent, occasion: Occasion, expected: Option<&Value>) {
        assert_eq!(reply(agent, occasion, "x".into()).as_ref(), expected, "{agent}");
    }

    #[test]
    fn each_agent_gets_the_members_that_it_knows() {
        let specific = |name: &str| json!({"hookSpecificOutput": {"hookEventName": name, "additionalContext": "x"}});
        for agent in [Agent::ClaudeCode, Agent::Codex, Agent::VsCode, Agent::Custom] {
            check(agent, Occasion::Brief, Some(&specific("SessionStart")));
            check(agent, Occasion::PromptHits, Some(&specific("UserPromptSubmit")));
        }
        check(Agent::GeminiCli, Occasion::Brief, Some(&specific("SessionStart")));
        check(Agent::GeminiCli, Occasion::PromptHits, Some(&specific("BeforeAgent")));
        check(Agent::Cursor, Occasion::Brief, Some(&json!({"additional_context": "x"})));
        check(Agent::CopilotCli, Occasion::Brief, Some(&json!({"additionalContext": "x"})));
        for agent in [Agent::Cursor, Agent::CopilotCli, Agent::OpenCode] {
            check(agent, Occasion::PromptHits, None);
        }
    }

    #[test]
    fn a_notice_stands_beside_the_context_or_alone() {
        let notice = || Some("n".to_owned());
        assert_eq!(with_notice(None, None), None);
        assert_eq!(with_notice(None, notice()), Some(json!({"systemMessage": "n"})));
        let both = with_notice(reply(Agent::ClaudeCode, Occasion::Brief, "x".into()), notice()).unwrap();
        assert_eq!(
            (&both["systemMessage"], &both["hookSpecificOutput"]["additionalContext"]),
            (&json!("n"), &json!("x"))
        );
    }

    #[test]
    fn cuts_what_the_agent_would_put_into_a_file() {
        let reply = reply(Agent::ClaudeCode, Occasion::Brief, "é".repeat(20_000)).unwrap();
        let text = reply["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
        assert_eq!(text.chars().count(), MAX_CHARS);
    }
}
