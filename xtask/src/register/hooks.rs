//! Our hooks among the user's, in a JSON file: `hooks` holds, under each event's name, a list of handlers or of groups of
//! handlers.
//!
//! An entry is known as ours by the name of its program, wherever that lies, so that an installation that has moved is
//! corrected and not doubled. What the user has changed in such an entry, a time limit say, stays. What an agent's handlers
//! look like stands in `agents`.

use jsonc_parser::cst::{CstArray, CstObject};
use serde_json::{Value, json};

use super::command;
use super::document::{Document, array_in, conform, input, object_in, set, string_in, strings_in};
use super::report::{Item, Outcome};
use super::state::EntryState;

/// How an agent wants its hooks.
pub(super) struct HookFormat {
    /// What the hook is told about who calls it.
    pub(super) agent: &'static str,
    /// In the order in which they happen.
    pub(super) events: &'static [Event],
    pub(super) nesting: Nesting,
    /// Whether the file says `"version": 1`.
    pub(super) version: Version,
    pub(super) ownership: Ownership,
    /// The handler that runs this program for this event.
    pub(super) handler: fn(program: &str, event: &str) -> Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) name: &'static str,
    pub(super) matcher: Matcher,
}

/// Whether the event is narrowed down, in form, to some tools or sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Matcher {
    /// To any.
    Any,
    /// To tools, by a regular expression over their names.
    Tools(&'static str),
    Absent,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Nesting {
    /// An event has groups, a group has handlers.
    Groups,
    /// An event has handlers.
    Flat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    None,
    One,
}

/// Which handlers with our program are this agent's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ownership {
    All,
    /// Those that name the agent: another one's may lie in the same file.
    Named,
}

const PROGRAM_NAME: &str = "agent-memory-hook";

/// Where handlers name what they run.
const COMMANDS: [&str; 3] = ["command", "bash", "powershell"];

/// What the user may set otherwise.
const LIMITS: [&str; 2] = ["timeout", "timeoutSec"];

/// The hooks of one file.
pub(super) struct HookEntries {
    pub(super) format: &'static HookFormat,
    pub(super) program: String,
    events: Vec<Event>,
}

impl HookEntries {
    /// Every event that the agent has for us.
    pub(super) fn all(format: &'static HookFormat, program: &str) -> Self {
        Self { format, program: program.to_owned(), events: format.events.to_vec() }
    }

    /// Those that the document has, with the program that it names.
    pub(super) fn found_in(format: &'static HookFormat, document: &Document) -> Option<Self> {
        let registered = registered(format, document);
        let program = registered.first()?.program.clone();
        let known = |name: &str| format.events.iter().copied().find(|event| event.name == name);
        let events = registered.iter().filter_map(|found| known(&found.event)).collect();
        Some(Self { format, program, events })
    }

    /// Adds or corrects them in the document, and takes out what an earlier version has registered beyond them.
    pub(super) fn add(&self, document: &Document) -> anyhow::Result<Vec<Item>> {
        let root = document.object_or_new();
        if self.format.version == Version::One && root.get("version").is_none() {
            root.append("version", input(json!(1)));
        }
        let hooks = object_in(&root, "hooks")?;
        let mut items = Vec::new();
        for event in &self.events {
            items.push(self.add_event(&hooks, *event)?);
        }
        for property in hooks.properties() {
            let (Some(event), Some(list)) = (property.decoded_name(), property.array_value()) else { continue };
            let is_known = self.events.iter().any(|known| known.name == event);
            if !is_known && remove_handlers(self.format, &our_handlers(self.format, &list)) {
                if list.elements().is_empty() {
                    property.remove();
                }
                items.push(Item { name: event, outcome: Outcome::Removed });
            }
        }
        Ok(items)
    }

    /// Removes all that are ours, and the containers that they leave empty and the original did not have.
    pub(super) fn remove(&self, document: &Document, original: Option<&Document>) -> Vec<Item> {
        let Some(hooks) = document.object().and_then(|object| object.object_value("hooks")) else {
            return Vec::new();
        };
        let was_there = |path: &[&str]| original.is_some_and(|original| original.has(path));
        let mut items = Vec::new();
        // Not only the events of today: an older installation may have had others.
        for property in hooks.properties() {
            let (Some(event), Some(list)) = (property.decoded_name(), property.array_value()) else { continue };
            if !remove_handlers(self.format, &our_handlers(self.format, &list)) {
                continue;
            }
            if list.elements().is_empty() && !was_there(&["hooks", &event]) {
                property.remove();
            }
            items.push(Item { name: event, outcome: Outcome::Removed });
        }
        let is_left_over = hooks.properties().is_empty() && !items.is_empty();
        if is_left_over && !was_there(&["hooks"]) {
            // `hooks` must never stay behind as null: Claude Code then rejects the whole file.
            document.remove("hooks");
            if self.format.version == Version::One && !was_there(&["version"]) && document.has_only("version") {
                document.remove("version");
            }
        }
        items
    }

    /// One entry for each event that `add` would register.
    pub(super) fn state(&self, document: &Document) -> Vec<EntryState> {
        let registered = registered(self.format, document);
        let state = |event: &Event| {
            let found = registered.iter().find(|found| found.event == event.name);
            EntryState::of(event.name, found.map(|found| (found.program.as_str(), found.is_as_we_write_it)))
        };
        self.events.iter().map(state).collect()
    }

    fn add_event(&self, hooks: &CstObject, event: Event) -> anyhow::Result<Item> {
        let list = array_in(hooks, event.name)?;
        let handlers = our_handlers(self.format, &list);
        let outcome = match handlers.split_first() {
            None => {
                list.append(input(self.element(event)));
                Outcome::Added
            }
            Some((first, doubles)) => {
                let is_corrected = self.correct(first, event.name);
                let is_freed = remove_handlers(self.format, doubles);
                if is_corrected || is_freed { Outcome::Corrected } else { Outcome::AlreadyThere }
            }
        };
        Ok(Item { name: event.name.to_owned(), outcome })
    }

    /// What stands in an event's list for us.
    fn element(&self, event: Event) -> Value {
        let handler = (self.format.handler)(&self.program, event.name);
        match (self.format.nesting, event.matcher) {
            (Nesting::Flat, _) => handler,
            (Nesting::Groups, Matcher::Any) => json!({ "matcher": "*", "hooks": [handler] }),
            (Nesting::Groups, Matcher::Tools(names)) => json!({ "matcher": names, "hooks": [handler] }),
            (Nesting::Groups, Matcher::Absent) => json!({ "hooks": [handler] }),
        }
    }

    /// Makes a handler run this program for this event. Whether anything had to change.
    fn correct(&self, handler: &CstObject, event: &str) -> bool {
        let expected = (self.format.handler)(&self.program, event);
        let mut is_changed = conform(handler, &expected, &LIMITS);
        for name in LIMITS {
            if let Some(limit) = expected.get(name)
                && LIMITS.iter().all(|name| handler.get(name).is_none())
            {
                set(handler, name, limit.clone());
                is_changed = true;
            }
        }
        is_changed
    }
}

/// A hook of ours in the file.
struct Registered {
    event: String,
    program: String,
    is_as_we_write_it: bool,
}

fn registered(format: &HookFormat, document: &Document) -> Vec<Registered> {
    let Some(hooks) = document.object().and_then(|object| object.object_value("hooks")) else {
        return Vec::new();
    };
    let found = hooks.properties().into_iter().filter_map(|property| {
        let handler = our_handlers(format, &property.array_value()?).into_iter().next()?;
        let event = property.decoded_name()?;
        let (program, _) = command::split(&command_of(&handler)?, PROGRAM_NAME);
        let expected = (format.handler)(&program, &event);
        let is_as_we_write_it = super::document::conforms(&handler, &expected, &LIMITS);
        Some(Registered { event, program, is_as_we_write_it })
    });
    found.collect()
}

fn our_handlers(format: &HookFormat, list: &CstArray) -> Vec<CstObject> {
    let elements = list.elements().into_iter().filter_map(|element| element.as_object());
    let handlers: Vec<CstObject> = match format.nesting {
        Nesting::Flat => elements.collect(),
        Nesting::Groups => {
            let lists = elements.filter_map(|group| group.array_value("hooks"));
            lists.flat_map(|handlers| handlers.elements()).filter_map(|handler| handler.as_object()).collect()
        }
    };
    handlers.into_iter().filter(|handler| is_ours(format, handler)).collect()
}

fn is_ours(format: &HookFormat, handler: &CstObject) -> bool {
    let Some(command) = command_of(handler).filter(|command| command::names_program(command, PROGRAM_NAME)) else {
        return false;
    };
    let names_agent = || {
        let arguments = strings_in(handler, "args").unwrap_or_else(|| command::split(&command, PROGRAM_NAME).1);
        arguments.first().is_some_and(|agent| agent == format.agent)
    };
    format.ownership == Ownership::All || names_agent()
}

fn command_of(handler: &CstObject) -> Option<String> {
    COMMANDS.iter().find_map(|name| string_in(handler, name))
}

/// Removes these handlers, and the groups that this leaves without any. Whether there were any.
fn remove_handlers(format: &HookFormat, handlers: &[CstObject]) -> bool {
    for handler in handlers {
        // Around a handler are its list, the property that holds the list, and the group.
        let group = handler.ancestors().nth(2).and_then(|group| group.as_object());
        handler.clone().remove();
        if format.nesting == Nesting::Groups
            && let Some(group) = group
            && group.array_value("hooks").is_some_and(|left| left.elements().is_empty())
        {
            group.remove();
        }
    }
    !handlers.is_empty()
}
