//! The checks, in the order in which one part rests on another.

use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result};
use chrono::Utc;
use clap::ValueEnum;
use memory::event;
use memory::home::Home;
use memory::queue::{self, DeadJobs, KindState};
use memory::settings::{self, Settings};
use memory::store::{self, AgentLinkage, Db, ModelShare, Way};
use memory::transcripts;

use super::capture::{self, Watched};
use super::{Finding, backups, jobs, room, spool};
use crate::backup::Summary;
use crate::cli::Agent;
use crate::commands::register::{self, Completeness};
use crate::health::{self, Accepts, Health, NetworkHealth};
use crate::install::layout::PROGRAMS;
use crate::install::model::{MODEL_FILES, library_name};
use crate::install::pins::Target;
use crate::journal;
use crate::output::headline;
use crate::register::Surroundings;
use crate::runtime::{self, Installation, RuntimeKind, ServiceStatus};
use crate::schedule::State;

const UP: &str = "cargo xtask up";

/// Looks at everything. Without an installation there is one finding only.
pub(super) async fn all(home: &Home) -> Vec<Finding> {
    let installation = match Installation::read(home) {
        Ok(Some(installation)) => installation,
        Ok(None) => {
            let message = format!("nothing is installed in `{}`", home.root().display());
            return vec![Finding::fail("home", message, UP)];
        }
        Err(error) => return vec![Finding::fail("home", headline(&error), UP)],
    };
    let health = health::fetch(installation.address).await.ok();
    let mut findings = vec![folder(home), secrets(home), programs(home, &installation), start_command(home)];
    findings.extend(services(&installation, home).await);
    let folder_of_settings = settings::folder(home);
    let settings = Settings::read(&folder_of_settings);
    findings.push(room::settings(&settings, &folder_of_settings));
    let facts = Facts::gather(home).await;
    findings.push(match &facts {
        Ok(_) => Finding::ok("database", "reachable from here, with the installed URL"),
        Err(error) => Finding::fail("database", headline(error), UP).coded("database.unreadable"),
    });
    findings.extend(pooler(home).await);
    findings.push(model(home, installation.runtime));
    if let Some(health) = &health {
        findings.push(server_version(health));
        findings.extend(token(home, &installation).await);
        findings.push(embedding(health));
        findings.extend(room::memory(health));
        findings.extend(network(health));
    }
    findings.extend(spool::spool(&home.spool(), health.as_ref(), SystemTime::now()));
    let settings = settings.unwrap_or_default();
    findings.push(backups::backups(&Summary::of(home, &settings.backup), Utc::now()));
    findings.push(backups::schedule(&State::of(home).await));
    let database_bytes = facts.as_ref().ok().map(|facts| facts.database_bytes);
    findings.extend(room::disk(home.root(), database_bytes, &settings, health.as_ref()));
    if let Ok(facts) = &facts {
        let pending = facts.kinds.iter().map(|kind| kind.pending).sum();
        findings.extend(jobs::queue(&facts.kinds, &facts.dead, health.as_ref(), Utc::now()));
        findings.extend(room::index(&facts.models, &installation.embedding_model, pending));
        findings.extend(capture::linkage(&facts.agents));
        findings.extend(capture::assumed(&facts.agents));
        let spooled_at = spool::newest(&home.spool());
        findings.extend(capture::silent(&watched(home), &facts.agents, spooled_at, installation.installed_at));
    }
    findings.extend(agents(home));
    findings
}

fn folder(home: &Home) -> Finding {
    let place = home.root().display();
    match others_may(home.root()) {
        Ok(false) => Finding::ok("home", format!("`{place}` is its owner's alone")),
        Ok(true) => Finding::fail("home", format!("others can enter `{place}`"), format!("chmod 700 '{place}'")),
        Err(error) => Finding::fail("home", format!("`{place}`: {error}"), UP),
    }
}

fn secrets(home: &Home) -> Finding {
    let pooled = Some(home.pooled_database_url_file()).filter(|path| path.exists());
    for path in [home.token_file(), home.hook_token_file(), home.database_url_file()].into_iter().chain(pooled) {
        let place = path.display();
        match others_may(&path) {
            Ok(false) => {}
            Ok(true) => {
                return Finding::fail("secrets", format!("others can read `{place}`"), format!("chmod 600 '{place}'"));
            }
            Err(error) => return Finding::fail("secrets", format!("`{place}`: {error}"), UP),
        }
    }
    Finding::ok("secrets", "tokens and database URL are their owner's alone")
}

fn programs(home: &Home, installation: &Installation) -> Finding {
    let missing: Vec<_> =
        PROGRAMS.iter().map(|program| program.installed).filter(|name| !home.program(name).is_file()).collect();
    if !missing.is_empty() {
        return Finding::fail("programs", format!("not installed: {}", missing.join(", ")), UP);
    }
    let ours = env!("CARGO_PKG_VERSION");
    if installation.version != ours {
        let message = format!("installed is {}, this checkout is {ours}", installation.version);
        return Finding::warn("programs", message, UP);
    }
    Finding::ok("programs", format!("all {} are installed, version {ours}", PROGRAMS.len()))
}

fn start_command(home: &Home) -> Finding {
    if home.start_command_file().is_file() {
        return Finding::ok("start", "a session starts the services if they are down");
    }
    Finding::warn("start", "after `down`, no session starts the services", UP)
}

async fn services(installation: &Installation, home: &Home) -> Vec<Finding> {
    match runtime::states(installation, home).await {
        Ok(states) => states
            .into_iter()
            .map(|state| match state.status {
                ServiceStatus::Running => Finding::ok(state.name, format!("running, {}", state.detail)),
                ServiceStatus::Unhealthy | ServiceStatus::Stopped => {
                    Finding::fail(state.name, format!("{} {}", state.status, state.detail).trim_end(), UP)
                }
            })
            .collect(),
        Err(error) => vec![Finding::fail("services", headline(&error), UP)],
    }
}

/// Whether the way by a pooler can be gone; `None` where there is none.
async fn pooler(home: &Home) -> Option<Finding> {
    let (pooled, direct) = match (home.pooled_database_url(), home.database_url()) {
        (Ok(None), _) | (_, Err(_)) => return None,
        (Ok(Some(pooled)), Ok(direct)) => (pooled, direct),
        (Err(error), _) => return Some(Finding::fail("pooler", error.to_string(), UP)),
    };
    let checked = async {
        let pooled = store::connect_lazily(&pooled, Way::Pooled, settings::Database::default())?;
        store::check_pooler(&pooled, &store::connect(&direct).await?).await
    };
    Some(match checked.await {
        Ok(()) => Finding::ok("pooler", "events and searches go by it, and it keeps prepared statements"),
        Err(error) => Finding::fail("pooler", error.to_string(), error.hint()),
    })
}

fn model(home: &Home, runtime: RuntimeKind) -> Finding {
    let target = if runtime == RuntimeKind::Docker { Target::container("x86_64") } else { Target::host() };
    if !home.models().join("onnxruntime").join(library_name(target)).is_file() {
        return Finding::fail("model", "the ONNX runtime's library is missing", UP);
    }
    let folders = std::fs::read_dir(home.models()).into_iter().flatten().filter_map(Result::ok);
    let models: Vec<_> = folders.map(|entry| entry.path()).filter(|path| path.join("model.onnx").is_file()).collect();
    match models.as_slice() {
        [model] => match MODEL_FILES.iter().find(|file| !model.join(file).is_file()) {
            None => Finding::ok("model", format!("{} is complete", model.file_name().unwrap_or_default().display())),
            Some(file) => Finding::fail("model", format!("`{}` lacks {file}", model.display()), UP),
        },
        [] => Finding::fail("model", "no embedding model is installed", UP),
        several => Finding::fail("model", format!("{} models are installed, not one", several.len()), UP),
    }
}

fn server_version(health: &Health) -> Finding {
    let ours = env!("CARGO_PKG_VERSION");
    if health.version == ours {
        return Finding::ok("version", format!("the server that runs is {ours}"));
    }
    Finding::warn("version", format!("the server that runs is {}, this checkout is {ours}", health.version), UP)
}

fn embedding(health: &Health) -> Finding {
    let message = health.embedding.message.clone().unwrap_or_default();
    if health.embedding.state == "unavailable" {
        return Finding::fail("embedding", format!("the server cannot embed: {message}"), UP);
    }
    Finding::ok("embedding", health.embedding.state.clone())
}

/// Whether the server takes the tokens that hooks and MCP processes of this home send.
async fn token(home: &Home, installation: &Installation) -> Option<Finding> {
    for (file, token) in [("token", home.token()), ("hook-token", home.hook_token())] {
        let token = token.ok()?;
        if health::accepts(installation.address, &token).await.ok()? == Accepts::No {
            let message = format!("the server refuses the `{file}` of this home");
            let why = "the file was changed after the server started, or another installation's server listens there; until then \
                       every event goes to the spool";
            let finding = Finding::fail("token", message, "cargo xtask down && cargo xtask up");
            return Some(finding.coded("token.refused").why(why));
        }
    }
    Some(Finding::ok("token", "the server takes the home's tokens"))
}

/// Whether other machines are let in as the settings ask for.
fn network(health: &Health) -> Option<Finding> {
    let NetworkHealth { address, state, message } = health.network.as_ref()?;
    if state == "open" {
        return Some(Finding::ok("network", format!("other machines are let in at {address}")));
    }
    let finding = Finding::fail("network", format!("{address} is shut to other machines"), "cargo xtask token list");
    Some(finding.coded("network.closed").why(message.clone().unwrap_or_default()))
}

/// What only the journal knows.
struct Facts {
    agents: Vec<AgentLinkage>,
    models: Vec<ModelShare>,
    kinds: Vec<KindState>,
    dead: Vec<DeadJobs>,
    database_bytes: u64,
}

impl Facts {
    async fn gather(home: &Home) -> Result<Self> {
        let db = journal::open(home).await?;
        let facts = Self::ask(&db).await.context("the journal cannot be read");
        db.close().await;
        facts
    }

    async fn ask(db: &Db) -> Result<Self> {
        Ok(Self {
            agents: store::agents(db).await?,
            models: store::models(db).await?,
            kinds: queue::kinds(db).await?,
            dead: queue::dead(db).await?,
            database_bytes: store::database_bytes(db).await?.unsigned_abs(),
        })
    }
}

/// Agents that have our hook and write of themselves, and where.
fn watched(home: &Home) -> Vec<Watched> {
    let around = Surroundings::of_process();
    let of = [
        (Agent::Claude, event::Agent::ClaudeCode),
        (Agent::Codex, event::Agent::Codex),
        (Agent::Gemini, event::Agent::GeminiCli),
    ];
    let watched = of.into_iter().filter_map(|(agent, recorded_as)| {
        let is_registered =
            matches!(register::completeness(agent, home), Ok(Completeness::Complete | Completeness::Partial));
        let folder = around.agent_folder(recorded_as).ok().flatten().filter(|_| is_registered)?;
        Some(Watched {
            agent: recorded_as.as_str(),
            name: agent.title(),
            records: transcripts::folders(recorded_as, &folder),
            mend: format!("cargo xtask register {}", agent.name()),
        })
    });
    watched.collect()
}

/// One finding for each agent that this user has or that something of ours is registered with.
fn agents(home: &Home) -> Vec<Finding> {
    let mut findings = Vec::new();
    for agent in Agent::value_variants() {
        let (title, mend) = (agent.title(), format!("cargo xtask register {}", agent.name()));
        let finding = match register::completeness(*agent, home) {
            Ok(Completeness::Complete) => Finding::ok("agents", format!("{title} is registered")),
            Ok(Completeness::Partial) => {
                Finding::warn("agents", format!("{title} is registered in part, or with another installation"), mend)
            }
            Ok(Completeness::Absent) => Finding::warn("agents", format!("{title} is not registered"), mend),
            Ok(Completeness::Unused) => continue,
            Err(error) => Finding::fail("agents", format!("{title}: {}", headline(&error)), mend),
        };
        findings.push(finding);
    }
    if findings.is_empty() {
        let message = "no agent was ever started by this user";
        findings.push(Finding::warn("agents", message, "cargo xtask register claude"));
    }
    findings
}

/// Whether anyone but the owner may do anything with a file or folder.
#[cfg(unix)]
fn others_may(path: &Path) -> std::io::Result<bool> {
    use std::os::unix::fs::PermissionsExt;
    Ok(std::fs::metadata(path)?.permissions().mode() & 0o077 != 0)
}

/// The user's data folder is the user's alone by inheritance here.
#[cfg(not(unix))]
fn others_may(path: &Path) -> std::io::Result<bool> {
    std::fs::metadata(path).map(|_| false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::Verdict;
    use crate::files;
    use crate::install::layout;

    #[tokio::test]
    async fn without_an_installation_there_is_one_thing_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let findings = all(&Home::at(folder.path())).await;
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].mend.as_deref(), Some(UP));
    }

    #[cfg(unix)]
    #[test]
    fn finds_a_token_that_others_can_read() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home"));
        layout::create(&home).unwrap();
        files::write_private(&home.database_url_file(), "postgres://h/d").unwrap();
        assert_eq!(secrets(&home).verdict, Verdict::Ok);
        std::fs::set_permissions(home.token_file(), std::fs::Permissions::from_mode(0o644)).unwrap();
        let finding = secrets(&home);
        assert_eq!(finding.verdict, Verdict::Fail);
        assert!(finding.mend.unwrap().starts_with("chmod 600"));
    }

    #[test]
    fn finds_a_model_that_lacks_its_tokenizer() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let (library, mini) = (home.models().join("onnxruntime"), home.models().join("mini"));
        std::fs::create_dir_all(&library).unwrap();
        std::fs::create_dir_all(&mini).unwrap();
        std::fs::write(library.join(library_name(Target::host())), "").unwrap();
        std::fs::write(mini.join("model.onnx"), "").unwrap();
        assert!(model(&home, RuntimeKind::Embedded).message.contains("lacks tokenizer.json"));
    }
}
