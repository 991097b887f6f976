//! The folder of a run: every trainer with every way of sharing, values as they were passed, and what is refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::*;
use crate::dataset::row::hex;

const RECIPE: Recipe =
    Recipe { r: 8, alpha: 24, dropout: 0.05, learning_rate: 2e-5, epochs: 2, batch: 16, warmup: 0.1, seed: 11 };

/// A dataset's folder with two lines in each of the trainers' files.
fn dataset(folder: &Path, audit_passed: bool) {
    let mut files = serde_json::Map::new();
    let paths = [
        "axolotl/train.jsonl",
        "axolotl/validation.jsonl",
        "axolotl/tokens/train.jsonl",
        "axolotl/tokens/validation.jsonl",
        "trl/data/train.jsonl",
        "trl/data/validation.jsonl",
        "unsloth/train.jsonl",
        "unsloth/validation.jsonl",
        "llama-factory/train.jsonl",
        "llama-factory/validation.jsonl",
        "llama-factory/dataset_info.json",
        "mlx/train.jsonl",
        "mlx/valid.jsonl",
    ];
    for path in paths {
        let text = format!("{{\"in\": \"{path}\"}}\n").repeat(100);
        let whole = folder.join("formats").join(path);
        fs::create_dir_all(whole.parent().unwrap()).unwrap();
        fs::write(&whole, &text).unwrap();
        let facts = json!({ "sha256": hex(&Sha256::digest(&text)), "bytes": text.len(), "lines": 100 });
        files.insert(format!("formats/{path}"), facts);
    }
    let manifest = json!({
        "manifest": 1, "program": "0.1.0", "family": "qwen3", "template_sha256": "", "tokenizer_sha256": "",
        "settings": { "max_tokens": 1234 }, "inputs": {}, "providers": [], "consent": null,
        "counts": { "sessions": 1, "turns": 1, "gathered": 1, "drops": {} }, "splits": {},
        "audit_passed": audit_passed, "sealed_sha256": "", "files": files,
    });
    fs::write(folder.join("manifest.json"), manifest.to_string()).unwrap();
}

struct Tried {
    files: BTreeMap<String, String>,
    written: Written,
}

fn attempt(trainer: Trainer, gpus: u64, nodes: u64, strategy: Strategy) -> Result<Tried, ScaleOutError> {
    let scratch = tempfile::tempdir().unwrap();
    dataset(scratch.path(), true);
    let out = scratch.path().join("run");
    let job = ScaleOut {
        dataset: scratch.path(),
        failed_audit: FailedAudit::Refuse,
        trainer,
        base: "Qwen/Qwen3-1.7B",
        shape: Shape { gpus, nodes, strategy },
        recipe: &RECIPE,
        out: &out,
    };
    let written = write(&job);
    assert!(!scratch.path().join("run.partial").exists(), "nothing half-written is left");
    let written = written?;
    let read = |name: &String| (name.clone(), fs::read_to_string(out.join(name)).unwrap());
    Ok(Tried { files: written.files.iter().map(read).collect(), written })
}

fn yaml(text: &str) -> Value {
    yaml_serde::from_str(text).unwrap()
}

#[test]
fn configurations_hold_what_was_passed() {
    for (trainer, name, expected) in [
        (
            Trainer::Axolotl,
            "axolotl.yaml",
            json!({
                "base_model": "Qwen/Qwen3-1.7B", "lora_r": 8, "lora_alpha": 24, "lora_dropout": 0.05, "learning_rate": 2e-5,
                "num_epochs": 2, "micro_batch_size": 2, "gradient_accumulation_steps": 8, "warmup_steps": 1,
                "sequence_len": 1234, "seed": 11,
            }),
        ),
        (
            Trainer::Trl,
            "sft.yaml",
            json!({
                "model_name_or_path": "Qwen/Qwen3-1.7B", "lora_r": 8, "lora_alpha": 24, "lora_dropout": 0.05,
                "learning_rate": 2e-5, "num_train_epochs": 2, "per_device_train_batch_size": 2,
                "gradient_accumulation_steps": 8, "max_length": 1234, "seed": 11,
            }),
        ),
        (
            Trainer::LlamaFactory,
            "train.yaml",
            json!({
                "model_name_or_path": "Qwen/Qwen3-1.7B", "lora_rank": 8, "lora_alpha": 24, "lora_dropout": 0.05,
                "learning_rate": 2e-5, "num_train_epochs": 2, "per_device_train_batch_size": 1,
                "gradient_accumulation_steps": 16, "cutoff_len": 1234, "template": "qwen3", "enable_thinking": false,
            }),
        ),
        (
            Trainer::Mlx,
            "lora.yaml",
            json!({
                "model": "Qwen/Qwen3-1.7B", "batch_size": 1, "grad_accumulation_steps": 16, "iters": 208,
                "learning_rate": 2e-5, "max_seq_length": 1234, "seed": 11,
                "lr_schedule": { "name": "cosine_decay", "warmup": 1, "arguments": [2e-5, 13] },
            }),
        ),
    ] {
        let tried = attempt(trainer, 1, 1, Strategy::Ddp).unwrap();
        let found = yaml(&tried.files[name]);
        for (setting, value) in expected.as_object().unwrap() {
            assert_eq!(&found[setting], value, "{trainer}: {setting}");
        }
    }
    let mlx = attempt(Trainer::Mlx, 1, 1, Strategy::Ddp).unwrap();
    let lora = &yaml(&mlx.files["lora.yaml"])["lora_parameters"];
    assert_eq!([&lora["rank"], &lora["scale"], &lora["dropout"]], [&json!(8), &json!(3.0), &json!(0.05)]);
    let script = &attempt(Trainer::Unsloth, 1, 1, Strategy::Ddp).unwrap().files["train.py"];
    for expected in
        ["BASE = \"Qwen/Qwen3-1.7B\"", "r=8,", "lora_alpha=24,", "learning_rate=0.00002,", "num_train_epochs=2,"]
    {
        assert!(script.contains(expected), "{expected} in {script}");
    }
}

#[test]
fn every_trainer_and_strategy_is_written_or_refused_with_a_reason() {
    let mut table = Vec::new();
    for trainer in Trainer::ALL {
        for (gpus, nodes) in [(1, 1), (4, 1), (8, 2), (1, 2)] {
            for strategy in Strategy::ALL {
                let told = match attempt(trainer, gpus, nodes, strategy) {
                    Ok(tried) => tried.written.train,
                    Err(why) => format!("refused: {why}"),
                };
                table.push(format!("{trainer} {nodes}x{gpus} {strategy}: {told}"));
            }
        }
    }
    insta::assert_snapshot!(table.join("\n"));
}

#[test]
fn what_is_shared_is_written_and_named() {
    for trainer in [Trainer::Axolotl, Trainer::Trl, Trainer::LlamaFactory] {
        for (strategy, stage) in [(Strategy::DeepspeedZero2, 2), (Strategy::DeepspeedZero3, 3)] {
            let tried = attempt(trainer, 4, 1, strategy).unwrap();
            let configuration = tried.files.iter().find(|(name, _)| name.ends_with(".yaml")).unwrap().1;
            assert_eq!(yaml(configuration)["deepspeed"], "deepspeed.json", "{trainer}");
            let deepspeed: Value = serde_json::from_str(&tried.files["deepspeed.json"]).unwrap();
            assert_eq!(deepspeed["zero_optimization"]["stage"], stage);
            assert!(tried.written.install.contains("deepspeed"), "{}", tried.written.install);
        }
        let tried = attempt(trainer, 4, 2, Strategy::Fsdp).unwrap();
        let (file, member) = match trainer {
            Trainer::Axolotl => ("axolotl.yaml", "transformer_layer_cls_to_wrap"),
            _ => ("accelerate.yaml", "fsdp_transformer_layer_cls_to_wrap"),
        };
        let found = yaml(&tried.files[file]);
        assert_eq!(found["fsdp_config"][member], "Qwen3DecoderLayer", "{trainer}");
        if file == "accelerate.yaml" {
            assert_eq!([&found["num_machines"], &found["num_processes"]], [&json!(2), &json!(8)]);
        }
        assert!(tried.files["run.sh"].contains("MAIN_HOST:?"), "{}", tried.files["run.sh"]);
    }
}

#[test]
fn an_update_takes_the_recipe_s_rows_until_there_are_more_gpus_than_rows() {
    for (gpus, nodes, rows, accumulation, batch) in
        [(1, 1, 2, 8, 16), (8, 1, 2, 1, 16), (8, 2, 1, 1, 16), (8, 4, 1, 1, 32)]
    {
        let tried = attempt(Trainer::Trl, gpus, nodes, Strategy::Ddp).unwrap();
        let found = yaml(&tried.files["sft.yaml"]);
        assert_eq!(found["per_device_train_batch_size"], rows);
        assert_eq!(found["gradient_accumulation_steps"], accumulation);
        assert_eq!(tried.written.batch, batch);
        assert_eq!(tried.files["run.md"].contains("32 rows and not 16"), batch == 32);
    }
    // mlx-lm is told the rows of all machines.
    let mlx = yaml(&attempt(Trainer::Mlx, 1, 4, Strategy::Ddp).unwrap().files["lora.yaml"]);
    assert_eq!(
        [&mlx["batch_size"], &mlx["grad_accumulation_steps"], &mlx["iters"]],
        [&json!(4), &json!(4), &json!(52)]
    );
}

#[test]
fn says_how_to_run_and_how_the_adapter_comes_back() {
    let tried = attempt(Trainer::Axolotl, 8, 2, Strategy::DeepspeedZero3).unwrap();
    insta::assert_snapshot!("axolotl_run_sh", tried.files["run.sh"]);
    insta::assert_snapshot!("axolotl_run_md", tried.files["run.md"]);
    let tried = attempt(Trainer::Trl, 1, 1, Strategy::Ddp).unwrap();
    insta::assert_snapshot!("trl_run_sh", tried.files["run.sh"]);
    let tried = attempt(Trainer::Mlx, 1, 1, Strategy::Ddp).unwrap();
    insta::assert_snapshot!("mlx_run_sh", tried.files["run.sh"]);
    insta::assert_snapshot!("mlx_run_md", tried.files["run.md"]);
    assert!(tried.files.contains_key("to_peft.py"));
}

#[test]
fn a_failed_audit_is_refused_unless_it_is_allowed() {
    let scratch = tempfile::tempdir().unwrap();
    dataset(scratch.path(), false);
    let out = scratch.path().join("run");
    let mut job = ScaleOut {
        dataset: scratch.path(),
        failed_audit: FailedAudit::Refuse,
        trainer: Trainer::Trl,
        base: "Qwen/Qwen3-0.6B",
        shape: Shape { gpus: 1, nodes: 1, strategy: Strategy::Ddp },
        recipe: &RECIPE,
        out: &out,
    };
    assert!(matches!(write(&job), Err(ScaleOutError::AuditFailed(_))));
    assert!(!out.exists());
    job.failed_audit = FailedAudit::Allow;
    let written = write(&job).unwrap();
    assert!(fs::read_to_string(out.join("run.md")).unwrap().contains("A failed audit was allowed"));
    assert_eq!(written.files, ["data/train.jsonl", "data/validation.jsonl", "run.md", "run.sh", "sft.yaml"]);
    assert!(matches!(write(&job), Err(ScaleOutError::AlreadyThere(_))), "what is there is not written over");
}

#[test]
fn a_dataset_that_is_not_what_its_manifest_says_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    dataset(scratch.path(), true);
    let out = scratch.path().join("run");
    let job = ScaleOut {
        dataset: scratch.path(),
        failed_audit: FailedAudit::Refuse,
        trainer: Trainer::Unsloth,
        base: "base",
        shape: Shape { gpus: 1, nodes: 1, strategy: Strategy::Ddp },
        recipe: &RECIPE,
        out: &out,
    };
    fs::write(scratch.path().join("formats/unsloth/train.jsonl"), "{}\n").unwrap();
    assert!(matches!(write(&job), Err(ScaleOutError::Changed { .. })));
    fs::remove_file(scratch.path().join("formats/unsloth/train.jsonl")).unwrap();
    assert!(matches!(write(&job), Err(ScaleOutError::Reading { .. })));
    fs::write(scratch.path().join("manifest.json"), "{}").unwrap();
    assert!(matches!(write(&job), Err(ScaleOutError::Manifest(_))));
    assert!(!out.exists() && !scratch.path().join("run.partial").exists());
}

#[test]
fn a_recipe_that_teaches_nothing_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    for recipe in
        [Recipe { r: 0, ..RECIPE }, Recipe { learning_rate: f64::NAN, ..RECIPE }, Recipe { dropout: 1.0, ..RECIPE }]
    {
        let job = ScaleOut {
            dataset: scratch.path(),
            failed_audit: FailedAudit::Refuse,
            trainer: Trainer::Trl,
            base: "base",
            shape: Shape { gpus: 1, nodes: 1, strategy: Strategy::Ddp },
            recipe: &recipe,
            out: &scratch.path().join("run"),
        };
        assert!(matches!(write(&job), Err(ScaleOutError::Recipe { .. })), "{recipe:?}");
    }
}
