//! Our hooks among the user's, in `settings.json`.
//!
//! An entry is known as ours by the name of its program, wherever that lies, so that an installation that has moved is
//! corrected and not doubled. What the user has changed in such an entry, a time limit say, stays.

use jsonc_parser::cst::{CstArray, CstObject};
use serde_json::{Value, json};

use super::document::{Document, array_in, input, object_in, set, string_in, strings_in};
use super::{Entries, Item, Outcome, names_program};

/// The events that make up a session's memory, in the order in which they happen.
pub(super) const EVENTS: [Event; 8] = [
    Event { name: "SessionStart", matcher: Matcher::Any },
    Event { name: "UserPromptSubmit", matcher: Matcher::Absent },
    Event { name: "PostToolUse", matcher: Matcher::Any },
    Event { name: "PostToolUseFailure", matcher: Matcher::Any },
    Event { name: "Stop", matcher: Matcher::Absent },
    Event { name: "SubagentStop", matcher: Matcher::Any },
    Event { name: "PreCompact", matcher: Matcher::Any },
    Event { name: "SessionEnd", matcher: Matcher::Any },
];

/// The hook ends by itself within 0.3 s, so this is for a machine that stands still. It is also what keeps Claude Code
/// from giving SessionEnd only its usual second and a half.
const TIMEOUT_S: u64 = 5;

const PROGRAM_NAME: &str = "agent-memory-hook";
const AGENT: &str = "claude-code";

pub(super) struct Event {
    pub(super) name: &'static str,
    matcher: Matcher,
}

/// Whether the event can be narrowed down to some tools or sources.
enum Matcher {
    Any,
    Absent,
}

/// All our hooks.
pub(super) struct HookEntries {
    pub(super) program: String,
}

impl Entries for HookEntries {
    fn add(&self, document: &Document) -> anyhow::Result<Vec<Item>> {
        let hooks = object_in(&document.object_or_new(), "hooks")?;
        EVENTS.iter().map(|event| self.add_event(&hooks, event)).collect()
    }

    fn remove(&self, document: &Document, original: Option<&Document>) -> Vec<Item> {
        let Some(hooks) = document.object().and_then(|object| object.object_value("hooks")) else {
            return Vec::new();
        };
        let mut items = Vec::new();
        // Not only the events of today: an older installation may have had others.
        for property in hooks.properties() {
            let (Some(event), Some(groups)) = (property.decoded_name(), property.array_value()) else { continue };
            if !remove_handlers(&our_handlers(&groups)) {
                continue;
            }
            if groups.elements().is_empty() && !original.is_some_and(|original| original.has(&["hooks", &event])) {
                property.remove();
            }
            items.push(Item { name: event, outcome: Outcome::Removed });
        }
        let is_left_over = hooks.properties().is_empty() && !items.is_empty();
        if is_left_over && !original.is_some_and(|original| original.has(&["hooks"])) {
            // `hooks` must never stay behind as null: Claude Code then rejects the whole file.
            if let Some(property) = document.object().and_then(|object| object.get("hooks")) {
                property.remove();
            }
        }
        items
    }

    fn found_in(document: &Document) -> Option<Self> {
        let (_, program) = registered(document).into_iter().next()?;
        Some(Self { program })
    }
}

impl HookEntries {
    fn add_event(&self, hooks: &CstObject, event: &Event) -> anyhow::Result<Item> {
        let groups = array_in(hooks, event.name)?;
        let handlers = our_handlers(&groups);
        let outcome = match handlers.split_first() {
            None => {
                groups.append(input(self.group(event)));
                Outcome::Installed
            }
            Some((first, doubles)) => {
                let is_corrected = self.correct(first, event);
                let is_freed = remove_handlers(doubles);
                if is_corrected || is_freed { Outcome::Updated } else { Outcome::AlreadyThere }
            }
        };
        Ok(Item { name: event.name.to_owned(), outcome })
    }

    fn group(&self, event: &Event) -> Value {
        let handler = json!({
            "type": "command",
            "command": self.program,
            "args": [AGENT, event.name],
            "timeout": TIMEOUT_S,
        });
        match event.matcher {
            Matcher::Any => json!({ "matcher": "*", "hooks": [handler] }),
            Matcher::Absent => json!({ "hooks": [handler] }),
        }
    }

    /// Makes a handler run this program for this event. Whether anything had to change.
    fn correct(&self, handler: &CstObject, event: &Event) -> bool {
        let mut is_changed = false;
        if string_in(handler, "type").as_deref() != Some("command") {
            set(handler, "type", json!("command"));
            is_changed = true;
        }
        if string_in(handler, "command").as_deref() != Some(&self.program) {
            set(handler, "command", json!(self.program));
            is_changed = true;
        }
        if strings_in(handler, "args").is_none_or(|arguments| arguments != [AGENT, event.name]) {
            set(handler, "args", json!([AGENT, event.name]));
            is_changed = true;
        }
        if handler.get("timeout").is_none() {
            set(handler, "timeout", json!(TIMEOUT_S));
            is_changed = true;
        }
        is_changed
    }
}

/// Each event that has a hook of ours, with that hook's program.
pub(super) fn registered(document: &Document) -> Vec<(String, String)> {
    let Some(hooks) = document.object().and_then(|object| object.object_value("hooks")) else {
        return Vec::new();
    };
    let programs = hooks.properties().into_iter().filter_map(|property| {
        let handler = our_handlers(&property.array_value()?).into_iter().next()?;
        Some((property.decoded_name()?, string_in(&handler, "command")?))
    });
    programs.collect()
}

fn our_handlers(groups: &CstArray) -> Vec<CstObject> {
    let groups = groups.elements().into_iter().filter_map(|group| group.as_object()?.array_value("hooks"));
    let handlers = groups.flat_map(|handlers| handlers.elements()).filter_map(|handler| handler.as_object());
    handlers.filter(is_ours).collect()
}

fn is_ours(handler: &CstObject) -> bool {
    string_in(handler, "command").is_some_and(|command| names_program(&command, PROGRAM_NAME))
}

/// Removes these handlers, and the groups that this leaves without any. Whether there were any.
fn remove_handlers(handlers: &[CstObject]) -> bool {
    for handler in handlers {
        // Around a handler are its list, the property that holds the list, and the group.
        let group = handler.ancestors().nth(2).and_then(|group| group.as_object());
        handler.clone().remove();
        if let Some(group) = group
            && group.array_value("hooks").is_some_and(|left| left.elements().is_empty())
        {
            group.remove();
        }
    }
    !handlers.is_empty()
}
