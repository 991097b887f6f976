//! `register` and `unregister`: hooks and MCP server in the agents' own settings, and what the other commands need of
//! that. One agent's broken settings keep no other from being registered.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use clap::ValueEnum;
use memory::home::Home;
use serde::Serialize;

use crate::cli::{Agent, AgentArgs};
use crate::output::{Form, Printer, headline, hinted, report};
use crate::register::{Registration, Report, Surroundings};

pub(super) fn register(arguments: &AgentArgs, home: &Home, printer: &Printer) -> Result<()> {
    for program in ["agent-memory-hook", "agent-memory-mcp"] {
        require_installed(&home.program(program))?;
    }
    let mut agents = arguments.chosen();
    if agents.is_empty() {
        agents = used_agents(home)?;
    }
    if agents.is_empty() {
        let error = anyhow!("no agent was ever started by this user");
        return Err(hinted(error, "name one, for example `cargo xtask register claude`"));
    }
    let mut attempts = Vec::new();
    for agent in agents {
        let registration = registration(agent, home);
        let attempt = Attempt::of(agent, check_owner(home, &registration).and_then(|()| registration.register()));
        if arguments.form() == Form::Text {
            attempt.tell(printer);
        }
        if arguments.form() == Form::Text
            && let Some(report) = &attempt.report
        {
            let title = agent.title();
            printer.note(if report.is_changed() {
                format!("Registered with {title}: sessions that start from now on are remembered")
            } else {
                format!("{title} was registered already")
            });
        }
        attempts.push(attempt);
    }
    conclude(&attempts, arguments.form(), printer)
}

pub(super) fn unregister(arguments: &AgentArgs, home: &Home, printer: &Printer) -> Result<()> {
    let mut agents = arguments.chosen();
    let are_named = !agents.is_empty();
    if !are_named {
        agents = Agent::value_variants().to_vec();
    }
    let mut attempts = Vec::new();
    for agent in agents {
        let attempt = Attempt::of(agent, registration(agent, home).unregister());
        let has_nothing = attempt.report.as_ref().is_some_and(|report| !report.is_changed());
        if has_nothing && !are_named {
            continue;
        }
        if arguments.form() == Form::Text {
            attempt.tell(printer);
            if attempt.report.is_some() {
                printer.note(format_args!("Unregistered from {}", agent.title()));
            }
        }
        attempts.push(attempt);
    }
    if attempts.is_empty() {
        printer.note("Nothing of ours was registered with any agent");
    }
    conclude(&attempts, arguments.form(), printer)
}

/// Registers with the agents that this user has, for `up`.
pub(super) fn register_found(home: &Home, printer: &Printer) -> Result<Found> {
    let mut found = Found::default();
    for agent in used_agents(home)? {
        let registration = registration(agent, home);
        if let Err(error) = check_owner(home, &registration) {
            printer.warn(format_args!("{} was not registered: {}", agent.title(), headline(&error)));
            continue;
        }
        let attempt = Attempt::of(agent, registration.register());
        if let Some(report) = &attempt.report {
            if report.is_changed() {
                printer.note(report);
            }
            let file = report.files.first().map(|file| file.path.display().to_string()).unwrap_or_default();
            found.registered.push(format!("{}, in {file}", agent.title()));
        } else {
            attempt.tell(printer);
            found.failed.push(agent.title());
        }
    }
    if found.registered.is_empty() && found.failed.is_empty() {
        printer.note("No agent was ever started by this user, or none that is known here; nothing was registered");
    }
    Ok(found)
}

/// The agents that `up` has met.
#[derive(Debug, Default)]
pub(super) struct Found {
    /// One sentence each.
    pub(super) registered: Vec<String>,
    failed: Vec<&'static str>,
}

impl Found {
    /// An agent that could not be registered is a failure of the whole, after all else is done.
    pub(super) fn into_result(self) -> Result<()> {
        if self.failed.is_empty() {
            return Ok(());
        }
        Err(hinted(anyhow!("{} could not be registered", self.failed.join(", ")), "run `cargo xtask register`"))
    }
}

/// Unregisters where this installation is registered: its programs are about to go.
pub(super) fn unregister_own(home: &Home, printer: &Printer) -> Result<()> {
    let mut attempts = Vec::new();
    for agent in Agent::value_variants() {
        let registration = registration(*agent, home);
        let names = names_ours(&registration);
        let result = names.and_then(|names| if names { registration.unregister().map(Some) } else { Ok(None) });
        if let Some(result) = result.transpose() {
            let attempt = Attempt::of(*agent, result);
            attempt.tell(printer);
            attempts.push(attempt);
        }
    }
    conclude(&attempts, Form::Text, printer)
}

/// The agents whose settings name this installation's programs.
pub(super) fn registered_with(home: &Home) -> Result<Vec<&'static str>> {
    let mut found = Vec::new();
    for agent in Agent::value_variants() {
        if names_ours(&registration(*agent, home))? {
            found.push(agent.title());
        }
    }
    Ok(found)
}

fn names_ours(registration: &Registration) -> Result<bool> {
    let ours = [&registration.hook_program, &registration.mcp_program];
    let state = registration.state()?;
    Ok(state.entries().filter_map(|entry| entry.program.as_ref()).any(|program| ours.contains(&program)))
}

/// How complete the registration with an agent is, for `doctor`.
pub(super) fn completeness(agent: Agent, home: &Home) -> Result<Completeness> {
    let registration = registration(agent, home);
    let is_used = registration.is_used()?;
    let state = registration.state()?;
    Ok(if state.is_complete(&registration.hook_program, &registration.mcp_program) {
        Completeness::Complete
    } else if state.is_registered() {
        Completeness::Partial
    } else if is_used {
        Completeness::Absent
    } else {
        Completeness::Unused
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Completeness {
    Complete,
    /// Some entries are missing, or name programs of another installation.
    Partial,
    Absent,
    /// The user does not have the agent.
    Unused,
}

/// What came of one agent.
#[derive(Serialize)]
struct Attempt {
    agent: Agent,
    #[serde(flatten)]
    report: Option<Report>,
    error: Option<String>,
}

impl Attempt {
    fn of(agent: Agent, result: Result<Report>) -> Self {
        match result {
            Ok(report) => Self { agent, report: Some(report), error: None },
            Err(error) => Self { agent, report: None, error: Some(report(&error)) },
        }
    }

    fn tell(&self, printer: &Printer) {
        match (&self.report, &self.error) {
            (Some(report), _) => printer.note(report),
            (None, error) => {
                let mut text = format!("{} was left as it was", self.agent.title());
                let _ = write!(text, "\n{}", error.as_deref().unwrap_or_default().trim_end());
                printer.warn(text);
            }
        }
    }
}

/// The whole fails if any part of it did.
fn conclude(attempts: &[Attempt], form: Form, printer: &Printer) -> Result<()> {
    if form == Form::Json {
        printer.data(serde_json::to_string_pretty(attempts).context("cannot write the report as JSON")?);
    }
    let failed = attempts.iter().filter(|attempt| attempt.error.is_some()).map(|attempt| attempt.agent.title());
    let failed: Vec<_> = failed.collect();
    if !failed.is_empty() {
        bail!("{} of {} agents could not be seen to: {}", failed.len(), attempts.len(), failed.join(", "));
    }
    Ok(())
}

fn used_agents(home: &Home) -> Result<Vec<Agent>> {
    let mut used = Vec::new();
    for agent in Agent::value_variants() {
        if registration(*agent, home).is_used()? {
            used.push(*agent);
        }
    }
    Ok(used)
}

/// `sudo` may keep HOME: then root would write into somebody else's settings, and name programs there that this person may
/// not run.
fn check_owner(home: &Home, registration: &Registration) -> Result<()> {
    let Some(folder) = registration.folder()? else { return Ok(()) };
    if is_same_owner(home.root(), &folder) {
        return Ok(());
    }
    Err(hinted(
        anyhow!("`{}` belongs to another user than the installation in `{}`", folder.display(), home.root().display()),
        format!("run this as the user who works with {}, or let HOME name your own folder", registration.agent.title()),
    ))
}

#[cfg(unix)]
fn is_same_owner(one: &Path, two: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let owner = |path| std::fs::metadata(path).map(|metadata| metadata.uid());
    matches!((owner(one), owner(two)), (Ok(one), Ok(two)) if one == two)
}

#[cfg(not(unix))]
fn is_same_owner(_one: &Path, _two: &Path) -> bool {
    true
}

fn registration(agent: Agent, home: &Home) -> Registration {
    Registration {
        agent,
        hook_program: home.program("agent-memory-hook"),
        mcp_program: home.program("agent-memory-mcp"),
        around: Surroundings::of_process(),
    }
}

fn require_installed(program: &Path) -> Result<()> {
    if program.is_file() {
        return Ok(());
    }
    let error = anyhow!("`{}` is not installed", program.display());
    Err(hinted(error, "run `cargo xtask up`")).context("cannot register what is not there")
}
