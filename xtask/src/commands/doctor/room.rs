//! Whether there is room: the settings, the database against its ceiling, the disk, the server's memory, and whether what is kept
//! can be found by meaning.

use std::path::Path;

use memory::disk::Space;
use memory::settings::{FILE_NAME, Settings, SettingsError};
use memory::store::ModelShare;

use super::Finding;
use crate::health::Health;
use crate::output::human_bytes;

/// The container may have 2 GiB; the server with its model needs a tenth.
const LARGE_MEMORY_BYTES: u64 = 1_500_000_000;
/// From this share of the ceiling on it is time to think of it.
const NEAR_PERCENT: u64 = 80;
/// Documents without a vector that nobody will give one: fewer are some that were recorded this moment.
const MANY_WITHOUT_VECTOR: i64 = 100;

const COMPACT: &str = "cargo xtask gc --compact";

pub(super) fn settings(read: &Result<Settings, SettingsError>, folder: &Path) -> Finding {
    match read {
        Ok(_) => Finding::ok("settings", "settings.toml can be read, or is not there and the defaults count"),
        Err(error) => Finding::fail(
            "settings",
            error.to_string(),
            format!("${{EDITOR:-vi}} '{}'", folder.join(FILE_NAME).display()),
        )
        .coded("settings.invalid")
        .why(format!("until then the server keeps to what it read before, and does not start anew; {}", error.hint())),
    }
}

/// `database_bytes` is `None` where the database does not answer.
pub(super) fn disk(
    home: &Path,
    database_bytes: Option<u64>,
    settings: &Settings,
    health: Option<&Health>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let ceiling = settings.disk.ceiling_bytes.0;
    let told = health.and_then(|health| health.storage.as_ref());
    if let Some(storage) = told.filter(|storage| storage.state != "ok") {
        let message = "the server keeps only metadata of new events: their prompts, inputs and outputs are not kept";
        let why = storage.message.clone().unwrap_or_default();
        findings.push(Finding::fail("disk", message, COMPACT).coded("storage.metadata_only").why(why));
    }
    if let Some(bytes) = database_bytes.filter(|bytes| ceiling > 0 && *bytes > ceiling / 100 * NEAR_PERCENT) {
        let message = format!("the database has {} of {}", human_bytes(bytes), human_bytes(ceiling));
        let why = "above disk.ceiling_bytes only metadata is kept; lower the limits under [retention] in settings.toml, or \
                   raise the ceiling there";
        let finding = if bytes > ceiling {
            Finding::fail("disk", message, COMPACT).coded("disk.ceiling")
        } else {
            Finding::warn("disk", message, COMPACT).coded("disk.ceiling_near")
        };
        findings.push(finding.why(why));
    }
    let space = Space::around(home).ok();
    if let Some(space) = space.filter(|space| space.is_nearly_full()) {
        let message = format!("the disk under `{}` has {} left", home.display(), human_bytes(space.free_bytes));
        let why = "events that wait for the server lie there; when it is full they are lost";
        findings.push(Finding::fail("disk", message, COMPACT).coded("disk.full").why(why));
    }
    if findings.is_empty() {
        let free = space.map_or_else(|| "?".to_owned(), |space| human_bytes(space.free_bytes));
        let used = database_bytes.map_or_else(|| "?".to_owned(), human_bytes);
        findings
            .push(Finding::ok("disk", format!("the database has {used} of {}, {free} are free", human_bytes(ceiling))));
    }
    findings
}

pub(super) fn memory(health: &Health) -> Option<Finding> {
    let bytes = health.memory.as_ref()?.resident_bytes?;
    let message = format!("the server holds {}", human_bytes(bytes));
    if bytes <= LARGE_MEMORY_BYTES {
        return Some(Finding::ok("memory", message));
    }
    let why = "with its model loaded it needs about 200 MB; this is a fault worth reporting";
    Some(Finding::warn("memory", message, "cargo xtask down && cargo xtask up").coded("memory.large").why(why))
}

/// Whether vectors are of the model that queries are embedded with: those of another are never compared with them.
pub(super) fn index(shares: &[ModelShare], installed_model: &str, jobs_pending: i64) -> Vec<Finding> {
    const EMBED: &str = "cargo xtask re-embed";
    let total: i64 = shares.iter().map(|share| share.documents).sum();
    let is_installed = |name: &str| name == installed_model || name.split('@').next() == Some(installed_model);
    let mut findings: Vec<_> = shares
        .iter()
        .filter_map(|share| {
            share.model.as_deref().filter(|name| !is_installed(name)).map(|name| (name, share.documents))
        })
        .map(|(name, documents)| {
            let message =
                format!("{documents} of {total} documents have a vector of `{name}`, installed is `{installed_model}`");
            let why = "vectors of two models are never compared, so these documents are found by their words only";
            Finding::fail("index", message, EMBED).coded("index.model_mismatch").why(why)
        })
        .collect();
    let without = shares.iter().find(|share| share.model.is_none()).map_or(0, |share| share.documents);
    if without > jobs_pending + MANY_WITHOUT_VECTOR {
        let message = format!("{without} of {total} documents have no vector, and {jobs_pending} jobs wait");
        let why =
            "the jobs that would give them one were dropped or given up; until then they are found by their words only";
        findings.push(Finding::warn("index", message, EMBED).coded("index.without_vector").why(why));
    }
    if findings.is_empty() {
        findings
            .push(Finding::ok("index", format!("{} of {total} documents can be found by meaning", total - without)));
    }
    findings
}

#[cfg(test)]
mod tests {
    use memory::settings::{ByteSize, Disk};

    use super::*;
    use crate::health::StorageHealth;
    use crate::health::tests::healthy;

    fn disk_codes(database_bytes: u64, ceiling: u64, health: &Health) -> Vec<&'static str> {
        let settings = Settings { disk: Disk { ceiling_bytes: ByteSize(ceiling) }, ..Settings::default() };
        let folder = tempfile::tempdir().unwrap();
        let findings = disk(folder.path(), Some(database_bytes), &settings, Some(health));
        findings.iter().map(|finding| finding.code).filter(|code| *code != "disk.full").collect()
    }

    #[test]
    fn finds_a_database_near_and_above_its_ceiling() {
        assert_eq!(disk_codes(1_000, 10_000, &healthy()).first().copied().unwrap_or("disk"), "disk");
        assert_eq!(disk_codes(8_500, 10_000, &healthy()), ["disk.ceiling_near"]);
        assert_eq!(disk_codes(10_001, 10_000, &healthy()), ["disk.ceiling"]);
        assert!(!disk_codes(10_001, 0, &healthy()).contains(&"disk.ceiling"));
    }

    #[test]
    fn tells_that_only_metadata_is_kept() {
        let mut health = healthy();
        health.storage = Some(StorageHealth { state: "metadata_only".into(), message: Some("full".into()) });
        assert_eq!(disk_codes(1, 10_000, &health), ["storage.metadata_only"]);
    }

    #[test]
    fn finds_vectors_of_another_model_and_documents_that_get_none() {
        let share = |model: Option<&str>, documents| ModelShare { model: model.map(str::to_owned), documents };
        let codes = |shares: &[ModelShare], pending| {
            index(shares, "mini", pending).iter().map(|finding| finding.code).collect::<Vec<_>>()
        };
        assert_eq!(codes(&[share(Some("mini@0a1b2c3d"), 90), share(None, 5)], 5), ["index"]);
        assert_eq!(codes(&[share(Some("mini@0a1b2c3d"), 9), share(Some("large@1"), 3)], 0), ["index.model_mismatch"]);
        assert_eq!(codes(&[share(Some("mini@0a1b2c3d"), 9), share(None, 500)], 10), ["index.without_vector"]);
    }

    #[test]
    fn finds_a_server_that_holds_too_much_memory_and_settings_that_cannot_be_read() {
        let mut health = healthy();
        health.memory = Some(crate::health::MemoryHealth { resident_bytes: Some(3_000_000_000) });
        assert_eq!(memory(&health).unwrap().code, "memory.large");
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("settings.toml"), "[retention]\nforever = true").unwrap();
        let finding = settings(&Settings::read(folder.path()), folder.path());
        assert_eq!(finding.code, "settings.invalid");
        assert!(finding.message.contains("forever"), "{}", finding.message);
    }
}
