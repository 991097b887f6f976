//! How things stand, as gauges: made anew for each scrape, so that what is not known is absent.

use chrono::{DateTime, Utc};
use memory::embed::EmbedState;
use memory::queue::KindState;
use memory::store::{BackupNews, Stats};
use prometheus::proto::MetricFamily;
use prometheus::{Gauge, GaugeVec, IntCounterVec, Opts, Registry, Result};

use super::Standing;
use crate::observe::resident_bytes;
use crate::spool::SpoolState;
use crate::storage::{Keeping, StorageState};
use crate::{App, HANDLED_JOBS};

pub(super) fn families(app: &App, standing: &Standing, now: DateTime<Utc>) -> Result<Vec<MetricFamily>> {
    let page = Page::default();
    page.set_by(
        ("agent_memory_build_info", "Always 1; the label says which version runs."),
        "version",
        [(env!("CARGO_PKG_VERSION"), 1.0)],
    )?;
    let is_up = app.database.is_prepared() && standing.queue.is_some();
    page.set("agent_memory_database_up", "Whether the database answers.", flag(is_up))?;
    let is_ready = matches!(app.embedder.state(), EmbedState::Ready { .. });
    page.set("agent_memory_embedding_model_loaded", "Whether the embedding model is in memory.", flag(is_ready))?;
    page.redactions(&memory::redact::taken_out())?;
    page.storage(&app.storage.state())?;
    page.process(app.metrics.started_at)?;
    if let Some(kinds) = &standing.queue {
        page.queue(kinds, now)?;
    }
    if let Some(news) = &standing.backups {
        page.backups(news)?;
    }
    if let Some(stats) = &standing.journal {
        page.journal(stats)?;
    }
    if let Some(spool) = &standing.spool {
        page.spool(*spool)?;
    }
    Ok(page.0.gather())
}

#[derive(Default)]
struct Page(Registry);

impl Page {
    fn redactions(&self, by_rule: &[(&str, u64)]) -> Result<()> {
        let options = Opts::new("agent_memory_redactions_total", "Secrets and private parts taken out, by rule.");
        let counters = IntCounterVec::new(options, &["rule"])?;
        for (rule, count) in by_rule {
            counters.with_label_values(&[rule]).inc_by(*count);
        }
        self.0.register(Box::new(counters))
    }

    fn storage(&self, storage: &StorageState) -> Result<()> {
        let is_metadata = storage.state == Keeping::MetadataOnly;
        self.set("agent_memory_metadata_only", "Whether there is no room for whole events.", flag(is_metadata))?;
        let known = [
            ("agent_memory_database_size_bytes", "Size of the database.", storage.database_bytes),
            (
                "agent_memory_database_ceiling_bytes",
                "Above it only metadata is kept; 0 is none.",
                storage.ceiling_bytes,
            ),
            ("agent_memory_disk_free_bytes", "What the disk under the spool has left.", storage.disk_free_bytes),
        ];
        for (name, help, bytes) in known {
            self.set_if(name, help, bytes.map(|bytes| bytes as f64))?;
        }
        Ok(())
    }

    /// By the names that every Prometheus client uses.
    fn process(&self, started_at: DateTime<Utc>) -> Result<()> {
        let resident = resident_bytes().map(|bytes| bytes as f64);
        self.set_if("process_resident_memory_bytes", "Resident memory of the server.", resident)?;
        self.set("process_start_time_seconds", "When the server started, in seconds since 1970.", seconds(started_at))
    }

    fn queue(&self, kinds: &[KindState], now: DateTime<Utc>) -> Result<()> {
        let of = |number: fn(&KindState, DateTime<Utc>) -> f64| {
            HANDLED_JOBS
                .map(|name| (name, kinds.iter().find(|kind| kind.kind == name).map_or(0.0, |kind| number(kind, now))))
        };
        let waiting = ("agent_memory_queue_jobs", "Jobs that are not done, by kind.");
        self.set_by(waiting, "kind", of(|kind, _| kind.pending as f64))?;
        let dead = ("agent_memory_queue_dead_jobs", "Jobs that were given up after their last attempt, by kind.");
        self.set_by(dead, "kind", of(|kind, _| kind.dead as f64))?;
        let age = (
            "agent_memory_queue_oldest_job_age_seconds",
            "For how long the oldest job that is due could have run, by kind.",
        );
        let age_of =
            |kind: &KindState, now| kind.due_since.map_or(0.0, |since| (seconds(now) - seconds(since)).max(0.0));
        self.set_by(age, "kind", of(age_of))
    }

    fn backups(&self, news: &BackupNews) -> Result<()> {
        let times = [
            ("agent_memory_backup_last_success_timestamp_seconds", "When the last backup was made.", news.last_made_at),
            ("agent_memory_backup_last_failure_timestamp_seconds", "When one last failed.", news.last_failed_at),
        ];
        for (name, help, at) in times {
            self.set_if(name, help, at.map(seconds))?;
        }
        let last_succeeded =
            news.last_made_at.max(news.last_failed_at).map(|last| flag(news.last_made_at == Some(last)));
        self.set_if("agent_memory_backup_last_succeeded", "Whether the last attempt made a backup.", last_succeeded)?;
        let is_scheduled = flag(news.scheduled_since.is_some());
        self.set("agent_memory_backup_scheduled", "Whether one is to be made each day.", is_scheduled)
    }

    fn journal(&self, stats: &Stats) -> Result<()> {
        let rows = [
            ("projects", stats.projects),
            ("sessions", stats.sessions),
            ("prompts", stats.prompts),
            ("tool_calls", stats.tool_calls),
            ("observations", stats.observations),
        ];
        let help = ("agent_memory_journal_rows", "What the journal holds, by what it is.");
        self.set_by(help, "kind", rows.map(|(kind, count)| (kind, count as f64)))?;
        let documents = [
            ("agent_memory_documents", "Documents that can be found.", stats.indexed_documents),
            ("agent_memory_documents_embedded", "Those of them that have a vector.", stats.embedded_documents),
        ];
        for (name, help, count) in documents {
            self.set(name, help, count as f64)?;
        }
        self.set_if(
            "agent_memory_last_event_timestamp_seconds",
            "When the last event happened.",
            stats.last_event_at.map(seconds),
        )?;
        self.set_if(
            "agent_memory_linkage_ratio",
            "Share of tool calls that are joined to their prompt, 0 to 1; absent while there are none.",
            stats.linkage_ratio(),
        )
    }

    fn spool(&self, spool: SpoolState) -> Result<()> {
        let SpoolState { waiting, waiting_bytes, rejected } = spool;
        self.set("agent_memory_spool_waiting_files", "Events that wait in the spool.", waiting as f64)?;
        self.set("agent_memory_spool_waiting_bytes", "What they take.", waiting_bytes as f64)?;
        self.set(
            "agent_memory_spool_rejected_files",
            "Files that could not be read and were set aside.",
            rejected as f64,
        )
    }

    fn set(&self, name: &str, help: &str, value: f64) -> Result<()> {
        let gauge = Gauge::new(name, help)?;
        gauge.set(value);
        self.0.register(Box::new(gauge))
    }

    fn set_if(&self, name: &str, help: &str, value: Option<f64>) -> Result<()> {
        value.map_or(Ok(()), |value| self.set(name, help, value))
    }

    fn set_by<'a>(
        &self,
        (name, help): (&str, &str),
        label: &str,
        values: impl IntoIterator<Item = (&'a str, f64)>,
    ) -> Result<()> {
        let gauges = GaugeVec::new(Opts::new(name, help), &[label])?;
        for (of, value) in values {
            gauges.with_label_values(&[of]).set(value);
        }
        self.0.register(Box::new(gauges))
    }
}

fn flag(is: bool) -> f64 {
    f64::from(u8::from(is))
}

fn seconds(time: DateTime<Utc>) -> f64 {
    time.timestamp_micros() as f64 / 1e6
}
