//! Finds an agent's program, or installs it from npm, and Node with it where the agent needs a newer one.
//!
//! What is installed is complete or not there: npm works in a folder beside, which is renamed when all is well. So two
//! runs that install at the same time do no harm.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};
use tokio::process::Command;
use tokio::sync::OnceCell;

use super::User;
use crate::{settings, summary};

/// Used where the PATH has no Node, or one that is too old for an agent.
const NODE_VERSION: &str = "22.23.3";

/// An agent as npm has it.
#[derive(Debug)]
pub(super) struct Package {
    /// As people call it.
    pub(super) name: &'static str,
    pub(super) package: &'static str,
    pub(super) version: &'static str,
    pub(super) program: &'static str,
    /// The oldest Node that runs it; 0 where it brings a program of its own.
    pub(super) node: u32,
    pub(super) found: OnceCell<Result<Client, String>>,
}

/// An installed agent.
#[derive(Debug)]
pub struct Client {
    program: PathBuf,
    path: OsString,
}

impl Package {
    /// The installed client, or nothing where there is none and none is required; the summary has the reason. Looks, and
    /// installs, once a run.
    pub(super) async fn find(&'static self) -> Result<Option<&'static Client>> {
        let found = self.found.get_or_init(|| async {
            let found = self.look().await.map_err(|error| format!("{error:#}"));
            match &found {
                Ok((_, source)) => summary::line(&format!("{}: {}, {source}", self.name, self.version)),
                Err(why) => summary::line(&format!("{}: NOT TESTED, {why}", self.name)),
            }
            found.map(|(client, _)| client)
        });
        match found.await {
            Ok(client) => Ok(Some(client)),
            Err(why) if settings::clients_are_required() => {
                bail!("{} is required ({}) and could not be had: {why}", self.name, settings::REQUIRE_CLIENTS)
            }
            Err(_) => Ok(None),
        }
    }

    async fn look(&self) -> Result<(Client, &'static str)> {
        let path = path_with_node(self.node).await?;
        if let Ok(version) = version_of(Path::new(self.program)).await
            && version.split_whitespace().any(|word| word == self.version)
        {
            return Ok((Client { program: PathBuf::from(self.program), path }, "from the PATH"));
        }
        let folder = self.package.rsplit('/').next().unwrap_or(self.package);
        let folder = cache()?.join(format!("{folder}-{}", self.version));
        let client = Client { program: folder.join("node_modules/.bin").join(self.program), path };
        if client.program.exists() {
            return Ok((client, "from the cache"));
        }
        install(&folder, &[&format!("{}@{}", self.package, self.version)], Extent::Whole).await?;
        ensure!(client.program.exists(), "`{}` lacks the program; remove that folder", folder.display());
        Ok((client, "just installed"))
    }
}

impl Client {
    /// The program with the PATH and nothing else.
    pub(super) fn bare_command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().env("PATH", &self.path);
        command
    }

    /// Where npm installed it: the folder that holds `node_modules`.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.program.ancestors().nth(3)
    }

    /// The program with that user's environment and nothing else, in the user's project.
    pub(super) fn command(&self, user: &User) -> Command {
        let mut command = Command::new(&self.program);
        command.env_clear().env("PATH", &self.path).envs(user.environment()).current_dir(&user.project);
        command
    }
}

/// The PATH, led by a Node of that version or newer where it has none.
pub(crate) async fn path_with_node(least: u32) -> Result<OsString> {
    let path = settings::get("PATH").unwrap_or_default();
    let version = if least == 0 { None } else { Some(version_of(Path::new("node")).await.unwrap_or_default()) };
    let major = |version: String| version.trim_start_matches('v').split('.').next()?.parse::<u32>().ok();
    if version.is_none_or(|version| major(version).is_some_and(|major| major >= least)) {
        return Ok(path.into());
    }
    let package = format!("node-{}-{}", platform(), architecture());
    let folder = cache()?.join(format!("node-{NODE_VERSION}"));
    if !folder.exists() {
        install(&folder, &[&format!("{package}@{NODE_VERSION}")], Extent::Whole).await?;
    }
    let folders = [folder.join("node_modules").join(package).join("bin")];
    let folders = folders.into_iter().chain(std::env::split_paths(&path));
    std::env::join_paths(folders).context("putting Node before the PATH")
}

/// As npm names it.
fn platform() -> &'static str {
    if cfg!(target_os = "macos") { "darwin" } else { std::env::consts::OS }
}

fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "x64",
        "aarch64" => "arm64",
        other => other,
    }
}

/// A package that is no program: the folder in which it lies, installed if it is not there.
pub(crate) async fn package(name: &str, version: &str) -> Result<PathBuf> {
    let folder = installed(name, version, &[&format!("{name}@{version}")], Extent::Whole).await?;
    Ok(folder.join("node_modules").join(name))
}

/// A package and, of the programs that were built for it, the one that is named: the folder that holds `node_modules`. The others, for
/// graphics cards and for other systems, are many times as large.
pub(crate) async fn prebuilt(name: &str, program: &str, version: &str) -> Result<PathBuf> {
    let packages = [format!("{name}@{version}"), format!("{program}@{version}")];
    installed(name, version, &packages.each_ref().map(String::as_str), Extent::Named).await
}

async fn installed(name: &str, version: &str, packages: &[&str], extent: Extent) -> Result<PathBuf> {
    static ONE_AT_A_TIME: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());
    let folder = cache()?.join(format!("{}-{version}", name.rsplit('/').next().unwrap_or(name)));
    let _guard = ONE_AT_A_TIME.lock().await;
    if !folder.exists() {
        install(&folder, packages, extent).await?;
    }
    Ok(folder)
}

/// How much of a package is installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// All that it asks for.
    Whole,
    /// What is named and what that cannot do without; scripts that would build or download more do not run.
    Named,
}

fn cache() -> Result<PathBuf> {
    Ok(settings::cache_folder().context("neither XDG_CACHE_HOME nor HOME is set")?.join("clients"))
}

async fn version_of(program: &Path) -> Result<String> {
    let output = Command::new(program).arg("--version").stdin(Stdio::null()).output().await?;
    ensure!(output.status.success(), "`{} --version` ended with {}", program.display(), output.status);
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

async fn install(folder: &Path, packages: &[&str], extent: Extent) -> Result<()> {
    let package = packages.join(" ");
    let parent = folder.parent().context("the cache has no folder")?;
    std::fs::create_dir_all(parent).with_context(|| format!("making `{}`", parent.display()))?;
    let beside =
        tempfile::Builder::new().prefix(".installing-").tempdir_in(parent).context("making a folder for npm")?;
    let output = Command::new("npm")
        .args(["install", "--no-audit", "--no-fund"])
        .args(if extent == Extent::Named { &["--omit=optional", "--ignore-scripts"][..] } else { &[] })
        .arg("--prefix")
        .arg(beside.path())
        .args(packages)
        .stdin(Stdio::null())
        .output()
        .await
        .with_context(|| format!("starting npm to install {package} (is Node installed?)"))?;
    ensure!(
        output.status.success(),
        "npm could not install {package}: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let renamed = std::fs::rename(beside.path(), folder);
    // Another run may have been faster; what it installed is the same.
    if renamed.is_err() && !folder.exists() {
        renamed.with_context(|| format!("moving {package} to `{}`", folder.display()))?;
    }
    Ok(())
}
