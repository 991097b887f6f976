//! The folder of an installation and the small files in it: secrets for their owner only, made once and then kept.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use memory::home::{DEFAULT_ADDRESS, Home};
use memory::settings;

use crate::files;
use crate::output::hinted;

/// The programs of an installation: what cargo calls them and what they are called in `bin`.
pub const PROGRAMS: [InstalledProgram; 5] = [
    InstalledProgram { built: "agent-memory-hook", installed: "agent-memory-hook", profile: "dist" },
    InstalledProgram { built: "agent-memory-server", installed: "agent-memory-server", profile: "release" },
    InstalledProgram { built: "agent-memory-mcp", installed: "agent-memory-mcp", profile: "release" },
    InstalledProgram { built: "agent-memory-finetune", installed: "agent-memory-finetune", profile: "release" },
    InstalledProgram { built: "xtask", installed: "agent-memory", profile: "release" },
];

#[derive(Debug, Clone, Copy)]
pub struct InstalledProgram {
    pub built: &'static str,
    pub installed: &'static str,
    /// The folder below the target folder that cargo builds it into.
    pub profile: &'static str,
}

/// Refuses a folder that holds other things: an installation makes its home private, has folders with common names in it, and
/// removes them when it goes.
pub fn check_home(home: &Home) -> Result<()> {
    let is_installation = home.token_file().exists() || home.installation_file().exists();
    let mut entries = std::fs::read_dir(home.root()).into_iter().flatten().filter_map(Result::ok);
    // The spool and the lock may be there before the first `up`: a hook made the one, an interrupted `up` the other. Backups stay when
    // an installation goes.
    let foreign = entries.find(|entry| {
        !["spool", "run", "start-attempt", "missed-deadlines", "backups"].iter().any(|own| entry.file_name() == *own)
    });
    match foreign {
        Some(entry) if !is_installation => Err(hinted(
            anyhow!(
                "`{}` is not empty and no installation: it holds `{}`",
                home.root().display(),
                entry.file_name().display()
            ),
            "let AGENT_MEMORY_HOME name a folder of its own, which need not exist yet",
        )),
        _ => Ok(()),
    }
}

/// Creates the folders and the tokens of an installation; what is there already stays.
pub fn create(home: &Home) -> Result<()> {
    let folders = [
        home.bin(),
        home.config(),
        home.spool(),
        home.spool().join("rejected"),
        home.run(),
        home.logs(),
        home.models(),
    ];
    files::create_private_folder(home.root())?;
    files::make_private(home.root())?;
    // The spool may belong to the server's user by now: what exists keeps its owner and mode.
    folders.iter().try_for_each(|folder| files::create_private_folder(folder))?;
    for token in [home.token_file(), home.hook_token_file()] {
        if files::read_if_there(&token)?.is_none_or(|token| token.trim().is_empty()) {
            files::write_private(&token, &format!("{}\n", files::random_secret()?))?;
        }
    }
    let settings = home.config().join(settings::FILE_NAME);
    if !settings.exists() {
        files::write_private(&settings, settings::TEMPLATE)?;
    }
    Ok(())
}

/// Where the server shall listen: the port that was asked for, else where it listened before, else the default.
pub fn choose_address(home: &Home, port: Option<u16>) -> Result<SocketAddr> {
    match port {
        Some(port) => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, port))),
        None if home.address_file().exists() => home.address().context("cannot tell where the server listens"),
        None => Ok(DEFAULT_ADDRESS.parse().expect("the default address is a constant that parses")),
    }
}

/// Leaves behind how the services are started without cargo: by the hook after a reboot, or by hand.
pub fn write_start_command(home: &Home) -> Result<()> {
    let program = home.program("agent-memory");
    let command = format!("{}\nstart\n--quiet\n", program.display());
    files::write_private_if_changed(&home.start_command_file(), &command).map(drop)
}

/// The lock that commands which start or stop something take.
pub fn lock_file(home: &Home) -> PathBuf {
    home.run().join("lock")
}

/// What moves between runtimes have left behind.
pub fn moved_file(home: &Home) -> PathBuf {
    home.root().join("moved.json")
}

/// What becomes of what is remembered, and of what a person has written and trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Data {
    Removed,
    /// A later `up` finds it.
    Kept,
}

/// All that an installation consists of but its lock and its backups, by name; without what is kept.
pub fn ours(home: &Home, data: Data) -> Vec<PathBuf> {
    let mut ours = vec![
        home.start_command_file(),
        home.schedule_file(),
        home.root().join("start-attempt"),
        home.root().join("missed-deadlines"),
        home.bin(),
        home.logs(),
        home.downloads(),
        home.address_file(),
        home.token_file(),
        home.hook_token_file(),
    ];
    if data == Data::Removed {
        ours.extend([
            home.config(),
            home.spool(),
            home.models(),
            home.root().join("data"),
            home.postgres(),
            moved_file(home),
            home.database_url_file(),
            home.pooled_database_url_file(),
            home.installation_file(),
        ]);
    }
    ours
}

/// Removes that. The caller holds the lock; only what is ours by name goes.
pub fn remove(home: &Home, data: Data) -> Result<()> {
    for path in ours(home, data) {
        files::remove(&path)?;
    }
    Ok(())
}

/// Removes the lock, its folder, and the home itself where nothing else is in it.
pub fn remove_lock(home: &Home) -> Result<()> {
    files::remove(&home.run())?;
    // It may hold what is not ours; then it stays.
    drop(std::fs::remove_dir(home.root()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_no_folder_that_holds_other_things() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        std::fs::create_dir(folder.path().join("spool")).unwrap();
        check_home(&home).unwrap();
        std::fs::create_dir(folder.path().join("Documents")).unwrap();
        let told = format!("{:#}", check_home(&home).unwrap_err());
        assert!(told.contains("`Documents`"), "{told}");
        std::fs::write(home.token_file(), "t").unwrap();
        check_home(&home).unwrap();
    }

    #[test]
    fn keeps_the_token_it_has_made() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home"));
        create(&home).unwrap();
        let token = home.token().unwrap();
        create(&home).unwrap();
        assert_eq!(home.token().unwrap(), token);
        assert_eq!(token.len(), 64);
    }

    #[test]
    fn writes_settings_once_and_leaves_those_of_the_person() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home"));
        create(&home).unwrap();
        assert_eq!(settings::Settings::read(&home.config()).unwrap(), settings::Settings::default());
        let file = home.config().join(settings::FILE_NAME);
        std::fs::write(&file, "[retention]\ncalls_days = 3\n").unwrap();
        create(&home).unwrap();
        assert_eq!(settings::Settings::read(&home.config()).unwrap().retention.calls_days, 3);
    }

    #[test]
    fn keeps_the_port_unless_another_is_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        assert_eq!(choose_address(&home, None).unwrap().to_string(), DEFAULT_ADDRESS);
        std::fs::write(home.address_file(), "127.0.0.1:4000\n").unwrap();
        assert_eq!(choose_address(&home, None).unwrap().port(), 4000);
        assert_eq!(choose_address(&home, Some(5000)).unwrap().to_string(), "127.0.0.1:5000");
    }

    #[test]
    fn the_start_command_names_the_installed_copy_line_by_line() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        write_start_command(&home).unwrap();
        let text = std::fs::read_to_string(home.start_command_file()).unwrap();
        assert_eq!(text.lines().next(), home.program("agent-memory").to_str());
        assert_eq!(text.lines().nth(1), Some("start"));
    }

    #[test]
    fn removes_what_is_its_own_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path().join("home"));
        create(&home).unwrap();
        std::fs::write(home.root().join("letter.txt"), "dear").unwrap();
        remove(&home, Data::Removed).unwrap();
        remove_lock(&home).unwrap();
        let left: Vec<_> = std::fs::read_dir(home.root()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["letter.txt"]);
    }
}
