//! The spool on a disk that is full: a tmpfs of a few kilobytes, mounted over it. Mounting needs root on Linux; elsewhere these
//! scenarios are not run, and the report says so.

use std::collections::HashSet;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;

use super::super::load::{HookLoad, Ledger, Sent};
use super::super::stage::Stage;
use super::Played;
use super::flow::{Flow, Flowed, Plan};

/// Room for some thirty events.
const DISK_BYTES: usize = 128 * 1024;
/// A file that takes the rest of the disk.
const FILLER: &str = "filler";

/// Mounting is tried where no harm can come of it.
pub(super) fn reason_not_to_run() -> Option<String> {
    let folder = std::env::temp_dir().join(format!("agent-memory-bench-mount-{}", std::process::id()));
    let tried = std::fs::create_dir(&folder).context("cannot make a folder").and_then(|()| {
        mount(&folder)?;
        unmount(&folder)
    });
    drop(std::fs::remove_dir(&folder));
    tried.err().map(|error| format!("not run, no small disk can be mounted here: {error:#}"))
}

/// Hooks that find no server and soon no room. What got into the spool is promised; for the rest nobody promises anything.
pub(super) async fn without_server(stage: &Stage, mut plan: Plan) -> Result<Played> {
    const EVENTS_EACH: usize = 40;
    let spool = stage.home().spool();
    mount(&spool)?;
    plan.posting_sessions = 0;
    plan.hooks = plan.hooks.map(|hooks| HookLoad { events_each: Some(EVENTS_EACH), ..hooks });
    let (mut ledger, calls) = Flow::start(stage, plan)?.end_of_hooks().await?.ledger();
    let kept = ids_in(&spool)?;
    ensure!(!kept.is_empty() && kept.len() < calls.len(), "the disk was not full: it holds {} events", kept.len());
    ledger.only_if(|key| kept.contains(&key.id));
    stage.start_servers().await?;
    let note = format!("{} events found no room", calls.len() - kept.len());
    Ok(Played { ledger, calls, note: Some(note) })
}

/// A server that can put nothing into its spool answers after the commit instead, to everyone. Its hooks do not wait that long:
/// what they give up on, the server may have or not.
pub(super) async fn with_server(stage: &Stage, plan: Plan) -> Result<Played> {
    let spool = stage.home().spool();
    mount(&spool)?;
    fill(&spool.join(FILLER))?;
    let flow = Flow::start(stage, plan)?;
    tokio::time::sleep(std::time::Duration::from_secs(8)).await;
    let Flowed { posted, calls } = flow.stop().await?;
    let answers = posted.audit(Vec::new());
    ensure!(
        answers.acknowledged == answers.sent,
        "with a full spool the server refused {} of {} events",
        answers.sent - answers.acknowledged,
        answers.sent
    );
    std::fs::remove_file(spool.join(FILLER)).context("cannot make room on the disk")?;
    let mut ledger = Ledger::default();
    ledger.merge(posted);
    for call in &calls {
        ledger.note(call.key.clone(), Sent::Unacknowledged);
    }
    Ok(Played { ledger, calls, note: Some("hooks are not told by the full disk what became of an event".to_owned()) })
}

/// Takes the small disks away again.
pub(super) fn unmount_all(stage: &Stage) -> Result<()> {
    let mounted = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    for spool in stage.homes().iter().map(memory::home::Home::spool) {
        if mounted.lines().any(|line| line.split(' ').nth(1).is_some_and(|place| Path::new(place) == spool)) {
            unmount(&spool)?;
        }
    }
    Ok(())
}

fn mount(folder: &Path) -> Result<()> {
    let size = format!("size={DISK_BYTES},mode=700");
    run(Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(folder))
}

fn unmount(folder: &Path) -> Result<()> {
    // The server may still look at it.
    run(Command::new("umount").arg("--lazy").arg(folder))
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{}", said.trim());
    Ok(())
}

fn fill(path: &Path) -> Result<()> {
    let mut file = std::fs::File::create(path).context("cannot fill the disk")?;
    while file.write(&[0; 4096]).is_ok_and(|written| written > 0) {}
    Ok(())
}

/// The ids of the prompts and calls in a spool.
fn ids_in(spool: &Path) -> Result<HashSet<String>> {
    let mut ids = HashSet::new();
    for entry in std::fs::read_dir(spool).context("cannot read the spool")?.flatten() {
        if entry.path().extension().is_none_or(|extension| extension != "json") {
            continue;
        }
        let text = std::fs::read_to_string(entry.path()).context("cannot read a spool file")?;
        let envelope: Value = serde_json::from_str(&text).context("a spool file is not whole")?;
        let payload = &envelope["payload"];
        let id = payload["tool_use_id"].as_str().or(payload["prompt_id"].as_str());
        ids.insert(id.context("a spool file has no id")?.to_owned());
    }
    Ok(ids)
}
