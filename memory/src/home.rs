//! Where an installation lies on disk: one folder, the *home*, and the names in it.
//!
//! Every program finds the same home by the same rule; `hooks` repeats the rule without this crate, and a test in
//! `tests` holds the two equal. This module names paths and reads the small one-line files; it decides nothing.

use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Where the server listens unless the home says otherwise.
pub const DEFAULT_ADDRESS: &str = "127.0.0.1:3377";

/// The folder that holds an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
}

/// Why no home could be found or a file in it not be used.
#[derive(Debug, thiserror::Error)]
pub enum HomeError {
    #[error("no home folder: AGENT_MEMORY_HOME is not set and the user's own folder is unknown")]
    Unknown,
    #[error("cannot read `{path}`")]
    Read { path: PathBuf, source: io::Error },
    #[error("`{path}` does not hold {expected}: `{found}`")]
    Content { path: PathBuf, expected: &'static str, found: String },
}

/// What decides where the home is, gathered by [`Surroundings::of_process`] and passed in by tests.
#[derive(Debug, Default, Clone)]
pub struct Surroundings {
    pub agent_memory_home: Option<OsString>,
    pub program: Option<PathBuf>,
    pub xdg_data_home: Option<OsString>,
    pub home: Option<OsString>,
    pub local_app_data: Option<OsString>,
}

impl Surroundings {
    /// Reads the environment of this process.
    #[allow(clippy::disallowed_methods, reason = "the one place that reads where the home is")]
    pub fn of_process() -> Self {
        let var = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        Self {
            agent_memory_home: var("AGENT_MEMORY_HOME"),
            program: std::env::current_exe().ok(),
            xdg_data_home: var("XDG_DATA_HOME"),
            home: var("HOME").or_else(|| var("USERPROFILE")),
            local_app_data: var("LOCALAPPDATA"),
        }
    }
}

/// The three families of systems that keep user data in different places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Platform {
    Linux,
    MacOs,
    Windows,
}

impl Platform {
    pub const fn current() -> Self {
        if cfg!(target_os = "macos") {
            Self::MacOs
        } else if cfg!(windows) {
            Self::Windows
        } else {
            Self::Linux
        }
    }
}

impl Home {
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Finds the home of this process.
    pub fn locate() -> Result<Self, HomeError> {
        Self::locate_in(&Surroundings::of_process(), Platform::current())
    }

    /// The rule itself: the variable, else the installation that the running program lies in, else the platform's
    /// data folder.
    pub fn locate_in(around: &Surroundings, platform: Platform) -> Result<Self, HomeError> {
        // A relative folder would be another one in every working folder.
        if let Some(root) = around.agent_memory_home.as_ref().filter(|root| Path::new(root).is_absolute()) {
            return Ok(Self::at(root));
        }
        if let Some(root) = around.program.as_deref().and_then(installation_around) {
            return Ok(Self::at(root));
        }
        let user = around.home.as_ref().map(PathBuf::from);
        let data = match platform {
            Platform::Linux => {
                let xdg = around.xdg_data_home.as_ref().map(PathBuf::from).filter(|folder| folder.is_absolute());
                xdg.or(user.map(|home| home.join(".local/share")))
            }
            Platform::MacOs => user.map(|home| home.join("Library/Application Support")),
            Platform::Windows => {
                around.local_app_data.as_ref().map(PathBuf::from).or(user.map(|home| home.join("AppData/Local")))
            }
        };
        Ok(Self::at(data.ok_or(HomeError::Unknown)?.join("agent-memory")))
    }

    pub fn root(&self) -> &Path {
        &self.root
    }
    pub fn bin(&self) -> PathBuf {
        self.root.join("bin")
    }
    /// The installed program of that name, with the platform's ending.
    pub fn program(&self, name: &str) -> PathBuf {
        self.bin().join(format!("{name}{}", std::env::consts::EXE_SUFFIX))
    }
    pub fn installation_file(&self) -> PathBuf {
        self.root.join("installation.json")
    }
    /// Who makes the daily backup.
    pub fn schedule_file(&self) -> PathBuf {
        self.root.join("schedule.json")
    }
    pub fn address_file(&self) -> PathBuf {
        self.root.join("address")
    }
    pub fn token_file(&self) -> PathBuf {
        self.root.join("token")
    }
    /// The token of hooks, which can only hand over events.
    pub fn hook_token_file(&self) -> PathBuf {
        self.root.join("hook-token")
    }
    pub fn database_url_file(&self) -> PathBuf {
        self.root.join("database-url")
    }
    /// The way through a pooler in transaction mode, where there is one.
    pub fn pooled_database_url_file(&self) -> PathBuf {
        self.root.join("pooled-database-url")
    }
    pub fn start_command_file(&self) -> PathBuf {
        self.root.join("start-command")
    }
    /// What a person may edit.
    pub fn config(&self) -> PathBuf {
        self.root.join("config")
    }
    pub fn spool(&self) -> PathBuf {
        self.root.join("spool")
    }
    pub fn run(&self) -> PathBuf {
        self.root.join("run")
    }
    pub fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }
    pub fn models(&self) -> PathBuf {
        self.root.join("models")
    }
    pub fn postgres(&self) -> PathBuf {
        self.root.join("postgres")
    }
    /// Where backups go unless the settings name another folder.
    pub fn backups(&self) -> PathBuf {
        self.root.join("backups")
    }
    pub fn downloads(&self) -> PathBuf {
        self.root.join("downloads")
    }

    /// The server's address: what the `address` file says, else [`DEFAULT_ADDRESS`].
    pub fn address(&self) -> Result<SocketAddr, HomeError> {
        let path = self.address_file();
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => DEFAULT_ADDRESS.to_owned(),
            Err(source) => return Err(HomeError::Read { path, source }),
        };
        text.trim().parse().map_err(|_| HomeError::Content { path, expected: "host:port", found: text })
    }

    /// The operator's token, which may do everything.
    pub fn token(&self) -> Result<String, HomeError> {
        read_line(&self.token_file())
    }

    /// The token of hooks; an installation from before it has none.
    pub fn hook_token(&self) -> Result<String, HomeError> {
        read_line(&self.hook_token_file())
    }

    /// The database's URL, password included: never log it.
    pub fn database_url(&self) -> Result<String, HomeError> {
        read_line(&self.database_url_file())
    }

    /// The same by a pooler in transaction mode, if there is one.
    pub fn pooled_database_url(&self) -> Result<Option<String>, HomeError> {
        match read_line(&self.pooled_database_url_file()) {
            Ok(url) => Ok(Some(url)),
            Err(HomeError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn installation_around(program: &Path) -> Option<&Path> {
    let bin = program.parent().filter(|folder| folder.file_name().is_some_and(|name| name == "bin"))?;
    bin.parent().filter(|root| root.join("token").is_file())
}

fn read_line(path: &Path) -> Result<String, HomeError> {
    let text = std::fs::read_to_string(path).map_err(|source| HomeError::Read { path: path.to_owned(), source })?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(around: &Surroundings, platform: Platform, expected: &str) {
        assert_eq!(Home::locate_in(around, platform).unwrap().root(), Path::new(expected));
    }

    #[test]
    fn takes_the_variable_before_anything_else() {
        let around =
            Surroundings { agent_memory_home: Some("/m".into()), home: Some("/h".into()), ..Default::default() };
        check(&around, Platform::Linux, "/m");
    }

    #[test]
    fn takes_the_installation_the_program_lies_in() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("bin")).unwrap();
        let around = Surroundings {
            program: Some(folder.path().join("bin/agent-memory-mcp")),
            home: Some("/h".into()),
            ..Default::default()
        };
        check(&around, Platform::Linux, "/h/.local/share/agent-memory");
        std::fs::write(folder.path().join("token"), "t").unwrap();
        check(&around, Platform::Linux, folder.path().to_str().unwrap());
    }

    #[test]
    fn takes_each_platforms_data_folder() {
        let around = Surroundings { home: Some("/h".into()), ..Default::default() };
        check(&around, Platform::Linux, "/h/.local/share/agent-memory");
        check(&around, Platform::MacOs, "/h/Library/Application Support/agent-memory");
        check(&around, Platform::Windows, "/h/AppData/Local/agent-memory");
        let around = Surroundings { xdg_data_home: Some("/x".into()), ..around };
        check(&around, Platform::Linux, "/x/agent-memory");
    }

    #[test]
    fn takes_no_relative_folder() {
        let around = Surroundings {
            agent_memory_home: Some("~/m".into()),
            xdg_data_home: Some("data".into()),
            home: Some("/h".into()),
            ..Default::default()
        };
        check(&around, Platform::Linux, "/h/.local/share/agent-memory");
    }

    #[test]
    fn says_when_there_is_no_home_at_all() {
        assert!(matches!(Home::locate_in(&Surroundings::default(), Platform::Linux), Err(HomeError::Unknown)));
    }
}
