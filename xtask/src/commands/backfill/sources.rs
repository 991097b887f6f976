//! Which files are read: those of the agents that were named, or of all that left some, or those that a person names.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use memory::event::Agent;
use memory::transcripts::{self, TranscriptFile};

use crate::cli::{BackfillAgent, BackfillArgs};
use crate::output::{HintExt, hinted};
use crate::register::Surroundings;

/// One agent's transcripts.
pub(super) struct Source {
    pub(super) agent: Agent,
    /// Where they were looked for, for people.
    pub(super) name: String,
    pub(super) files: Vec<TranscriptFile>,
}

pub(super) fn of(arguments: &BackfillArgs) -> Result<Vec<Source>> {
    if !arguments.file.is_empty() {
        return named(arguments);
    }
    let around = Surroundings::of_process();
    let wanted = if arguments.agents.is_empty() { BackfillAgent::ALL.to_vec() } else { arguments.agents.clone() };
    let mut sources = Vec::new();
    for agent in wanted.into_iter().map(agent_of) {
        let folder = around.agent_folder(agent)?;
        let folder = folder.with_context(|| format!("no transcripts of {agent} are read"))?;
        let files = transcripts::find(agent, &folder);
        sources.push(Source { agent, name: folder.display().to_string(), files });
    }
    if sources.iter().all(|source| source.files.is_empty()) {
        let looked_in = sources.iter().map(|source| source.name.as_str()).collect::<Vec<_>>().join(", ");
        return Err(hinted(
            anyhow!("no transcript was found in {looked_in}"),
            "set CLAUDE_CONFIG_DIR or CODEX_HOME if the agent keeps its files elsewhere, or name a file with --file",
        ));
    }
    Ok(sources)
}

fn named(arguments: &BackfillArgs) -> Result<Vec<Source>> {
    let mut sources: Vec<Source> = Vec::new();
    for path in &arguments.file {
        let path = std::path::absolute(path).with_context(|| format!("cannot find `{}`", path.display()))?;
        let agent = match arguments.agents[..] {
            [agent] => agent_of(agent),
            [] => written_by(&path)?,
            _ => bail!("--file takes one agent, or none where the file tells by itself"),
        };
        let Some(file) = transcripts::of_path(agent, &path) else { bail!("`{}` is no file", path.display()) };
        match sources.iter_mut().find(|source| source.agent == agent) {
            Some(source) => source.files.push(file),
            None => sources.push(Source { agent, name: path.display().to_string(), files: vec![file] }),
        }
    }
    for source in &mut sources {
        // A subagent's calls belong to prompts of its session.
        source.files.sort_by_key(|file| file.is_subagent);
    }
    Ok(sources)
}

/// Whose transcript that is, by its first line.
fn written_by(path: &Path) -> Result<Agent> {
    transcripts::written_by(path)
        .with_context(|| format!("cannot read `{}`", path.display()))?
        .with_context(|| format!("cannot tell whose transcript `{}` is", path.display()))
        .hint("name the agent: `cargo xtask backfill claude --file ...`")
}

fn agent_of(agent: BackfillAgent) -> Agent {
    match agent {
        BackfillAgent::Claude => Agent::ClaudeCode,
        BackfillAgent::Codex => Agent::Codex,
        BackfillAgent::Gemini => Agent::GeminiCli,
    }
}
