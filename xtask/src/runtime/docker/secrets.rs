//! The files that the containers see as secrets, in `run/secrets` of the home: a folder that only the home's owner can
//! enter, files that only the container's user can read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use memory::home::Home;

use super::description::{Description, Service};
use super::mapping::digest;
use super::ownership::{self, Match, Owner};
use crate::files::{self, Mode};

pub(crate) fn folder(home: &Home) -> PathBuf {
    home.run().join("secrets")
}

/// What the containers are told in confidence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Secrets {
    token: String,
    hook_token: String,
    database_password: String,
}

impl Secrets {
    /// The home's tokens, and the database's password: the one that is there, else a new one.
    pub(crate) fn of(home: &Home) -> Result<Self> {
        let token = home.token().context("the containers need the home's token")?;
        let hook_token = home.hook_token().context("the containers need the hooks' token")?;
        let password = files::read_if_there(&folder(home).join("database-password"))?;
        let database_password = match password.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()) {
            Some(password) => password,
            None => files::random_secret()?,
        };
        Ok(Self { token, hook_token, database_password })
    }

    /// Where programs on the host find the database.
    pub(crate) fn database_url_on_host(&self, port: u16) -> String {
        format!("postgres://agent_memory:{}@127.0.0.1:{port}/agent_memory", self.database_password)
    }

    /// Writes the files; those that hold the same already keep their place, because running containers hold on to it.
    pub(crate) fn write(&self, home: &Home, owners: &Match) -> Result<()> {
        files::create_private_folder(&home.run())?;
        files::create_private_folder(&folder(home))?;
        for (name, content) in self.contents() {
            let owner = if name == "database-password" { owners.database } else { owners.server };
            write_secret(&folder(home).join(name), &content, reader(name, owner))?;
        }
        Ok(())
    }

    /// What a service sees, as a digest.
    pub(crate) fn digest_for(&self, service: &Service) -> String {
        let contents = self.contents();
        let seen = service.secrets.iter().filter_map(|name| contents.get_key_value(name.as_str()));
        digest(seen.flat_map(|(name, content)| [name.as_bytes(), content.as_bytes()]))
    }

    fn contents(&self) -> BTreeMap<&'static str, String> {
        let password = &self.database_password;
        BTreeMap::from([
            ("database-password", password.clone()),
            ("database-url", format!("postgres://agent_memory:{password}@database:5432/agent_memory")),
            ("hook-token", self.hook_token.clone()),
            ("token", self.token.clone()),
        ])
    }
}

/// Every secret in compose.yaml must be one that this module writes.
pub(crate) fn check_all_are_written(description: &Description, secrets: &Secrets) -> Result<()> {
    let contents = secrets.contents();
    let unknown = description.secrets.keys().find(|name| !contents.contains_key(name.as_str()));
    unknown.map_or(Ok(()), |name| anyhow::bail!("compose.yaml: nobody writes the secret `{name}`"))
}

/// Who can read a secret's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reader {
    /// The file's owner.
    Owner(Option<Owner>),
    /// Everyone who can enter the folder, which is its owner, and the container that it is mounted into.
    WhoeverEnters,
}

/// Only root can give a file away; without root, the database, which runs under its own number, needs an open file.
fn reader(name: &str, owner: Option<Owner>) -> Reader {
    if name == "database-password" && owner.is_none() { Reader::WhoeverEnters } else { Reader::Owner(owner) }
}

fn write_secret(path: &Path, content: &str, reader: Reader) -> Result<()> {
    let line = format!("{content}\n");
    if files::read_if_there(path)?.as_deref() != Some(line.as_str()) {
        files::write(path, line.as_bytes(), Mode::Private)?;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = match reader {
            Reader::Owner(_) => 0o400,
            Reader::WhoeverEnters => 0o444,
        };
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode))
            .with_context(|| format!("cannot protect `{}`", path.display()))?;
    }
    match reader {
        Reader::Owner(Some(owner)) => ownership::give(path, owner),
        Reader::Owner(None) | Reader::WhoeverEnters => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::description::tests::variables;
    use super::*;

    fn installed() -> (tempfile::TempDir, Home, Match) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        std::fs::write(home.token_file(), "the-token\n").unwrap();
        std::fs::write(home.hook_token_file(), "the-hooks\n").unwrap();
        let owner = ownership::owner_of(folder.path()).unwrap();
        (folder, home, Match { container_user: String::new(), server: owner, database: None })
    }

    #[test]
    fn writes_each_secret_that_the_description_names_and_keeps_the_password() {
        let (_folder, home, owners) = installed();
        let secrets = Secrets::of(&home).unwrap();
        check_all_are_written(&Description::ours(&variables()).unwrap(), &secrets).unwrap();
        secrets.write(&home, &owners).unwrap();
        let read = |name: &str| std::fs::read_to_string(folder(&home).join(name)).unwrap();
        assert_eq!(read("token"), "the-token\n");
        assert!(read("database-url").contains("@database:5432/"));
        assert_eq!(Secrets::of(&home).unwrap(), secrets);
        secrets.write(&home, &owners).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn leaves_secrets_readable_to_nobody_else() {
        use std::os::unix::fs::PermissionsExt;
        let (_folder, home, owners) = installed();
        Secrets::of(&home).unwrap().write(&home, &owners).unwrap();
        let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(folder(&home)), 0o700);
        assert_eq!(mode(folder(&home).join("token")), 0o400);
        assert_eq!(mode(folder(&home).join("database-url")), 0o400);
        assert_eq!(mode(folder(&home).join("database-password")), 0o444);
    }

    #[test]
    fn a_new_token_concerns_the_server_and_not_the_database() {
        let (_folder, home, _) = installed();
        let description = Description::ours(&variables()).unwrap();
        let before = Secrets::of(&home).unwrap();
        let after = Secrets { token: "another".to_owned(), ..before.clone() };
        let digests = |service: &str| {
            let service = &description.services[service];
            (before.digest_for(service), after.digest_for(service))
        };
        let (server, database) = (digests("server"), digests("database"));
        assert_ne!(server.0, server.1);
        assert_eq!(database.0, database.1);
    }
}
