//! Looking at files, and at what is installed, without a run.

use std::process::ExitCode;

use anyhow::{Context as _, bail};
use finetune::dataset::render::{Base, Tokens};
use finetune::engine::Engine;
use finetune::eval::Engines;
use finetune::eval::ab::{BlindOptions, compare_blind, read_questions};
use finetune::hint::hinted;
use finetune::{files, gguf, install, stages};

use crate::cli::{AbArgs, InfoArgs, InstalledArgs, RemoveArgs, SmokeArgs, VerifyArgs};
use crate::make::print;

pub(crate) fn verify(arguments: &VerifyArgs) -> anyhow::Result<ExitCode> {
    let verified = gguf::verify(&arguments.file, arguments.against.as_deref())?;
    let agreement = match &arguments.against {
        Some(folder) if verified.passed() => {
            let json = std::fs::read(folder.join("tokenizer.json")).context("reading the tokenizer")?;
            let tokens = Tokens::of(&json).map_err(anyhow::Error::msg)?;
            Some(stages::compare(&arguments.file, folder, &tokens, &[TEXT.to_owned()])?)
        }
        _ => None,
    };
    if arguments.json {
        let told = serde_json::json!({ "verified": verified, "passed": verified.passed(), "logits": agreement });
        print(&(serde_json::to_string_pretty(&told)? + "\n"))?;
    } else {
        print(&format!("{verified}\n"))?;
        if let Some(agreement) = agreement {
            print(&format!(
                "  against the weights: the likeliest token is the same at {:.3} of {} positions, divergence {:.2e}\n",
                agreement.top_1, agreement.positions, agreement.divergence
            ))?;
        }
    }
    if verified.passed() {
        return Ok(ExitCode::SUCCESS);
    }
    let failed: Vec<_> = verified.failed().map(|check| check.name).collect();
    bail!(hinted(
        format!("`{}` did not pass: {}", arguments.file.display(), failed.join(", ")),
        "the lines above say what was found; get the file again from where it came, or make it again",
    ))
}

/// Something of everything that a coding agent writes.
const TEXT: &str = "<|im_start|>user\nWhy does `cargo test -p store` fail?<|im_end|>\n<|im_start|>assistant\n<tool_call>\n{\"name\": \"Bash\", \
                    \"arguments\": {\"command\": \"cargo test -p store 2>&1 | tail -40\"}}\n</tool_call><|im_end|>\n";

pub(crate) fn info(arguments: &InfoArgs) -> anyhow::Result<ExitCode> {
    let info = gguf::info(&arguments.file)?;
    if arguments.json { print(&(serde_json::to_string_pretty(&info)? + "\n")) } else { print(&format!("{info}\n")) }
}

#[cfg(not(feature = "smoke"))]
#[expect(clippy::unused_async, reason = "with the feature it waits for the engine")]
pub(crate) async fn smoke(_: &SmokeArgs) -> anyhow::Result<ExitCode> {
    bail!(hinted(
        "this program was built without mistralrs",
        "`cargo run --release -p finetune --features smoke -- smoke FILE` builds it in, which takes a while",
    ))
}

/// Without a prompt it is asked something that every ChatML model has an answer to.
#[cfg(feature = "smoke")]
pub(crate) async fn smoke(arguments: &SmokeArgs) -> anyhow::Result<ExitCode> {
    const USUAL: &str = "<|im_start|>user\nSay hello.<|im_end|>\n<|im_start|>assistant\n";
    let read = |path: &std::path::PathBuf| {
        std::fs::read_to_string(path).with_context(|| format!("reading `{}`", path.display()))
    };
    let mut prompts = arguments.prompt.iter().map(read).collect::<anyhow::Result<Vec<_>>>()?;
    if prompts.is_empty() {
        prompts.push(USUAL.to_owned());
    }
    let report = finetune::smoke::run(&arguments.file, &prompts).await?;
    if arguments.json {
        print(&(serde_json::to_string_pretty(&report)? + "\n"))?;
    } else {
        for answer in &report.answers {
            let end = if answer.stopped { "stopped by itself" } else { "ran into the limit" };
            print(&format!("{}\n({} tokens, {end}, {} calls)\n", answer.text, answer.tokens, answer.calls.len()))?;
        }
    }
    if report.passed() {
        return Ok(ExitCode::SUCCESS);
    }
    bail!(hinted(
        "not every answer came to an end by itself",
        "a model that does not stop was trained without the end of its turns, or asked in another template than its own",
    ))
}

pub(crate) fn ab(arguments: &AbArgs) -> anyhow::Result<ExitCode> {
    let base = Base::load(&arguments.base)?;
    let text = std::fs::read_to_string(&arguments.prompts)
        .with_context(|| format!("reading `{}`", arguments.prompts.display()))?;
    let questions = read_questions(&text).with_context(|| format!("reading `{}`", arguments.prompts.display()))?;
    let mut one = Engine::load(&arguments.one, &base.tokens)?;
    let mut other = Engine::load(&arguments.other, &base.tokens)?;
    let engines = Engines { base: &mut one, tuned: &mut other };
    let options = BlindOptions { max_tokens: arguments.tokens, seed: arguments.seed };
    let blind = compare_blind(&questions, &base.template, engines, options)?;
    let key = arguments.out.with_extension("key.json");
    files::write(&arguments.out, blind.table.as_bytes())
        .with_context(|| format!("writing `{}`", arguments.out.display()))?;
    files::write(&key, &serde_json::to_vec_pretty(&blind.key)?)
        .with_context(|| format!("writing `{}`", key.display()))?;
    print(&format!(
        "Wrote {} answers to {}; {} says which is whose (`base` is {})\n",
        2 * questions.len(),
        arguments.out.display(),
        key.display(),
        arguments.one.display()
    ))
}

pub(crate) fn installed(arguments: &InstalledArgs) -> anyhow::Result<ExitCode> {
    let root = arguments.lm_studio_dir.clone().map_or_else(install::usual_folder, Ok)?;
    let all = install::list(&root)?;
    if arguments.json {
        return print(&(serde_json::to_string_pretty(&all)? + "\n"));
    }
    if all.is_empty() {
        return print(&format!("No model was installed from here into {}\n", root.display()));
    }
    let lines = all.iter().map(|one| format!("{}  {}  (run {})\n", one.name, one.folder.display(), one.origin.run));
    print(&lines.collect::<String>())
}

pub(crate) fn remove(arguments: &RemoveArgs) -> anyhow::Result<ExitCode> {
    let root = arguments.lm_studio_dir.clone().map_or_else(install::usual_folder, Ok)?;
    let removed = install::remove(&root, &arguments.name)?;
    print(&format!("Removed {}\n", removed.folder.display()))
}
