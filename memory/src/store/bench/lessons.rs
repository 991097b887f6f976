//! Many lessons, as people would have them: about the same few dozen programs, each with a flag of its own.

use super::super::{Db, StoreError};

const PROGRAMS: [&str; 20] = [
    "git push",
    "git reset",
    "git commit",
    "git clean",
    "cargo test",
    "cargo publish",
    "cargo build",
    "npm install",
    "npm run",
    "pnpm add",
    "docker run",
    "docker compose up",
    "kubectl delete",
    "kubectl apply",
    "terraform apply",
    "rm",
    "psql",
    "curl",
    "pip install",
    "make",
];

/// A command that fires the one lesson that every set has, and one that many lessons are about and none fires on.
pub const FIRING: &str = "./deploy.sh production --now";
pub const SILENT: &str = "cd /w && git push origin topic && cargo test -p memory";

/// Adds so many active lessons, the last of which stops [`FIRING`].
pub async fn add_lessons(db: &Db, count: usize) -> Result<(), StoreError> {
    let mut patterns: Vec<String> =
        (1..count).map(|number| format!("{}( .*)? --flag-{number}( |$)", PROGRAMS[number % PROGRAMS.len()])).collect();
    patterns.extend((count > 0).then(|| r"deploy\.sh production( .*)? --now( |$)".to_owned()));
    sqlx::query!(
        "insert into mem_lessons (title, rule, severity, trigger_tool, trigger_pattern, trigger_threshold, source, status, may_stop)
         select 'Look before you run ' || pattern, 'Look at what it would do first.', 'critical', 'Bash', pattern, 0.6, 'person',
                'active', true
         from unnest($1::text[]) as pattern",
        &patterns,
    )
    .execute(db)
    .await?;
    Ok(())
}
