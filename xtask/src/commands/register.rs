//! `register` and `unregister`: hooks and MCP server in an agent's own settings, and what the other commands need of
//! that.

use std::path::Path;

use anyhow::{Context, Result, anyhow};
use memory::home::Home;

use crate::cli::Agent;
use crate::output::{Printer, hinted};
use crate::register::{ClaudeFiles, ClaudeSurroundings, Registration, State};

pub(super) fn register(agent: Agent, home: &Home, printer: &Printer) -> Result<()> {
    let Agent::Claude = agent;
    let registration = claude(home)?;
    for program in [&registration.hook_program, &registration.mcp_program] {
        require_installed(program)?;
    }
    check_owner(home, &registration.claude)?;
    let report = registration.register()?;
    printer.note(&report);
    printer.note(if report.is_changed() {
        "Registered with Claude Code: sessions that start from now on are remembered"
    } else {
        "Claude Code was registered already"
    });
    Ok(())
}

pub(super) fn unregister(agent: Agent, home: &Home, printer: &Printer) -> Result<()> {
    let Agent::Claude = agent;
    let report = claude(home)?.unregister()?;
    printer.note(report);
    printer.note("Unregistered from Claude Code");
    Ok(())
}

/// Registers with the agents that this user has, for `up`; one sentence each.
pub(super) fn register_found(home: &Home, printer: &Printer) -> Result<Vec<String>> {
    let registration = claude(home)?;
    let ClaudeFiles { settings, servers } = &registration.claude;
    let is_used = servers.is_file() || settings.parent().is_some_and(Path::is_dir);
    if !is_used {
        printer.note("Claude Code was never started by this user; nothing was registered");
        return Ok(Vec::new());
    }
    if let Err(error) = check_owner(home, &registration.claude) {
        printer.warn(format_args!("Claude Code was not registered: {error:#}"));
        return Ok(Vec::new());
    }
    let report = registration.register()?;
    if report.is_changed() {
        printer.note(&report);
    }
    Ok(vec![format!("Claude Code, in {}", settings.display())])
}

/// `sudo` may keep HOME: then root would write into somebody else's settings, and name programs there that this person may
/// not run.
fn check_owner(home: &Home, claude: &ClaudeFiles) -> Result<()> {
    let Some(folder) = claude.servers.parent().filter(|folder| folder.is_dir()) else { return Ok(()) };
    if is_same_owner(home.root(), folder) {
        return Ok(());
    }
    Err(hinted(
        anyhow!("`{}` belongs to another user than the installation in `{}`", folder.display(), home.root().display()),
        "run this as the user who works with Claude Code, or let HOME name your own folder",
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

/// Unregisters where this installation is registered, for `down --purge`: its programs are about to go.
pub(super) fn unregister_own(home: &Home, printer: &Printer) -> Result<()> {
    let registration = claude(home)?;
    let names_ours = |state: &State| {
        let ours = [&registration.hook_program, &registration.mcp_program];
        state.entries().filter_map(|entry| entry.program.as_ref()).any(|program| ours.contains(&program))
    };
    if names_ours(&registration.state()?) {
        printer.note(registration.unregister()?);
    }
    Ok(())
}

/// How complete the registration with Claude Code is, for `doctor`.
pub(super) fn completeness(home: &Home) -> Result<Completeness> {
    let registration = claude(home)?;
    let state = registration.state()?;
    Ok(if state.is_complete(&registration.hook_program, &registration.mcp_program) {
        Completeness::Complete
    } else if state.is_registered() {
        Completeness::Partial
    } else {
        Completeness::Absent
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Completeness {
    Complete,
    /// Some entries are missing, or name programs of another installation.
    Partial,
    Absent,
}

fn claude(home: &Home) -> Result<Registration> {
    Ok(Registration {
        hook_program: home.program("agent-memory-hook"),
        mcp_program: home.program("agent-memory-mcp"),
        claude: ClaudeFiles::locate(&ClaudeSurroundings::of_process())?,
    })
}

fn require_installed(program: &Path) -> Result<()> {
    if program.is_file() {
        return Ok(());
    }
    let error = anyhow!("`{}` is not installed", program.display());
    Err(hinted(error, "run `cargo xtask up`")).context("cannot register what is not there")
}
