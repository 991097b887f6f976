//! A timer of the user's own systemd, which runs while the user is logged in (`loginctl enable-linger` keeps it on longer).

use std::path::PathBuf;

use anyhow::{Context, Result};

use super::job::{ARGUMENTS, Job};
use super::tool;
use crate::files;

pub(super) async fn is_there() -> bool {
    cfg!(target_os = "linux") && tool::succeeds("systemctl", &["--user", "show-environment"]).await
}

pub(super) async fn add(job: &Job) -> Result<()> {
    let folder = folder()?;
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot create `{}`", folder.display()))?;
    for (ending, text) in [("service", service(job)), ("timer", timer(job))] {
        let path = folder.join(format!("{}.{ending}", job.name));
        files::write(&path, text.as_bytes(), files::Mode::Readable)?;
    }
    tool::must("systemctl", &["--user", "daemon-reload"], "").await?;
    tool::must("systemctl", &["--user", "enable", "--now", &timer_name(job)], "").await
}

pub(super) async fn take_away(job: &Job) -> Result<()> {
    // Where the user's systemd is away, the files are all there is of it.
    if is_there().await && holds(job).await? {
        tool::must("systemctl", &["--user", "disable", "--now", &timer_name(job)], "").await?;
    }
    for ending in ["service", "timer"] {
        files::remove(&folder()?.join(format!("{}.{ending}", job.name)))?;
    }
    if is_there().await {
        tool::must("systemctl", &["--user", "daemon-reload"], "").await?;
    }
    Ok(())
}

pub(super) async fn holds(job: &Job) -> Result<bool> {
    Ok(tool::succeeds("systemctl", &["--user", "is-active", "--quiet", &timer_name(job)]).await)
}

fn timer_name(job: &Job) -> String {
    format!("{}.timer", job.name)
}

/// Where systemd looks for a user's own units.
#[allow(clippy::disallowed_methods, reason = "a folder of systemd's, not a setting of ours")]
fn folder() -> Result<PathBuf> {
    let set = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let config = match set {
        Some(config) => config,
        None => PathBuf::from(std::env::var_os("HOME").context("the user's own folder is unknown")?).join(".config"),
    };
    Ok(config.join("systemd/user"))
}

fn service(job: &Job) -> String {
    format!(
        "[Unit]\n\
         Description=Backup of agent-memory in {}\n\
         \n\
         [Service]\n\
         Type=oneshot\n\
         ExecStart={} {}\n\
         Nice=19\n\
         IOSchedulingClass=idle\n",
        job.home.root().display().to_string().replace('%', "%%"),
        quoted(&job.program.display().to_string()),
        ARGUMENTS.join(" "),
    )
}

fn timer(job: &Job) -> String {
    format!(
        "[Unit]\n\
         Description=Looks each hour whether a backup of agent-memory is due\n\
         \n\
         [Timer]\n\
         OnCalendar=*:{:02}\n\
         Persistent=true\n\
         \n\
         [Install]\n\
         WantedBy=timers.target\n",
        job.minute
    )
}

/// As systemd reads a word (systemd.service(5), "Command lines").
fn quoted(word: &str) -> String {
    let escaped = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use memory::home::Home;

    use super::*;

    #[test]
    fn quotes_what_systemd_would_expand() {
        assert_eq!(quoted(r#"/a b/50%/"x"\$y"#), r#""/a b/50%%/\"x\"\\$$y""#);
    }

    #[test]
    fn starts_the_installed_program_each_hour() {
        let job = Job::of(&Home::at("/home/ann/memory"));
        let service = service(&job);
        let line = "ExecStart=\"/home/ann/memory/bin/agent-memory\" backup --scheduled --if-due --quiet\n";
        assert!(service.contains(line), "{service}");
        assert!(timer(&job).contains(&format!("OnCalendar=*:{:02}\nPersistent=true\n", job.minute)));
    }
}
