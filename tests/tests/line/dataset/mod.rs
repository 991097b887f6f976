//! From what agents sent to training rows: hook payloads and transcripts through the real server, and `train dataset` over the journal.

pub(crate) mod work;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tests::base_model::Family;
use tests::canaries::canaries;
use tests::conversation::{Call, Outcome};
use tests::operator::{self, Told};
use tests::stack::Stack;
use tests::{programs, recordings, summary};

use work::{HOME_OWNER, OPEN_MODEL, generate_transcripts, start, work};

#[tokio::test]
async fn hook_payloads_become_rows_that_pass_the_audit() -> Result<()> {
    let (Some(qwen3), Some(qwen25)) = (Family::Qwen3.folder().await?, Family::Qwen25.folder().await?) else {
        return Ok(());
    };
    let stack = installed().await?;
    work(&stack, 30).await?;
    assert_eq!(stack.journal().linkage_ratio().await?, Some(1.0));

    for (family, base) in [(Family::Qwen3, qwen3), (Family::Qwen25, qwen25)] {
        let made = make(&stack, &base, &[]).await?;
        let report: Value = serde_json::from_str(&made.stdout).context("reading the report")?;
        assert_eq!(made.code, Some(0), "{}\n{:#}", made.stderr, report["audit"]["checks"]);
        let folder = folder_of(&report)?;
        assert!(folder.ends_with(format!("{}_tools/v1", family.as_str())), "{}", folder.display());
        check_rows(&folder, &report)?;
        check_formats(&folder, &report)?;
        let all = every_text(&folder)?;
        assert!(!all.contains(HOME_OWNER) && !all.contains("alice@"), "whose computer it was");
        if family == Family::Qwen25 {
            check_sameness(&stack, &base, &report).await?;
        }
    }

    let looked = operator::run(&stack, &["train", "dataset", "--sample", "3"], &[]).await?;
    assert_eq!(looked.stdout.matches("--- row ").count(), 3, "{}", looked.stdout);
    assert!(looked.stdout.contains('»') && looked.stdout.contains('«'));
    let row = looked.stdout.split_whitespace().nth(2).context("a row's id")?;
    let told = operator::run(&stack, &["train", "dataset", "--explain", row], &[]).await?;
    assert!(told.stdout.contains(OPEN_MODEL) && told.stdout.contains("project widgets"), "{}", told.stdout);
    let stats = operator::run(&stack, &["train", "dataset", "--stats"], &[]).await?;
    assert!(stats.stdout.contains("| tool (trained calls) | count | share |"), "{}", stats.stdout);
    let unknown = operator::run(&stack, &["train", "dataset", "--explain", "nothing"], &[]).await?;
    assert_eq!(unknown.code, Some(1));
    Ok(())
}

#[tokio::test]
async fn no_planted_secret_is_in_any_file() -> Result<()> {
    let Some(base) = Family::Qwen3.folder().await? else { return Ok(()) };
    let stack = installed().await?;
    let mut kinds = BTreeSet::new();
    let planted: Vec<_> = canaries(77).into_iter().filter(|canary| kinds.insert(canary.kind)).collect();
    ensure!(planted.len() >= 20, "only {} kinds", planted.len());
    let mut session = start(&stack, "s").await?;
    let mut calls = Vec::new();
    for (number, canary) in planted.iter().enumerate() {
        stack.post_bare(&session.asks(&format!("Use this once: {}", canary.text))).await?;
        let input = json!({"command": canary.text.clone(), "description": "Use it"});
        let response = json!({"stdout": canary.text.clone(), "stderr": "", "interrupted": false});
        let (id, event) = session.calls(Call { tool: "Bash", input, outcome: Outcome::Response(response) });
        stack.post_bare(&event).await?;
        calls.push(id);
        // What can be learnt of the turn: a call with a placeholder in it cannot.
        stack.post_bare(&session.runs(&format!("cargo check --package part{number}")).1).await?;
        stack.post_bare(&session.stops(&format!("Part {number} was checked with it."))).await?;
    }
    stack.post_bare(&session.ends()).await?;
    work(&stack, 12).await?;
    // What the server took out is put back behind its back: the dataset must not rely on what was done before it.
    let pool = stack.database().pool();
    for (id, canary) in calls.iter().zip(&planted) {
        let rewritten = sqlx::query_scalar::<_, i64>(
            "update mem_tool_calls set input = $2, output_preview = $3 where tool_use_id = $1 returning prev_user_prompt_id",
        )
        .bind(id)
        .bind(json!({"command": canary.text, "description": canary.text}))
        .bind(&canary.text)
        .fetch_one(pool)
        .await?;
        sqlx::query("update mem_user_prompts set prompt = $2 where id = $1")
            .bind(rewritten)
            .bind(format!("Use this once: {}", canary.text))
            .execute(pool)
            .await?;
    }
    let schemas = planted.iter().enumerate().map(|(number, canary)| {
        let parameters = json!({"type": "object", "properties": {"x": {"type": "string", "description": canary.text}}});
        let name = format!("tool_{number}");
        json!({"type": "function", "function": {"name": name, "description": canary.text, "parameters": parameters}})
    });
    let file = stack.scratch().join("tools.json");
    std::fs::write(&file, Value::Array(schemas.collect()).to_string())?;
    let mut arguments = vec!["--tools".to_owned(), file.display().to_string()];
    for canary in &planted {
        arguments.extend(["--canary".to_owned(), canary.secret.clone()]);
    }
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let made = make(&stack, &base, &arguments).await?;
    let report: Value = serde_json::from_str(&made.stdout).with_context(|| made.stderr.clone())?;
    let all = every_text(&folder_of(&report)?)?;
    assert!(all.contains("Use this once: ") && all.contains("‹redacted:"), "the rows are there");
    assert!(all.contains("tool_1"), "the schemas are there");
    for canary in &planted {
        assert!(!all.contains(&canary.secret), "a {} is in the dataset", canary.kind);
    }
    for check in ["canaries", "secrets"] {
        let found =
            report["audit"]["checks"].as_array().and_then(|checks| checks.iter().find(|one| one["name"] == check));
        assert_eq!(found.map(|check| &check["passed"]), Some(&json!(true)), "{check}");
    }
    Ok(())
}

#[tokio::test]
async fn restricted_outputs_need_a_yes_and_unknown_ones_are_left_out() -> Result<()> {
    let Some(base) = Family::Qwen25.folder().await? else { return Ok(()) };
    let stack = installed().await?;
    let pool = stack.database().pool();
    work(&stack, 12).await?;
    sqlx::query("update mem_sessions set model = null").execute(pool).await?;
    let made = make(&stack, &base, &[]).await?;
    assert_eq!(made.code, Some(1));
    assert!(made.stderr.contains("nothing of the journal becomes a row"), "{}", made.stderr);
    assert!(made.stderr.contains("--licence unknown"), "{}", made.stderr);
    let versions = stack.home().root().join("data/processed/qwen2_5_tools");
    assert_eq!(std::fs::read_dir(versions)?.count(), 0, "what failed leaves nothing half-written");

    sqlx::query("update mem_sessions set model = 'claude-sonnet-4-5'").execute(pool).await?;
    let refused = make(&stack, &base, &[]).await?;
    assert_eq!(refused.code, Some(1));
    for expected in ["Anthropic", "docs/finetune/consent.md", "--accept-source-terms"] {
        assert!(refused.stderr.contains(expected), "{}", refused.stderr);
    }
    let agreed = make(&stack, &base, &["--accept-source-terms"]).await?;
    let agreed: Value = serde_json::from_str(&agreed.stdout).with_context(|| agreed.stderr.clone())?;
    assert_eq!(agreed["manifest"]["consent"]["providers"], json!(["Anthropic"]));
    assert_eq!(agreed["manifest"]["consent"]["how"], "flag");
    // Asked once.
    let later = make(&stack, &base, &[]).await?;
    let later: Value = serde_json::from_str(&later.stdout).with_context(|| later.stderr.clone())?;
    assert_eq!(later["manifest"], agreed["manifest"]);

    let none = operator::run(&stack, &["train", "dataset"], &[]).await?;
    assert!(none.code == Some(1) && none.stderr.contains("--base"), "{}", none.stderr);
    let wrong = make(&stack, stack.scratch(), &[]).await?;
    assert!(wrong.code == Some(1) && wrong.stderr.contains("tokenizer.json"), "{}", wrong.stderr);
    Ok(())
}

#[tokio::test]
async fn backfilled_transcripts_become_rows() -> Result<()> {
    let Some(base) = Family::Qwen25.folder().await? else { return Ok(()) };
    let stack = installed().await?;
    let mut files = generate_transcripts(&stack.scratch().join("transcripts"))?;
    let recorded = recordings::transcripts()?;
    let found = if recorded.is_empty() { "generated ones only" } else { "the recorded ones too" };
    files.extend(recorded);
    let files: Vec<_> = files.iter().map(|path| path.display().to_string()).collect();
    let arguments: Vec<_> =
        ["backfill", "--json", "--file"].into_iter().chain(files.iter().map(String::as_str)).collect();
    operator::json(&stack, &arguments).await?;
    let made = make(
        &stack,
        &base,
        &["--accept-source-terms", "--licence", "open", "--licence", "restricted", "--licence", "unknown"],
    )
    .await?;
    let report: Value = serde_json::from_str(&made.stdout).with_context(|| made.stderr.clone())?;
    let folder = folder_of(&report)?;
    let rows = lines(&folder.join("train.jsonl"))?;
    // Which of both is trained on is the split's business; the other may also be too similar.
    let is_generated =
        |row: &Value| row["source"]["session"].as_str().is_some_and(|name| name.starts_with("generated-"));
    assert!(rows.iter().any(is_generated), "{}", made.stderr);
    for row in &rows {
        let calls =
            row["messages"].as_array().into_iter().flatten().filter(|message| message.get("tool_calls").is_some());
        assert_eq!(calls.count(), row["source"]["calls"].as_array().map_or(0, Vec::len), "every call knows its id");
    }
    summary::line(&format!("rows of backfilled transcripts: {}, {found}", report["audit"]["rows"]));
    Ok(())
}

/// The same journal, the same seed: the same bytes, whatever order the database gives its rows in.
async fn check_sameness(stack: &Stack, base: &Path, report: &Value) -> Result<()> {
    let pool = stack.database().pool();
    for table in ["mem_tool_calls", "mem_user_prompts", "mem_sessions"] {
        let rewritten = format!("update {table} set recorded_at = now() where id % 3 = 0");
        sqlx::query(sqlx::AssertSqlSafe(rewritten)).execute(pool).await?;
    }
    let again: Value = serde_json::from_str(&make(stack, base, &[]).await?.stdout)?;
    assert!(folder_of(&again)?.ends_with("v2"));
    assert_eq!(again["manifest"], report["manifest"]);
    let other: Value = serde_json::from_str(&make(stack, base, &["--seed", "8"]).await?.stdout)?;
    assert_ne!(other["manifest"]["files"]["train.jsonl"], report["manifest"]["files"]["train.jsonl"]);
    Ok(())
}

/// A running stack whose home has the programs that a dataset needs.
pub(crate) async fn installed() -> Result<Stack> {
    let stack = Stack::running().await?;
    stack.install(&programs::finetune().await?)?;
    Ok(stack)
}

async fn make(stack: &Stack, base: &Path, arguments: &[&str]) -> Result<Told> {
    let base = base.display().to_string();
    let mut all = vec!["train", "dataset", "--base", &base, "--json"];
    all.extend(arguments);
    operator::run(stack, &all, &[] as &[(&str, OsString)]).await
}

fn folder_of(report: &Value) -> Result<PathBuf> {
    Ok(PathBuf::from(report["folder"].as_str().context("the dataset's folder")?))
}

fn check_rows(folder: &Path, report: &Value) -> Result<()> {
    let mut sessions: Vec<BTreeSet<String>> = Vec::new();
    for split in ["train", "validation", "test"] {
        let rows = lines(&folder.join(format!("{split}.jsonl")))?;
        assert!(!rows.is_empty(), "{split} has rows");
        sessions.push(rows.iter().filter_map(|row| row["source"]["session"].as_str().map(str::to_owned)).collect());
        for row in &rows {
            assert_eq!(row["source"]["source_model"], OPEN_MODEL);
            assert_eq!(row["source"]["licence"], "open");
            assert!(row["tools"].as_array().is_some_and(|tools| !tools.is_empty()));
        }
        for line in lines(&folder.join(format!("rendered/{split}.jsonl")))? {
            let text = line["text"].as_str().context("the text")?;
            for span in line["trained"].as_array().context("what is trained on")? {
                let bytes = |at: usize| span[at].as_u64().map(|byte| byte as usize).context("a byte");
                let trained = &text[bytes(0)?..bytes(1)?];
                assert!(trained.ends_with("<|im_end|>") && !trained.contains("<|im_start|>"), "{trained}");
                assert!(text[..bytes(0)?].contains("<|im_start|>assistant\n"));
            }
        }
    }
    let all: usize = sessions.iter().map(BTreeSet::len).sum();
    assert_eq!(sessions.iter().flatten().collect::<BTreeSet<_>>().len(), all, "no session is in two splits");
    // A failed call is shown and not learnt.
    let rows = lines(&folder.join("train.jsonl"))?;
    let mut failures = 0;
    for row in &rows {
        for (index, message) in row["messages"].as_array().context("messages")?.iter().enumerate() {
            if message["tool_calls"][0]["function"]["arguments"]["command"]
                .as_str()
                .is_some_and(|c| c.starts_with("cargo bench"))
            {
                failures += 1;
                assert!(!row["trained"].as_array().context("trained")?.contains(&json!(index)));
            }
        }
    }
    assert!(failures > 0, "some calls failed");
    assert_eq!(report["manifest"]["sealed_sha256"], report["manifest"]["files"]["test.jsonl"]["sha256"]);
    Ok(())
}

/// The trainers' forms hold the same tokens, and nothing of the test set.
fn check_formats(folder: &Path, report: &Value) -> Result<()> {
    let trained: u64 =
        lines(&folder.join("rendered/train.jsonl"))?.iter().filter_map(|line| line["trained_tokens"].as_u64()).sum();
    let tokens = lines(&folder.join("formats/axolotl/tokens/train.jsonl"))?;
    let labels =
        tokens.iter().filter_map(|line| line["labels"].as_array()).flatten().filter(|label| **label != json!(-100));
    assert_eq!(labels.count() as u64, trained);
    let tested: BTreeSet<_> = lines(&folder.join("test.jsonl"))?
        .iter()
        .filter_map(|row| {
            row["messages"].as_array()?.iter().rfind(|message| message["role"] == "user")?["content"]
                .as_str()
                .map(str::to_owned)
        })
        .collect();
    for path in
        ["axolotl/train.jsonl", "mlx/valid.jsonl", "llama-factory/train.jsonl", "llama-factory/validation.jsonl"]
    {
        let text = std::fs::read_to_string(folder.join("formats").join(path)).with_context(|| path.to_owned())?;
        assert!(!text.is_empty(), "{path}");
        for prompt in &tested {
            assert!(!text.contains(prompt.as_str()), "{path} holds a sealed prompt");
        }
    }
    let masks = lines(&folder.join("formats/trl/data/train.jsonl"))?;
    let masked = masks.iter().filter_map(|line| line["completion_mask"].as_array()).flatten().filter_map(Value::as_u64);
    assert_eq!(masked.sum::<u64>(), trained);
    let turns: usize =
        lines(&folder.join("train.jsonl"))?.iter().filter_map(|row| row["trained"].as_array().map(Vec::len)).sum();
    assert_eq!(lines(&folder.join("formats/mlx/train.jsonl"))?.len(), turns, "a line for each trained turn");
    for (path, facts) in report["manifest"]["files"].as_object().context("the files")? {
        let bytes = std::fs::metadata(folder.join(path)).with_context(|| path.clone())?.len();
        assert_eq!(facts["bytes"], bytes, "{path}");
    }
    Ok(())
}

fn lines(path: &Path) -> Result<Vec<Value>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
    text.lines().map(|line| serde_json::from_str(line).context("reading a line")).collect()
}

/// All that is written, in one text.
fn every_text(folder: &Path) -> Result<String> {
    let mut all = String::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                all.push_str(&std::fs::read_to_string(&path)?);
            }
        }
    }
    Ok(all)
}
