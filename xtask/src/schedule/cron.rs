//! A line in the user's crontab, known by the comment at its end. The other lines stay as they are, byte for byte.

use anyhow::{Result, bail};

use super::job::{ARGUMENTS, Job};
use super::tool;

/// A crontab without a daemon that reads it starts nothing.
pub(super) async fn is_there() -> bool {
    cfg!(unix) && is_read() && table().await.is_ok()
}

pub(super) async fn add(job: &Job) -> Result<()> {
    let before = table().await?;
    tool::must("crontab", &["-"], &with(&without(&before, job), job)).await
}

pub(super) async fn take_away(job: &Job) -> Result<()> {
    let before = table().await?;
    let after = without(&before, job);
    if after == before {
        return Ok(());
    }
    if after.is_empty() {
        return tool::must("crontab", &["-r"], "").await;
    }
    tool::must("crontab", &["-"], &after).await
}

pub(super) async fn holds(job: &Job) -> Result<bool> {
    let table = table().await?;
    Ok(is_read() && table.lines().any(|line| line == self::line(job)))
}

/// The user's crontab; empty where there is none.
async fn table() -> Result<String> {
    let output = tool::output("crontab", &["-l"], "").await?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("no crontab") {
        return Ok(String::new());
    }
    bail!("`crontab -l` failed: {}", said.trim());
}

/// Whether a cron daemon runs. Where the system does not tell, one is believed to.
fn is_read() -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else { return true };
    let names = processes.filter_map(|entry| std::fs::read_to_string(entry.ok()?.path().join("comm")).ok());
    names.into_iter().any(|name| matches!(name.trim(), "cron" | "crond" | "busybox-crond" | "fcron"))
}

fn line(job: &Job) -> String {
    let program = quoted(&job.program.display().to_string());
    format!("{} * * * * nice {program} {} >/dev/null 2>&1 # {}", job.minute, ARGUMENTS.join(" "), job.name)
}

fn with(table: &str, job: &Job) -> String {
    let end = if table.is_empty() || table.ends_with('\n') { "" } else { "\n" };
    format!("{table}{end}{}\n", line(job))
}

fn without(table: &str, job: &Job) -> String {
    let mark = format!("# {}", job.name);
    table.split_inclusive('\n').filter(|line| !line.trim_end().ends_with(&mark)).collect()
}

/// As a shell reads a word; cron takes an unescaped per cent sign for the line's end.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''").replace('%', r"\%"))
}

#[cfg(test)]
mod tests {
    use memory::home::Home;

    use super::*;

    #[test]
    fn adds_one_line_and_takes_away_no_other() {
        let (job, other) = (Job::of(&Home::at("/home/ann/it's 50%")), Job::of(&Home::at("/home/ann/other")));
        for before in ["", "MAILTO=ann\n5 4 * * * true # agent-memory\n", "0 0 * * * true"] {
            let once = with(before, &job);
            let line = format!(
                "{} * * * * nice '/home/ann/it'\\''s 50\\%/bin/agent-memory' backup --scheduled --if-due --quiet >/dev/null 2>&1 # {}\n",
                job.minute, job.name
            );
            assert!(once.ends_with(&line), "{once}");
            assert_eq!(with(&without(&once, &job), &job), once, "twice is once");
            let both = with(&once, &other);
            assert_eq!(without(&both, &other), once);
            let left = without(&once, &job);
            assert_eq!(left.trim_end(), before.trim_end());
        }
    }
}
