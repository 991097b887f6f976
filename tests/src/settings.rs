//! The environment variables of the test run, read in one place.
//!
//! All are optional: a bare `cargo test -p tests` finds or makes what it needs.

use std::path::PathBuf;

/// A Postgres with pgvector in which the run may create databases; without it the run starts one of its own.
pub const DATABASE_URL: &str = "AGENT_MEMORY_TEST_DATABASE_URL";
/// `name:tag` of the Postgres image for the container, instead of the one that `cargo xtask images` builds.
pub const POSTGRES_IMAGE: &str = "AGENT_MEMORY_TEST_POSTGRES_IMAGE";
/// `name:tag` of an image with pgbouncer; without it the one that `cargo xtask test` builds, if it is there.
pub const POOLER_IMAGE: &str = "AGENT_MEMORY_TEST_POOLER_IMAGE";
/// A folder with the built programs; without it the run builds them.
pub const PROGRAMS: &str = "AGENT_MEMORY_TEST_PROGRAMS";
/// A folder with the embedding model and the library that runs it; `cargo xtask test` installs one and says where.
pub const MODELS: &str = "AGENT_MEMORY_TEST_MODELS";
/// A folder with recorded hook payloads, one folder a client version.
pub const RECORDINGS: &str = "AGENT_MEMORY_TEST_RECORDINGS";
/// The file that the summary's lines are added to; without it they go to stderr.
pub const SUMMARY: &str = "AGENT_MEMORY_TEST_SUMMARY";
/// A folder of the checkout that the reports of the models which tests train are copied into, one folder a run.
pub const TRAINING_REPORTS: &str = "AGENT_MEMORY_TEST_TRAINING_REPORTS";
/// Set to `1` where a missing client (Claude Code, Codex, Gemini CLI), engine or model must fail the run.
pub const REQUIRE_CLIENTS: &str = "AGENT_MEMORY_REQUIRE_CLIENTS";

/// The variable's value, if it is set and not empty.
#[allow(clippy::disallowed_methods, reason = "the one place of the test run that reads its environment")]
pub fn get(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Whether a client that cannot be had fails the run.
pub fn clients_are_required() -> bool {
    get(REQUIRE_CLIENTS).is_some_and(|value| value != "0")
}

/// Where downloads that outlive a run may be kept: outside any checkout.
pub fn cache_folder() -> Option<PathBuf> {
    let base = get("XDG_CACHE_HOME").map(PathBuf::from).or_else(|| Some(PathBuf::from(get("HOME")?).join(".cache")))?;
    Some(base.join("agent-memory"))
}

/// The folder of the whole checkout.
pub fn checkout() -> PathBuf {
    let mut folder = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    folder.pop();
    folder
}
