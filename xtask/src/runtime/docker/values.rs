//! The values that compose.yaml leaves open, and `run/compose.env` in the home, where `up` keeps the ones it chose: for
//! `down`, for a start after a reboot, and for `docker compose --env-file`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::{Context, Result};
use memory::home::{Home, Platform, Surroundings};

use super::images::Images;
use super::mapping::digest;
use crate::files;
use crate::output::HintExt;

const PROJECT: &str = "AGENT_MEMORY_PROJECT";
const HOME: &str = "AGENT_MEMORY_HOME";
const USER: &str = "AGENT_MEMORY_USER";
const SERVER_PORT: &str = "AGENT_MEMORY_PORT";
const DATABASE_PORT: &str = "AGENT_MEMORY_DATABASE_PORT";
const SERVER_IMAGE: &str = "AGENT_MEMORY_SERVER_IMAGE";
const POSTGRES_IMAGE: &str = "AGENT_MEMORY_POSTGRES_IMAGE";

/// The project's name where only one home uses the engine.
pub(crate) const DEFAULT_PROJECT: &str = "agent-memory";

/// Everything that compose.yaml leaves open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Values {
    pub project: String,
    pub home: String,
    pub container_user: String,
    pub server_port: u16,
    pub database_port: u16,
    pub images: Images,
}

impl Values {
    /// What the last `up` chose, or `None` where none has been.
    pub(crate) fn read(home: &Home) -> Result<Option<Self>> {
        let path = file(home);
        let Some(text) = files::read_if_there(&path)? else { return Ok(None) };
        let values = Self::parse(&text)
            .with_context(|| format!("cannot understand `{}`", path.display()))
            .hint("remove the file and run `cargo xtask up`; it writes it anew")?;
        Ok(Some(values))
    }

    pub(crate) fn with_server_image(self, reference: &str) -> Self {
        Self { images: Images { server: reference.to_owned(), ..self.images }, ..self }
    }

    pub(crate) fn write(&self, home: &Home) -> Result<()> {
        files::write_private(&file(home), &self.to_env_file())
    }

    pub(crate) fn variables(&self) -> BTreeMap<String, String> {
        let pairs = [
            (PROJECT, self.project.clone()),
            (HOME, self.home.clone()),
            (USER, self.container_user.clone()),
            (SERVER_PORT, self.server_port.to_string()),
            (DATABASE_PORT, self.database_port.to_string()),
            (SERVER_IMAGE, self.images.server.clone()),
            (POSTGRES_IMAGE, self.images.postgres.clone()),
        ];
        pairs.map(|(name, value)| (name.to_owned(), value)).into()
    }

    /// The content of `run/compose.env`. In single quotes nothing but the quote itself means anything to Compose.
    pub(crate) fn to_env_file(&self) -> String {
        let lines =
            self.variables().into_iter().map(|(name, value)| format!("{name}='{}'\n", value.replace('\'', r"\'")));
        format!("# Written by `cargo xtask up` for docker compose --env-file.\n{}", lines.collect::<String>())
    }

    fn parse(text: &str) -> Result<Self> {
        let lines = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('='));
        let values: BTreeMap<_, _> = lines
            .filter_map(|(name, value)| Some((name, value.strip_prefix('\'')?.strip_suffix('\'')?.replace(r"\'", "'"))))
            .collect();
        let take = |name| values.get(name).cloned().with_context(|| format!("{name} is missing"));
        let port = |name| take(name)?.parse().with_context(|| format!("{name} is no port"));
        Ok(Self {
            project: take(PROJECT)?,
            home: take(HOME)?,
            container_user: take(USER)?,
            server_port: port(SERVER_PORT)?,
            database_port: port(DATABASE_PORT)?,
            images: Images { postgres: take(POSTGRES_IMAGE)?, server: take(SERVER_IMAGE)? },
        })
    }
}

pub(crate) fn file(home: &Home) -> PathBuf {
    home.run().join("compose.env")
}

/// The home as the engine needs it: absolute.
pub(crate) fn absolute(home: &Home) -> Result<String> {
    let path = std::path::absolute(home.root()).context("the working folder is gone")?;
    path.into_os_string()
        .into_string()
        .map_err(|path| anyhow::anyhow!("the home's path is not Unicode: {}", path.display()))
        .hint("choose another folder with AGENT_MEMORY_HOME")
}

/// The names that a home's project can have: the plain one for the user's default home, if no other home has it in this
/// engine; else one of its own.
pub(crate) fn project_names(home: &Home) -> Result<Vec<String>> {
    let absolute = absolute(home)?;
    let own = format!("{DEFAULT_PROJECT}-{}", &digest([absolute.as_bytes()])[..8]);
    let usual = Surroundings { agent_memory_home: None, program: None, ..Surroundings::of_process() };
    let is_default = Home::locate_in(&usual, Platform::current()).is_ok_and(|usual| usual.root() == home.root());
    Ok(if is_default { vec![DEFAULT_PROJECT.to_owned(), own] } else { vec![own] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Values {
        Values {
            project: "agent-memory".to_owned(),
            home: "/home/o'brien/my memory".to_owned(),
            container_user: "1000:1000".to_owned(),
            server_port: 3377,
            database_port: 3378,
            images: Images { postgres: "p:1".to_owned(), server: "s:1".to_owned() },
        }
    }

    #[test]
    fn reads_back_what_it_wrote() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        assert_eq!(Values::read(&home).unwrap(), None);
        std::fs::create_dir(home.run()).unwrap();
        std::fs::write(file(&home), values().to_env_file()).unwrap();
        assert_eq!(Values::read(&home).unwrap(), Some(values()));
        std::fs::write(file(&home), "AGENT_MEMORY_PROJECT='p'\n").unwrap();
        assert!(Values::read(&home).is_err());
    }

    #[test]
    fn fills_every_variable_of_the_description() {
        let description = super::super::description::Description::ours(&values().variables()).unwrap();
        assert_eq!(description.services["server"].image, "s:1");
        assert_eq!(description.services["database"].image, "p:1");
        assert_eq!(description.services["server"].user, "1000:1000");
        assert_eq!(description.services["database"].ports, ["127.0.0.1:3378:5432"]);
    }

    #[test]
    fn gives_each_home_that_is_not_the_default_its_own_project() {
        let (one, other) = (Home::at("/tmp/one"), Home::at("/tmp/other"));
        let names = |home| project_names(home).unwrap();
        assert_eq!(names(&one).len(), 1);
        assert!(names(&one)[0].starts_with("agent-memory-"));
        assert_ne!(names(&one), names(&other));
    }
}
