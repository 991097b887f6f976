//! A model that others published, answered by both engines.

use anyhow::Result;
use finetune::gguf;
use finetune::smoke::{self, Engine};
use tests::engines::llama::Llama;
use tests::engines::smollm;
use tests::summary;

use super::agreement::Agreement;

const PROMPT: &str = "<|im_start|>user\nWhat is the capital of France?<|im_end|>\n<|im_start|>assistant\n";
const MAX_TOKENS: usize = 64;

#[tokio::test]
async fn both_engines_answer_alike() -> Result<()> {
    let Some(file) = smollm::file().await? else { return Ok(()) };
    let engine = Engine::load(&file).await?;
    let ours = engine.complete(PROMPT, MAX_TOKENS).await?;
    assert!(ours.stopped && ours.text.contains("Paris"), "{ours:?}");

    let Some(llama) = Llama::find().await? else { return Ok(()) };
    let theirs = llama.generate(&file, PROMPT, MAX_TOKENS).await?;
    assert!(theirs.stopped, "{theirs:?}");
    assert_eq!(theirs.prompt_ids.len(), ours.prompt_tokens);
    assert_eq!(theirs.text.trim(), ours.text.trim());

    let ids = [theirs.prompt_ids, theirs.ids].concat();
    let agreement = Agreement::of(&llama.probabilities(&file, &ids, 50).await?, &engine.logits(&ids).await?)?;
    summary::line(&format!("SmolLM2 in q4_1, llama.cpp and mistralrs: {agreement}"));
    assert!(agreement.same_share() >= 0.8, "{agreement}");
    Ok(())
}

#[tokio::test]
async fn a_smoke_test_reports_every_answer() -> Result<()> {
    let Some(file) = smollm::file().await? else { return Ok(()) };
    let report = smoke::run(&file, &[PROMPT.to_owned(), PROMPT.replace("France", "Italy")]).await?;
    assert!(report.passed(), "{report:?}");
    assert!(report.answers[0].text.contains("Paris") && report.answers[1].text.contains("Rome"), "{report:?}");
    assert!(report.answers.iter().all(|answer| answer.calls.is_empty()));
    let durations: Vec<_> = report.answers.iter().map(|answer| (answer.tokens, answer.duration_ms)).collect();
    summary::line(&format!("mistralrs: loaded in {} ms, then (tokens, ms) {durations:?}", report.loading_ms));
    Ok(())
}

#[tokio::test]
async fn verifying_accepts_it() -> Result<()> {
    let Some(file) = smollm::file().await? else { return Ok(()) };
    let verified = gguf::verify(&file, None)?;
    assert!(verified.passed(), "{verified}");
    Ok(())
}
