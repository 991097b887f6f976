//! The report as a person reads it.

use std::fmt::Write as _;

use serde_json::Value;

use crate::eval::Evaluation;
use crate::stages::{Record, Stage};
use crate::train;

pub(super) fn report(name: &str, records: &[Record], log: &[train::Record], evaluation: Option<&Evaluation>) -> String {
    let mut out = format!("# Training run {name}\n\n");
    // Writing to a string does not fail.
    let figures =
        |stage: Stage| records.iter().rev().find(|record| record.stage == stage).map(|record| &record.figures);
    let _ = writeln!(out, "{}\n", verdict(records, evaluation));
    if let (Some(base), Some(dataset)) = (figures(Stage::Base), figures(Stage::Dataset)) {
        origins(&mut out, base, dataset);
    }
    if let Some(lora) = figures(Stage::Lora) {
        training(&mut out, lora, log);
    } else if let Some(merge) = figures(Stage::Merge) {
        let _ = writeln!(
            out,
            "## Training\n\nThe adapter was trained elsewhere (rank {}, alpha {}).\n",
            merge["rank"], merge["alpha"]
        );
        if merge["base_is_proved"] == false {
            let _ = writeln!(
                out,
                "It does not say which weights it was trained on; it names {}.\n",
                merge["base_named_by_adapter"]
            );
        }
    }
    if let Some(verify) = figures(Stage::Verify) {
        let logits = &verify["logits"];
        let _ = writeln!(
            out,
            "## The file\n\n{} checks passed. Against the merged weights the likeliest token is the same at {} of {} positions, with a divergence of {} nats.\n",
            verify["checks"].as_array().map_or(0, Vec::len),
            number(&logits["top_1"]),
            logits["positions"],
            number(&logits["divergence"])
        );
    }
    if let Some(evaluation) = evaluation {
        let text = evaluation.markdown();
        let body = text.split_once('\n').map_or("", |(_, body)| body);
        let _ = writeln!(out, "## Evaluation: tuned against base\n{}\n", body.replace("\n## ", "\n### "));
    }
    stages(&mut out, records);
    hashes(&mut out, records);
    out
}

fn verdict(records: &[Record], evaluation: Option<&Evaluation>) -> String {
    let is_installed = records.iter().any(|record| record.stage == Stage::Install);
    match evaluation {
        _ if is_installed => "The model proved better than its base and was installed.".to_owned(),
        Some(evaluation) if evaluation.verdict.passed => {
            "The model proved better than its base. It was not installed.".to_owned()
        }
        Some(evaluation) => format!(
            "The model did not prove better than its base, and was not installed. {}",
            evaluation.verdict.reasons.join(" ")
        ),
        None => {
            let last = records.last().map_or("nothing", |record| record.stage.as_str());
            format!(
                "The run has not come to its evaluation; the last thing done is {last}. The same command goes on from there."
            )
        }
    }
}

fn origins(out: &mut String, base: &Value, dataset: &Value) {
    let _ = writeln!(out, "## Made of\n\n| | |\n| --- | --- |");
    let _ = writeln!(
        out,
        "| base | {} ({}, {} parameters) |",
        text(&base["name"]),
        text(&base["architecture"]),
        base["parameters"]
    );
    let _ = writeln!(out, "| dataset | {} for {} |", text(&dataset["folder"]), text(&dataset["family"]));
    let _ = writeln!(
        out,
        "| audit | {} |",
        if dataset["audit_passed"] == true { "passed" } else { "failed; named all the same" }
    );
    let consent = &dataset["consent"];
    let consent =
        if consent.is_null() { "none was needed".to_owned() } else { format!("given for {}", consent["providers"]) };
    let _ = writeln!(out, "| consent | {consent} |");
    let _ = writeln!(out, "| sealed test set | `{}` |\n", text(&dataset["sealed_sha256"]));
}

fn training(out: &mut String, lora: &Value, log: &[train::Record]) {
    let outcome = &lora["outcome"];
    let _ = writeln!(out, "## Training\n\n![loss](curve.svg)\n\n| | |\n| --- | --- |");
    let _ = writeln!(
        out,
        "| steps | {} of {}{} |",
        outcome["steps"],
        outcome["planned_steps"],
        if outcome["stopped_early"] == true { ", ended when the validation loss no longer fell" } else { "" }
    );
    let _ = writeln!(
        out,
        "| loss of the first and the last step | {} → {} |",
        number(&outcome["first_loss"]),
        number(&outcome["last_loss"])
    );
    if !outcome["best"].is_null() {
        let _ = writeln!(
            out,
            "| best validation loss | {} after step {} |",
            number(&outcome["best"]["loss"]),
            outcome["best"]["step"]
        );
    }
    let _ = writeln!(out, "| samples left out as too long | {} |", outcome["left_out"]);
    let mut rates: Vec<_> = log
        .iter()
        .filter_map(|record| match record {
            train::Record::Step { tokens_per_second, .. } => Some(*tokens_per_second),
            train::Record::Validation { .. } => None,
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    if let Some(median) = rates.get(rates.len() / 2) {
        let _ = writeln!(out, "| tokens per second (median) | {median:.1} |");
    }
    if let Some(peak) = lora["peak_bytes"].as_f64() {
        let _ = writeln!(out, "| peak memory | {:.2} GiB |", peak / f64::from(1_u32 << 30));
    }
    let _ = writeln!(
        out,
        "\n<details><summary>Settings</summary>\n\n```json\n{}\n```\n\n</details>\n",
        serde_json::to_string_pretty(&lora["settings"]).unwrap_or_default()
    );
}

fn stages(out: &mut String, records: &[Record]) {
    let _ = writeln!(out, "## Stages\n\n| stage | seconds | finished |\n| --- | ---: | --- |");
    for record in records {
        let _ = writeln!(
            out,
            "| {} | {:.1} | {} |",
            record.stage.as_str(),
            record.seconds,
            record.finished_at.format("%Y-%m-%d %H:%M UTC")
        );
    }
    out.push('\n');
}

fn hashes(out: &mut String, records: &[Record]) {
    let _ = writeln!(
        out,
        "## How to make it again\n\nThe same base, dataset and settings give the same run name; `cargo xtask train` with the same `train.toml` goes through the same stages.\n\n| file | SHA-256 |\n| --- | --- |"
    );
    for (path, made) in records.iter().flat_map(|record| &record.outputs) {
        let _ = writeln!(out, "| {} | `{}` |", path.file_name().unwrap_or_default().to_string_lossy(), made.sha256);
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Four digits that count.
fn number(value: &Value) -> String {
    value.as_f64().map_or_else(
        || value.to_string(),
        |number| if number != 0.0 && number.abs() < 1e-3 { format!("{number:.2e}") } else { format!("{number:.4}") },
    )
}
