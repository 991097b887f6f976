//! The checks, in the order in which one part rests on another.

use std::path::Path;

use clap::ValueEnum;
use memory::home::Home;
use memory::store::Stats;

use super::Finding;
use crate::cli::Agent;
use crate::commands::register::{self, Completeness};
use crate::health::{self, Health};
use crate::install::layout::PROGRAMS;
use crate::install::model::{MODEL_FILES, library_name};
use crate::install::pins::Target;
use crate::journal;
use crate::output::headline;
use crate::runtime::{self, Installation, RuntimeKind, ServiceStatus};

const UP: &str = "cargo xtask up";

/// Below this share of joined tool calls something is wrong with the capture, not with the agent.
const LOW_LINKAGE_RATIO: f64 = 0.95;

/// So many waiting envelopes are more than the seconds between two drains leave behind.
const MANY_WAITING: u64 = 200;

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
    findings.push(journal(home).await);
    findings.push(model(home, installation.runtime));
    if let Some(health) = &health {
        findings.push(server_version(health));
        findings.extend([embedding(health), spool(health), queue(health)]);
    }
    if let Ok(stats) = journal::stats(home).await {
        findings.push(linkage(&stats));
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
    for path in [home.token_file(), home.database_url_file()] {
        let place = path.display();
        match others_may(&path) {
            Ok(false) => {}
            Ok(true) => {
                return Finding::fail("secrets", format!("others can read `{place}`"), format!("chmod 600 '{place}'"));
            }
            Err(error) => return Finding::fail("secrets", format!("`{place}`: {error}"), UP),
        }
    }
    Finding::ok("secrets", "token and database URL are their owner's alone")
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

async fn journal(home: &Home) -> Finding {
    match journal::open(home).await {
        Ok(db) => {
            db.close().await;
            Finding::ok("database", "reachable from here, with the installed URL")
        }
        Err(error) => Finding::fail("database", headline(&error), UP),
    }
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

fn spool(health: &Health) -> Finding {
    let counts = &health.spool;
    if counts.rejected > 0 {
        let message = format!("{} envelopes could not be read; they are kept in spool/rejected", counts.rejected);
        return Finding::warn("spool", message, "cargo xtask logs server");
    }
    if counts.waiting > MANY_WAITING {
        return Finding::warn("spool", format!("{} envelopes wait", counts.waiting), "cargo xtask logs server");
    }
    Finding::ok("spool", format!("{} envelopes wait, none was rejected", counts.waiting))
}

fn queue(health: &Health) -> Finding {
    match health.queue.dead {
        Some(0) => Finding::ok("queue", format!("{} jobs wait, none was given up", health.queue.pending.unwrap_or(0))),
        Some(dead) => Finding::warn("queue", format!("{dead} jobs were given up"), "cargo xtask logs server"),
        None => Finding::warn("queue", "the server does not know its queue", "cargo xtask logs server"),
    }
}

fn linkage(stats: &Stats) -> Finding {
    match stats.linkage_ratio() {
        None => Finding::ok("linkage", "no tool calls yet"),
        Some(ratio) if ratio >= LOW_LINKAGE_RATIO => {
            Finding::ok("linkage", format!("{:.1} % of tool calls are joined to their prompt", ratio * 100.0))
        }
        Some(ratio) => Finding::warn(
            "linkage",
            format!("only {:.1} % of tool calls are joined to their prompt", ratio * 100.0),
            "cargo xtask register, then start the agent anew",
        ),
    }
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
