//! Postgres' own client programs inside the database's container: of the server's very version, over the socket that only the
//! container's user can reach, so that no password is needed anywhere.

use anyhow::{Context, Result, anyhow, bail};
use bollard::container::LogOutput;
use bollard::exec::{CreateExecOptions, StartExecResults};
use futures_util::StreamExt;
use memory::home::Home;
use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc::{Receiver, Sender};

use super::engine::{Engine, EngineContext};
use super::{DATABASE, project, teardown};
use crate::output::HintExt;
use crate::runtime::tools::RESTORE_OPTIONS;

/// Runs `"$@"` as the database's own role.
const AS_ROLE: &str = r#"program="$1"; shift; exec "$program" --username="$POSTGRES_USER" "$@""#;

/// The programs in the container of a home's database.
#[derive(Debug, Clone)]
pub struct ContainerTools {
    engine: Engine,
    container: String,
}

impl ContainerTools {
    pub async fn of_home(engine: Engine, home: &Home) -> Result<Self> {
        let project = project::of(&engine, home).await?;
        let members = teardown::members(&engine, &project).await?;
        let database = members.into_iter().find(|member| member.service == DATABASE);
        let container =
            database.context("there is no container of the database").hint("run `cargo xtask up`")?.container;
        Ok(Self { engine, container })
    }

    pub fn container(&self) -> &str {
        &self.container
    }

    /// Runs a program and sends on what it prints; fails with what it said unless it succeeds.
    pub(crate) async fn read_from(&self, command: &[String], output: Sender<Vec<u8>>) -> Result<()> {
        self.run(command, Stream::Out(output)).await
    }

    /// Runs a program on what comes; fails with what it said unless it succeeds.
    pub(crate) async fn write_to(&self, command: &[String], input: Receiver<Vec<u8>>) -> Result<()> {
        self.run(command, Stream::In(input)).await
    }

    async fn run(&self, command: &[String], stream: Stream) -> Result<()> {
        let Self { engine, container } = self;
        let program = command.first().context("a command without a program")?;
        let doing = || format!("run `{program}` in {container}");
        let words = ["sh", "-c", AS_ROLE, "sh"].into_iter().map(str::to_owned).chain(command.iter().cloned());
        let options = CreateExecOptions {
            attach_stdin: Some(matches!(stream, Stream::In(_))),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            cmd: Some(words.collect()),
            env: Some(vec![format!("PGOPTIONS={}", stream.options())]),
            ..Default::default()
        };
        let exec = engine.docker.create_exec(container, options).await.doing(doing())?;
        let started = engine.docker.start_exec(&exec.id, None).await.doing(doing())?;
        let StartExecResults::Attached { mut output, mut input } = started else { bail!("cannot {}", doing()) };
        let (sender, feed) = match stream {
            Stream::Out(sender) => (Some(sender), None),
            Stream::In(receiver) => (None, Some(receiver)),
        };
        let feeding = async {
            let Some(mut pieces) = feed else { return };
            while let Some(piece) = pieces.recv().await {
                // It has ended, and says itself why.
                if input.write_all(&piece).await.is_err() {
                    return;
                }
            }
            drop(input.shutdown().await);
        };
        let reading = async {
            let mut said = String::new();
            while let Some(piece) = output.next().await {
                match piece.doing(doing())? {
                    LogOutput::StdErr { message } => said.push_str(&String::from_utf8_lossy(&message)),
                    LogOutput::StdOut { message } => {
                        let Some(sender) = &sender else { continue };
                        if sender.send(message.to_vec()).await.is_err() {
                            bail!("nobody takes what `{program}` gives");
                        }
                    }
                    _ => {}
                }
            }
            anyhow::Ok(said)
        };
        let (said, ()) = tokio::join!(reading, feeding);
        let said = said?;
        match engine.docker.inspect_exec(&exec.id).await.doing(doing())?.exit_code {
            Some(0) => Ok(()),
            _ => Err(anyhow!("{}", said.trim()).context(format!("`{program}` failed in {container}"))),
        }
    }
}

impl Stream {
    fn options(&self) -> &'static str {
        match self {
            Self::Out(_) => "",
            Self::In(_) => RESTORE_OPTIONS,
        }
    }
}

enum Stream {
    Out(Sender<Vec<u8>>),
    In(Receiver<Vec<u8>>),
}
