//! Where the installation lies, by the rule of `memory::home`, and the two small files in it that a hook needs.
//!
//! The rule stands here a second time because this program depends on nothing. It is the only file here that reads
//! the environment.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Where the server listens unless the home says otherwise.
const DEFAULT_ADDRESS: &str = "127.0.0.1:3377";

/// The folder that holds an installation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Home {
    root: PathBuf,
}

/// What decides where the home is.
#[derive(Debug, Default, Clone)]
pub(crate) struct Surroundings {
    pub(crate) agent_memory_home: Option<OsString>,
    pub(crate) program: Option<PathBuf>,
    pub(crate) xdg_data_home: Option<OsString>,
    pub(crate) home: Option<OsString>,
    pub(crate) local_app_data: Option<OsString>,
}

/// The three families of systems that keep user data in different places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Platform {
    Linux,
    MacOs,
    Windows,
}

/// Whether `AGENT_MEMORY_DISABLE` is set: then this process belongs to something that we started ourselves.
pub(crate) fn is_disabled() -> bool {
    variable("AGENT_MEMORY_DISABLE").is_some_and(|value| value != "0")
}

/// Where the agent works: this process's folder, but for Cursor, which runs a user's hooks in a folder of its own and names the
/// project's in the environment.
pub(crate) fn working_folder() -> Option<PathBuf> {
    let named = variable("CURSOR_PROJECT_DIR").map(PathBuf::from).filter(|folder| folder.is_dir());
    named.or_else(|| std::env::current_dir().ok())
}

/// The user's own folder.
pub(crate) fn user_folder() -> Option<PathBuf> {
    Surroundings::of_process().home.map(PathBuf::from)
}

impl Home {
    /// Finds the home of this process; `None` where the user has no folder.
    pub(crate) fn locate() -> Option<Self> {
        Self::locate_in(&Surroundings::of_process(), Platform::current())
    }

    pub(crate) fn locate_in(around: &Surroundings, platform: Platform) -> Option<Self> {
        // A relative folder would be another one in every working folder.
        if let Some(root) = around.agent_memory_home.as_ref().filter(|root| Path::new(root).is_absolute()) {
            return Some(Self { root: root.into() });
        }
        if let Some(root) = around.program.as_deref().and_then(installation_around) {
            return Some(Self { root: root.to_owned() });
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
        Some(Self { root: data?.join("agent-memory") })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn spool(&self) -> PathBuf {
        self.root.join("spool")
    }

    /// The user's list of what must not be recorded.
    pub(crate) fn exclude_file(&self) -> PathBuf {
        self.root.join("config").join("exclude")
    }

    pub(crate) fn start_command_file(&self) -> PathBuf {
        self.root.join("start-command")
    }

    pub(crate) fn start_attempt_file(&self) -> PathBuf {
        self.root.join("start-attempt")
    }

    /// How many deadlines were missed that the server has not heard of, one byte for each.
    pub(crate) fn missed_file(&self) -> PathBuf {
        self.root.join("missed-deadlines")
    }

    /// The server's address; `None` where the file holds something else.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match std::fs::read_to_string(self.root.join("address")) {
            Ok(text) => text.trim().parse().ok(),
            Err(_) => DEFAULT_ADDRESS.parse().ok(),
        }
    }

    /// The hooks' own token, which can only hand over events; an installation from before it has the operator's alone. `None` where
    /// there is none that can stand in a header.
    pub(crate) fn token(&self) -> Option<String> {
        let read = |name: &str| std::fs::read_to_string(self.root.join(name)).ok();
        let text = read("hook-token").or_else(|| read("token"))?;
        let token = text.trim();
        let fits = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
        fits.then(|| token.to_owned())
    }
}

impl Surroundings {
    fn of_process() -> Self {
        Self {
            agent_memory_home: variable("AGENT_MEMORY_HOME"),
            program: std::env::current_exe().ok(),
            xdg_data_home: variable("XDG_DATA_HOME"),
            home: variable("HOME").or_else(|| variable("USERPROFILE")),
            local_app_data: variable("LOCALAPPDATA"),
        }
    }
}

impl Platform {
    const fn current() -> Self {
        if cfg!(target_os = "macos") {
            Self::MacOs
        } else if cfg!(windows) {
            Self::Windows
        } else {
            Self::Linux
        }
    }
}

#[allow(clippy::disallowed_methods, reason = "the one place of this program that reads the environment")]
fn variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

fn installation_around(program: &Path) -> Option<&Path> {
    let bin = program.parent().filter(|folder| folder.file_name().is_some_and(|name| name == "bin"))?;
    bin.parent().filter(|root| root.join("token").is_file())
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
    fn takes_each_platforms_data_folder() {
        let around = Surroundings { home: Some("/h".into()), ..Default::default() };
        check(&around, Platform::Linux, "/h/.local/share/agent-memory");
        check(&around, Platform::MacOs, "/h/Library/Application Support/agent-memory");
        check(&around, Platform::Windows, "/h/AppData/Local/agent-memory");
        let around = Surroundings { xdg_data_home: Some("/x".into()), local_app_data: Some("/l".into()), ..around };
        check(&around, Platform::Linux, "/x/agent-memory");
        check(&around, Platform::MacOs, "/h/Library/Application Support/agent-memory");
        check(&around, Platform::Windows, "/l/agent-memory");
    }

    #[test]
    fn has_no_home_where_the_user_has_none() {
        assert_eq!(Home::locate_in(&Surroundings::default(), Platform::Linux), None);
    }
}
