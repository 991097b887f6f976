//! The image that ours are built on: Debian's own where it can be had, else one made here from Debian's packages with
//! debootstrap.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use bollard::query_parameters::CreateImageOptionsBuilder;
use futures_util::{StreamExt, stream};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};

use super::registry::{Registry, image_id, split};
use crate::files;
use crate::output::{HintExt, Printer, Step};
use crate::runtime::docker::engine::{Engine, EngineContext};

pub(crate) const OFFICIAL: &str = "debian:trixie-slim";
pub(crate) const OURS: &str = "agent-memory-base:trixie";
const SUITE: &str = "trixie";

/// It takes half a minute where the mirror is near.
const BOOTSTRAP_DEADLINE: Duration = Duration::from_mins(20);

/// Devices belong to the engine; the rest is large and read by nobody in a container.
const LEFT_OUT: [&str; 7] = [
    "./dev/*",
    "./var/cache/apt/*",
    "./var/lib/apt/lists/*",
    "./var/log/*.log",
    "./usr/share/man/*",
    "./usr/share/locale/*",
    "./usr/share/info/*",
];

/// The base image to build on, made if there is none.
pub(crate) async fn ensure(engine: &Engine, printer: &Printer, registry: &Registry<'_>) -> Result<&'static str> {
    if image_id(engine, OURS).await?.is_some() {
        return Ok(OURS);
    }
    if registry.has(OFFICIAL).await? {
        return Ok(OFFICIAL);
    }
    let step = printer.step("Making a base image from Debian's packages");
    // /tmp is often mounted without devices or programs, which debootstrap needs.
    let folder = Path::new("/var/tmp").join(format!("agent-memory-base-{}", std::process::id()));
    let made = make(engine, &folder, &step).await;
    let removed = files::remove(&folder);
    made.context("no registry gives a Debian image, and none could be made here")?;
    removed?;
    step.done(format!("Made a base image from Debian's packages ({OURS})"));
    Ok(OURS)
}

async fn make(engine: &Engine, folder: &Path, step: &Step) -> Result<()> {
    tokio::time::timeout(BOOTSTRAP_DEADLINE, bootstrap(folder, step))
        .await
        .with_context(|| format!("debootstrap did not end within {} min", BOOTSTRAP_DEADLINE.as_secs() / 60))
        .and_then(|ended| ended)?;
    step.say("Making a base image: importing it");
    import(engine, folder).await
}

async fn bootstrap(folder: &Path, step: &Step) -> Result<()> {
    const HINT: &str = "let the engine reach a registry, or run `cargo xtask images` once as root on a Debian or Ubuntu \
        host with `apt install debootstrap`, or do without Docker: `cargo xtask up --runtime embedded`";
    let program = ["/usr/sbin/debootstrap", "/sbin/debootstrap", "/usr/bin/debootstrap"]
        .into_iter()
        .find(|program| Path::new(program).exists())
        .context("debootstrap is not installed")
        .hint(HINT)?;
    let mut child = Command::new(program)
        .args(["--variant=minbase", SUITE])
        .arg(folder)
        .env("AGENT_MEMORY_DISABLE", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("cannot start debootstrap")?;
    let stdout = child.stdout.take().context("debootstrap has no output")?;
    let mut stderr = child.stderr.take().context("debootstrap has no output")?;
    let complaints = tokio::spawn(async move {
        let mut text = String::new();
        stderr.read_to_string(&mut text).await.map(|_| text)
    });
    let mut lines = BufReader::new(stdout).lines();
    let mut last_line = String::new();
    while let Some(line) = lines.next_line().await.context("cannot read what debootstrap says")? {
        line.trim_start_matches("I: ").clone_into(&mut last_line);
        step.say(format!("Making a base image: {}", last_line.to_lowercase()));
    }
    let status = child.wait().await.context("cannot wait for debootstrap")?;
    if !status.success() {
        let complaints = complaints.await.ok().and_then(Result::ok).unwrap_or_default();
        let said = if complaints.trim().is_empty() { &last_line } else { complaints.trim() };
        return Err(anyhow::anyhow!("{said}")).context("debootstrap failed").hint(HINT);
    }
    Ok(())
}

/// Hands the folder to the engine as a tar, piece by piece.
async fn import(engine: &Engine, folder: &Path) -> Result<()> {
    let mut tar = Command::new("tar")
        .args(["--create", "--numeric-owner", "--one-file-system"])
        .args(LEFT_OUT.map(|pattern| format!("--exclude={pattern}")))
        .arg("--directory")
        .arg(folder)
        .arg(".")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .context("cannot start tar")?;
    let stdout = tar.stdout.take().context("tar has no output")?;
    let pieces = stream::try_unfold(stdout, |mut stdout| async move {
        let mut piece = vec![0; 1 << 16];
        let length = stdout.read(&mut piece).await?;
        piece.truncate(length);
        Ok::<_, std::io::Error>((length > 0).then(|| (piece.into(), stdout)))
    });
    let (name, tag) = split(OURS);
    let options = CreateImageOptionsBuilder::default().from_src("-").repo(name).tag(tag).build();
    let mut events =
        std::pin::pin!(engine.docker.create_image(Some(options), Some(bollard::body_try_stream(pieces)), None));
    while let Some(event) = events.next().await {
        event.doing("import the base image")?;
    }
    end_of(tar).await
}

async fn end_of(mut tar: Child) -> Result<()> {
    let mut complaints = String::new();
    if let Some(stderr) = &mut tar.stderr {
        stderr.read_to_string(&mut complaints).await.context("cannot read what tar says")?;
    }
    let status = tar.wait().await.context("cannot wait for tar")?;
    if !status.success() {
        bail!("tar failed: {}", complaints.trim());
    }
    Ok(())
}
