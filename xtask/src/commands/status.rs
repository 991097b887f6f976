//! `status`: what runs and what is remembered, on one screen.

use std::fmt::Write;

use anyhow::{Context, Result};
use chrono::{DateTime, Utc};
use memory::home::Home;
use memory::settings::{self, Settings};
use memory::store::{InjectionCounts, ModelShare, Stats};
use serde::Serialize;

use super::doctor::LARGE_SPOOL_BYTES;
use crate::backup::Summary;
use crate::cli::JsonArgs;
use crate::health::{self, Health};
use crate::journal::{self, Unasked};
use crate::output::{Printer, headline, human_bytes, human_duration};
use crate::runtime::{self, Installation, ServiceState};
use crate::schedule::Record;

pub(super) async fn run(arguments: &JsonArgs, home: &Home, printer: &Printer) -> Result<()> {
    let status = Status::gather(home).await?;
    if arguments.json {
        printer.data(serde_json::to_string_pretty(&status).context("cannot write the status as JSON")?);
    } else {
        printer.data(status.text(Utc::now()).trim_end());
    }
    Ok(())
}

#[derive(Debug, Serialize)]
struct Status {
    home: String,
    /// `null` where nothing is installed.
    installation: Option<Installation>,
    services: Vec<ServiceState>,
    /// Why nothing is known of the services.
    services_trouble: Option<String>,
    /// What the server says of itself; `null` where none answers.
    server: Option<Health>,
    /// `null` where the database does not answer; `journal_trouble` then says why.
    journal: Option<Stats>,
    linkage_ratio: Option<f64>,
    journal_trouble: Option<String>,
    /// How often agents were told something unasked; `null` where the database does not answer.
    unasked: Option<Unasked>,
    /// Documents by the model that made their vectors; empty where the database does not answer.
    vectors: Vec<ModelShare>,
    /// `null` where the settings or the folder cannot be read; `doctor` says why.
    backup: Option<Summary>,
    /// Who makes one each day; `null` where nobody was ever asked to.
    schedule: Option<Record>,
}

impl Status {
    async fn gather(home: &Home) -> Result<Self> {
        let mut status = Self {
            home: home.root().display().to_string(),
            installation: Installation::read(home)?,
            services: Vec::new(),
            services_trouble: None,
            server: None,
            journal: None,
            linkage_ratio: None,
            journal_trouble: None,
            unasked: None,
            vectors: Vec::new(),
            backup: Settings::read(&settings::folder(home))
                .ok()
                .and_then(|settings| Summary::of(home, &settings.backup).ok()),
            schedule: Record::read(home).ok().flatten(),
        };
        let Some(installation) = &status.installation else { return Ok(status) };
        let (services, server, journal) = tokio::join!(
            runtime::states(installation, home),
            health::fetch(installation.address),
            journal::stats(home)
        );
        match services {
            Ok(found) => status.services = found,
            Err(error) => status.services_trouble = Some(headline(&error)),
        }
        status.server = server.ok();
        match journal {
            Ok((counts, unasked, vectors)) => {
                status.vectors = vectors;
                status.linkage_ratio = counts.linkage_ratio();
                status.journal = Some(counts);
                status.unasked = Some(unasked);
            }
            Err(error) => status.journal_trouble = Some(headline(&error)),
        }
        Ok(status)
    }

    fn text(&self, now: DateTime<Utc>) -> String {
        let Some(installation) = &self.installation else {
            return format!("Nothing is installed in {}; run `cargo xtask up`.", self.home);
        };
        let mut text = String::new();
        let Installation { version, runtime, .. } = installation;
        let _ = writeln!(text, "agent-memory {version}, {runtime}, in {}\n", self.home);
        for service in &self.services {
            row(&mut text, service.name, &format!("{}   {}", service.status, service.detail));
        }
        if let Some(trouble) = &self.services_trouble {
            row(&mut text, "services", trouble);
        }
        row(&mut text, "database", &installation.database);
        match &self.server {
            Some(health) => tell_health(&mut text, health, &installation.embedding_model),
            None => row(&mut text, "model", &installation.embedding_model),
        }
        let _ = writeln!(text);
        match (&self.journal, &self.journal_trouble) {
            (Some(stats), _) => tell_journal(&mut text, stats, now),
            (None, Some(trouble)) => row(&mut text, "journal", &format!("cannot be read: {trouble}")),
            (None, None) => {}
        }
        // The server knows which very model it is; two of the same name may be different.
        let model = self.server.as_ref().and_then(|health| health.embedding.model.as_deref());
        if let Some(outdated) = outdated(&self.vectors, model.unwrap_or(&installation.embedding_model)) {
            row(&mut text, "vectors", &outdated);
        }
        if let Some(unasked) = &self.unasked {
            row(&mut text, "unasked", &told(unasked));
        }
        if let Some(backup) = &self.backup {
            let who = self.schedule.as_ref().and_then(|record| record.scheduler);
            let daily = who.map(|scheduler| format!("; {scheduler} has one made each day")).unwrap_or_default();
            row(&mut text, "backup", &format!("{}{daily}", backed_up(backup, now)));
        }
        text
    }
}

fn tell_health(text: &mut String, health: &Health, installed_model: &str) {
    // The server names its model once it has loaded it.
    let model = health.embedding.model.as_deref().unwrap_or(installed_model);
    let message = health.embedding.message.as_deref().map(|message| format!(": {message}")).unwrap_or_default();
    row(text, "model", &format!("{model}, {}{message}", health.embedding.state));
    let count = |number: Option<i64>| number.map_or_else(|| "?".to_owned(), |number| number.to_string());
    let (pending, dead) = (count(health.queue.pending), count(health.queue.dead));
    row(text, "queue", &format!("{pending} waiting, {dead} given up"));
    let large = if health.spool.waiting_bytes > LARGE_SPOOL_BYTES { "; it grows while the server is away" } else { "" };
    let bytes = human_bytes(health.spool.waiting_bytes);
    row(
        text,
        "spool",
        &format!("{} waiting ({bytes}), {} rejected{large}", health.spool.waiting, health.spool.rejected),
    );
    if let Some(storage) = health.storage.as_ref().filter(|storage| storage.state != "ok") {
        let message = storage.message.as_deref().unwrap_or_default();
        row(text, "storage", &format!("ONLY METADATA of new events is kept: {message}"));
    }
}

fn tell_journal(text: &mut String, stats: &Stats, now: DateTime<Utc>) {
    let rows = [
        ("projects", stats.projects.to_string()),
        ("sessions", stats.sessions.to_string()),
        ("prompts", stats.prompts.to_string()),
        ("tool calls", stats.tool_calls.to_string()),
        ("linked", linked(stats)),
        ("notes", stats.observations.to_string()),
        ("searchable", format!("{} documents, {} with a vector", stats.indexed_documents, stats.embedded_documents)),
        ("size", human_bytes(stats.database_bytes.unsigned_abs())),
        ("last event", stats.last_event_at.map_or_else(|| "none yet".to_owned(), |time| ago(time, now))),
    ];
    for (name, value) in rows {
        row(text, name, &value);
    }
}

/// How far documents whose vectors another model made have got vectors of the installed one; `None` where there are no such.
fn outdated(vectors: &[ModelShare], installed: &str) -> Option<String> {
    let of = |is_wanted: &dyn Fn(&str) -> bool| {
        let wanted = vectors.iter().filter(|share| share.model.as_deref().is_some_and(is_wanted));
        wanted.map(|share| share.documents).sum::<i64>()
    };
    let is_installed = |name: &str| name == installed || name.split('@').next() == Some(installed);
    let (current, others) = (of(&is_installed), of(&|name| !is_installed(name)));
    (others > 0).then(|| {
        let share = current as f64 / (current + others) as f64 * 100.0;
        format!("{share:.0} % are of {installed}; {others} of another model are made again while the server runs")
    })
}

/// How often agents were told something without having asked.
fn told(unasked: &Unasked) -> String {
    let of = |occasion: &str| unasked.get(occasion).copied().unwrap_or_default();
    let told = |name: &str, counts: InjectionCounts| {
        let unable = counts.late + counts.failed;
        let unable = if unable > 0 { format!(" ({unable} not in time)") } else { String::new() };
        format!("{name} spoke {}, was silent {}{unable}", counts.spoke, counts.silent)
    };
    format!("{}; {}", told("brief", of("brief")), told("prompt hits", of("prompt_hits")))
}

/// The last backup, and how the last attempt at one went where that failed.
fn backed_up(backup: &Summary, now: DateTime<Utc>) -> String {
    let newest = match backup.newest_at {
        Some(time) => format!(
            "{}, {}; {} in all ({})",
            ago(time, now),
            human_bytes(backup.newest_bytes),
            backup.count,
            human_bytes(backup.bytes)
        ),
        None => "none yet; `cargo xtask backup` makes one".to_owned(),
    };
    match backup.failure() {
        Some(failure) => {
            format!("FAILED {}: {}; the last one that is there: {newest}", ago(failure.at, now), failure.message)
        }
        None => newest,
    }
}

fn linked(stats: &Stats) -> String {
    match stats.linkage_ratio() {
        Some(ratio) => format!("{:.1} % of tool calls are joined to their prompt", ratio * 100.0),
        None => "no tool calls yet".to_owned(),
    }
}

fn row(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "  {name:<12}{}", value.trim_end());
}

fn ago(time: DateTime<Utc>, now: DateTime<Utc>) -> String {
    let Ok(elapsed) = (now - time).to_std() else { return "just now".to_owned() };
    match elapsed.as_secs() {
        0..60 => format!("{} ago", human_duration(elapsed)),
        seconds @ 60..3_600 => format!("{} min ago", seconds / 60),
        seconds @ 3_600..86_400 => format!("{} h ago", seconds / 3_600),
        seconds => format!("{} days ago", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use chrono::TimeDelta;

    use super::*;
    use crate::backup::LastRun;
    use crate::runtime::{RuntimeKind, ServiceStatus};

    fn status() -> Status {
        let stats = Stats {
            projects: 1,
            sessions: 2,
            prompts: 3,
            tool_calls: 8,
            linked_tool_calls: 6,
            observations: 0,
            indexed_documents: 11,
            embedded_documents: 10,
            jobs_pending: 1,
            jobs_dead: 0,
            database_bytes: 9_400_000,
            last_event_at: Some(DateTime::UNIX_EPOCH),
        };
        Status {
            home: "/h".into(),
            installation: Some(Installation {
                version: "0.1.0".into(),
                runtime: RuntimeKind::Embedded,
                address: "127.0.0.1:3377".parse().unwrap(),
                database: "127.0.0.1:5433/agent_memory".into(),
                embedding_model: "mini".into(),
                installed_at: DateTime::UNIX_EPOCH,
                folder: None,
            }),
            services: vec![ServiceState { name: "server", status: ServiceStatus::Stopped, detail: String::new() }],
            services_trouble: None,
            server: None,
            linkage_ratio: stats.linkage_ratio(),
            journal: Some(stats),
            journal_trouble: None,
            unasked: Some(Unasked::new()),
            vectors: Vec::new(),
            backup: Some(Summary {
                folder: "/h/backups".into(),
                count: 2,
                bytes: 5_000_000,
                newest_at: Some(DateTime::UNIX_EPOCH),
                newest_bytes: 3_000_000,
                last_run: None,
            }),
            schedule: None,
        }
    }

    #[test]
    fn says_how_old_the_last_backup_is_and_that_a_later_one_failed() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::hours(3);
        let mut status = status();
        assert!(status.text(now).contains("backup      3 h ago, 3.0 MB; 2 in all (5.0 MB)"), "{}", status.text(now));
        let failed = LastRun {
            at: DateTime::UNIX_EPOCH + TimeDelta::hours(2),
            succeeded: false,
            message: "the disk is full".into(),
            duration_ms: 1,
        };
        status.backup.as_mut().unwrap().last_run = Some(failed);
        assert!(status.text(now).contains("FAILED 1 h ago: the disk is full"), "{}", status.text(now));
    }

    #[test]
    fn says_how_far_documents_have_vectors_of_the_installed_model() {
        let share = |model: Option<&str>, documents| ModelShare { model: model.map(str::to_owned), documents };
        let told = |vectors| Status { vectors, ..status() }.text(Utc::now());
        let text = told(vec![share(Some("old@1"), 30), share(Some("mini@2"), 10), share(None, 7)]);
        assert!(text.contains("25 % are of mini; 30 of another model are made again"), "{text}");
        assert!(!told(vec![share(Some("mini@2"), 10), share(None, 7)]).contains("vectors "));
    }

    #[test]
    fn fits_on_one_screen_and_tells_the_linkage_ratio() {
        let text = status().text(DateTime::UNIX_EPOCH + TimeDelta::minutes(5));
        assert!(text.lines().count() <= 24, "{text}");
        assert!(text.contains("75.0 % of tool calls") && text.contains("5 min ago"), "{text}");
    }

    #[test]
    fn says_how_often_agents_were_told_something_unasked() {
        let counts = InjectionCounts { spoke: 3, silent: 10, late: 1, failed: 1 };
        let text = Status { unasked: Some([("brief".to_owned(), counts)].into()), ..status() }.text(Utc::now());
        assert!(
            text.contains("brief spoke 3, was silent 10 (2 not in time); prompt hits spoke 0, was silent 0"),
            "{text}"
        );
    }

    #[test]
    fn says_when_only_metadata_is_kept() {
        let mut health = crate::health::tests::healthy();
        let told = |health: &Health| Status { server: Some(health.clone()), ..status() }.text(Utc::now());
        assert!(!told(&health).contains("METADATA"));
        health.storage =
            Some(crate::health::StorageHealth { state: "metadata_only".into(), message: Some("raise it".into()) });
        assert!(told(&health).contains("ONLY METADATA of new events is kept: raise it"), "{}", told(&health));
    }

    #[test]
    fn says_how_to_install_where_nothing_is() {
        let status = Status { installation: None, ..status() };
        assert!(status.text(Utc::now()).contains("cargo xtask up"));
        assert!(serde_json::to_value(&status).unwrap()["installation"].is_null());
    }
}
