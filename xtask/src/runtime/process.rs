//! Processes of other programs: found by the program file they run from, so that a stale pid file never leads to a
//! stranger, and stopped with a deadline.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use sysinfo::{Pid, ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, Signal, System, UpdateKind};

/// How often a wait looks again.
const POLL: Duration = Duration::from_millis(20);

/// A running process, and the program it was found by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    pub id: u32,
    program: PathBuf,
}

impl Process {
    /// The process of that id, if it runs from that program file.
    pub fn find(id: u32, program: &Path) -> Option<Self> {
        let pid = Pid::from_u32(id);
        let system = refresh(ProcessesToUpdate::Some(&[pid]));
        let found = Self { id, program: resolved(program) };
        system.process(pid).is_some_and(|process| found.is(process)).then_some(found)
    }

    /// All processes that run from that program file.
    pub fn all_of(program: &Path) -> Vec<Self> {
        let program = resolved(program);
        refresh(ProcessesToUpdate::All)
            .processes()
            .iter()
            .map(|(pid, process)| (Self { id: pid.as_u32(), program: program.clone() }, process))
            .filter(|(found, process)| found.is(process))
            .map(|(found, _)| found)
            .collect()
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    pub fn is_running(&self) -> bool {
        Self::find(self.id, &self.program).is_some()
    }

    /// Asks the process to end, waits until it has, and ends it by force where it does not.
    pub async fn stop(&self, patience: Duration) -> Result<()> {
        self.signal(Signal::Term);
        if self.wait_until_gone(patience).await {
            return Ok(());
        }
        self.signal(Signal::Kill);
        if self.wait_until_gone(Duration::from_secs(5)).await {
            return Ok(());
        }
        bail!("process {} of `{}` does not end", self.id, self.program.display())
    }

    /// Ends the process by force, as a crash does, and does not wait.
    pub fn kill(&self) {
        self.signal(Signal::Kill);
    }

    /// Asks the process to end at once, and does not wait.
    pub fn interrupt(&self) {
        self.signal(Signal::Interrupt);
    }

    /// Whether the process is gone before the deadline.
    pub async fn wait_until_gone(&self, patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
        while self.is_running() {
            if Instant::now() > deadline {
                return false;
            }
            tokio::time::sleep(POLL).await;
        }
        true
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_u32(self.id);
        let system = refresh(ProcessesToUpdate::Some(&[pid]));
        let Some(process) = system.process(pid).filter(|process| self.is(process)) else { return };
        // Systems without signals can only end a process.
        if process.kill_with(signal).is_none() {
            process.kill();
        }
    }

    fn is(&self, process: &sysinfo::Process) -> bool {
        // A zombie has ended; only its parent has not looked yet.
        process.status() != ProcessStatus::Zombie && process.exe() == Some(&self.program)
    }
}

fn refresh(which: ProcessesToUpdate<'_>) -> System {
    let mut system = System::new();
    // Without its tasks: each thread would be counted as a process.
    let what = ProcessRefreshKind::nothing().with_exe(UpdateKind::Always).without_tasks();
    system.refresh_processes_specifics(which, true, what);
    system
}

fn resolved(program: &Path) -> PathBuf {
    program.canonicalize().unwrap_or_else(|_| program.to_owned())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn finds_a_process_by_its_program_and_stops_it() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("sleeper");
        std::fs::copy("/bin/sleep", &program).unwrap();
        let mut child = tokio::process::Command::new(&program).arg("600").spawn().unwrap();
        let found = Process::all_of(&program);
        assert_eq!(found.iter().map(|process| Some(process.id)).collect::<Vec<_>>(), [child.id()]);
        found[0].stop(Duration::from_secs(5)).await.unwrap();
        assert!(!found[0].is_running());
        child.wait().await.unwrap();
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn takes_no_thread_for_a_process() {
        let (sender, receiver) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || receiver.recv().is_err());
        let threads = std::fs::read_dir("/proc/self/task").unwrap();
        let threads: Vec<u32> =
            threads.map(|entry| entry.unwrap().file_name().to_str().unwrap().parse().unwrap()).collect();
        assert!(threads.len() > 1);
        let mut found = Process::all_of(&std::env::current_exe().unwrap());
        found.retain(|process| threads.contains(&process.id));
        assert_eq!(found.iter().map(|process| process.id).collect::<Vec<_>>(), [std::process::id()]);
        drop(sender);
        assert!(thread.join().unwrap());
    }

    #[test]
    fn takes_no_process_of_another_program_for_ours() {
        let own = std::process::id();
        assert!(Process::find(own, &std::env::current_exe().unwrap()).is_some());
        assert_eq!(Process::find(own, Path::new("/bin/sh")), None);
    }
}
