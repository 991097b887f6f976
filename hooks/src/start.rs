//! Starting the services that are installed but not running, so that a reboot needs no one's hand.
//!
//! The command is what `up` left in the home. It is started in the background, at most once a minute, and not waited for;
//! whether it succeeds, the next event will show.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use crate::home::Home;

const START_INTERVAL: Duration = Duration::from_mins(1);

/// Starts the services, unless someone tried within the last minute or nothing is installed.
pub(crate) fn start_services(home: &Home) {
    if let Ok(text) = std::fs::read_to_string(home.start_command_file())
        && let Some(mut command) = command_of(&text)
        && claim_attempt(&home.start_attempt_file())
    {
        detach(&mut command, home.root());
        let _ = command.spawn();
    }
}

/// The program and its arguments, one a line.
fn command_of(text: &str) -> Option<Command> {
    let mut lines = text.lines();
    let program = lines.next().filter(|program| !program.is_empty())?;
    let mut command = Command::new(program);
    command.args(lines);
    Some(command)
}

fn detach(command: &mut Command, folder: &Path) {
    command
        .current_dir(folder)
        .env("AGENT_MEMORY_DISABLE", "1")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // What ends the agent, such as Ctrl-C in its terminal, shall not end the services.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    #[cfg(windows)]
    {
        const CREATE_NEW_PROCESS_GROUP: u32 = 0x0000_0200;
        const CREATE_NO_WINDOW: u32 = 0x0800_0000;
        std::os::windows::process::CommandExt::creation_flags(command, CREATE_NEW_PROCESS_GROUP | CREATE_NO_WINDOW);
    }
}

/// Whether this process is the one that may start: of any number that ask at the same time, one.
///
/// Who creates the file may. Who finds one that is old may if it gets the file's lock and the file is then still old.
fn claim_attempt(path: &Path) -> bool {
    if File::create_new(path).is_ok() {
        return true;
    }
    let Ok(file) = OpenOptions::new().write(true).open(path) else {
        return false;
    };
    file.try_lock().is_ok() && is_old(&file) && file.set_modified(SystemTime::now()).is_ok()
}

fn is_old(file: &File) -> bool {
    let Ok(modified) = file.metadata().and_then(|metadata| metadata.modified()) else {
        return false;
    };
    // A time in the future is from before the clock was set back.
    modified.elapsed().map_or(true, |age| age >= START_INTERVAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_command_with_one_argument_a_line() {
        let command = command_of("/opt/a b/agent-memory\nup\n--no-register\n").unwrap();
        assert_eq!(command.get_program(), "/opt/a b/agent-memory");
        assert_eq!(command.get_args().collect::<Vec<_>>(), ["up", "--no-register"]);
        assert!(command_of("").is_none());
        assert!(command_of("\nup").is_none());
    }

    #[test]
    fn lets_one_of_many_start_and_the_next_after_a_minute() {
        let path = std::env::temp_dir().join(format!("agent-memory-start-attempt-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        assert_eq!(claims_of_eight(&path), 1, "where nobody has tried yet");
        assert_eq!(claims_of_eight(&path), 0, "directly afterwards");
        let earlier = SystemTime::now() - START_INTERVAL;
        File::options().write(true).open(&path).unwrap().set_modified(earlier).unwrap();
        assert_eq!(claims_of_eight(&path), 1, "a minute later");
        let later = SystemTime::now() + Duration::from_hours(1);
        File::options().write(true).open(&path).unwrap().set_modified(later).unwrap();
        assert_eq!(claims_of_eight(&path), 1, "after the clock was set back");
        std::fs::remove_file(&path).unwrap();
    }

    fn claims_of_eight(path: &Path) -> usize {
        std::thread::scope(|scope| {
            let claims: Vec<_> = (0..8).map(|_| scope.spawn(|| claim_attempt(path))).collect();
            claims.into_iter().map(|claim| usize::from(claim.join().unwrap())).sum()
        })
    }
}
