//! The dataset card: what a person who only finds the folder needs to know.

use std::fmt::Write as _;

use super::audit::Audit;
use super::manifest::Manifest;

pub(super) fn card(manifest: &Manifest, audit: &Audit) -> String {
    let mut out = String::from("# Tool-calling conversations of a coding agent\n\n");
    let family = manifest.family.as_str();
    // Writing to a string does not fail.
    let _ = writeln!(
        out,
        "Made by agent-memory {} from one user's own journal, for models of the family {family}. Private: it holds what the user \
         asked and what their machine answered, cleaned of secrets, home folders, names and addresses as far as rules can.\n",
        manifest.program
    );
    let _ = writeln!(
        out,
        "- {} rows from {} turns of {} sessions; {} tokens, {} of them carry loss",
        audit.rows, manifest.counts.turns, manifest.counts.sessions, audit.tokens, audit.trained_tokens
    );
    let verdict = if audit.passed { "passed" } else { "failed" };
    let _ = writeln!(out, "- audit {verdict}: audit.md");
    let _ = writeln!(out, "- seed {}, longest row {} tokens", manifest.settings.seed, manifest.settings.max_tokens);
    match &manifest.consent {
        Some(_) => {
            let providers = manifest.providers.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            let _ = writeln!(
                out,
                "- holds outputs of models whose terms restrict training on them ({providers}); the user agreed"
            );
        }
        None => out.push_str("- holds no outputs of models whose terms restrict training on them\n"),
    }
    out.push_str(
        "\n| path | what |\n| --- | --- |\n\
         | train.jsonl, validation.jsonl | neutral rows: messages, tools, which messages are trained on, where each came from |\n\
         | test.jsonl | sealed for the final comparison; its hash stands in the manifest |\n\
         | rendered/ | the same as text, with the bytes that carry loss |\n\
         | formats/ | the same for Axolotl, TRL, Unsloth, LLaMA-Factory and mlx-lm, each with its configuration |\n\
         | dropped.jsonl | what was left out, and why |\n\
         | manifest.json | settings, counts, consent, the hash of every file |\n\n",
    );
    out.push_str(&audit.statistics());
    if !manifest.counts.drops.is_empty() {
        out.push_str("| left out | count | because |\n| --- | --: | --- |\n");
        for (reason, count) in &manifest.counts.drops {
            let _ = writeln!(out, "| {} | {count} | {} |", reason.as_str(), reason.why());
        }
    }
    out
}
