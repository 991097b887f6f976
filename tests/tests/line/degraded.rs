//! What a search gives when something of it is missing: what it can find, or a clear message; never an empty list that looks like an
//! answer.

use std::path::Path;

use anyhow::{Context, Result};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tests::stack::Stack;
use tests::{embedding_model, wait};

const MODELS: &str = "AGENT_MEMORY_MODELS";

#[tokio::test]
async fn without_its_database_a_search_says_so() -> Result<()> {
    let mut stack = Stack::stopped().await?;
    std::fs::write(stack.home().database_url_file(), "postgres://nobody:nothing@127.0.0.1:9/none\n")?;
    stack.start_server_without_database().await?;
    let (status, answer) = search(&stack, "pelican").await?;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{answer}");
    let told = format!("{} {}", answer["message"], answer["hint"]);
    assert!(told.contains("database") && told.contains("cargo xtask"), "it says what is away and what to do: {answer}");
    Ok(())
}

#[tokio::test]
async fn without_a_model_a_search_goes_by_words_and_says_so() -> Result<()> {
    let stack = Stack::running().await?;
    save(&stack, "The pelican deploy needs PORT=7070.").await?;
    let (_, answer) = search(&stack, "pelican deploy").await?;
    assert_eq!(answer["hits"].as_array().map(Vec::len), Some(1), "{answer}");
    assert!(notes(&answer).contains("by words alone"), "{answer}");
    Ok(())
}

#[tokio::test]
async fn with_a_model_of_too_many_dimensions_a_search_goes_by_words_and_says_why() -> Result<()> {
    let Some(models) = embedding_model::folder()? else { return Ok(()) };
    let stack = with_models(|into| embedding_model::fake(&models, into, 1_024)).await?;
    save(&stack, "The pelican deploy needs PORT=7070.").await?;
    let (_, answer) = search(&stack, "pelican deploy").await?;
    assert_eq!(answer["hits"].as_array().map(Vec::len), Some(1), "{answer}");
    assert!(notes(&answer).contains("gives 1024 dimensions, at most 768"), "{answer}");
    let health = stack.health().await?;
    assert_eq!(health["embedding"]["state"], "unavailable", "{health}");
    Ok(())
}

#[tokio::test]
async fn a_model_of_other_dimensions_takes_over_from_another() -> Result<()> {
    let Some(models) = embedding_model::folder()? else { return Ok(()) };
    let mut stack = with_models(|into| embedding_model::fake(&models, into, 8)).await?;
    save(&stack, "The pelican deploy needs PORT=7070.").await?;
    embedded_by(&stack, "fake@").await?;
    stack.stop_server().await?;
    exchange(&stack, |into| embedding_model::renamed(&models, into))?;
    stack.start_server().await?;
    embedded_by(&stack, "renamed@").await?;
    let (_, answer) = search(&stack, "on which port does the bird's service listen").await?;
    assert!(answer["hits"][0]["matched"]["similarity"].as_f64() > Some(0.2), "{answer}");
    Ok(())
}

#[tokio::test]
async fn in_a_half_re_embedded_index_all_is_found_and_the_search_says_how_far_it_is() -> Result<()> {
    let Some(models) = embedding_model::folder()? else { return Ok(()) };
    let mut stack = with_models(|into| embedding_model::fake(&models, into, 8)).await?;
    for bird in ["pelican", "heron", "stork", "cormorant"] {
        save(&stack, &format!("The {bird} deploy needs a port of its own.")).await?;
    }
    embedded_by(&stack, "fake@").await?;
    stack.stop_server().await?;
    // Two of the four wait for a long time.
    sqlx::query(
        "insert into mem_observation_queue (kind, payload, dedupe_key, run_after)
         select 'embed_document', jsonb_build_object('document', 'note-' || document_id), 'note-' || document_id, now() + interval '1 day'
         from mem_search_index order by document_id limit 2",
    )
    .execute(stack.database().pool())
    .await?;
    exchange(&stack, |into| embedding_model::renamed(&models, into))?;
    stack.start_server().await?;
    let half = wait::until("half of the vectors", async || {
        let (_, answer) = search(&stack, "pelican").await?;
        let shares = shares(&stack).await?;
        let is_half = shares.len() == 2 && shares.iter().all(|(_, documents)| *documents == 2);
        Ok((is_half && notes(&answer).contains("have no vector of the present embedding model")).then_some(answer))
    });
    let answer = half.await?;
    assert!(notes(&answer).contains('%'), "{answer}");
    for bird in ["pelican", "cormorant"] {
        let (_, answer) = search(&stack, &format!("{bird} deploy")).await?;
        let headline = answer["hits"][0]["headline"].as_str().unwrap_or_default();
        assert!(headline.contains(bird), "of either model: {answer}");
    }
    sqlx::query("update mem_observation_queue set run_after = now()").execute(stack.database().pool()).await?;
    embedded_by(&stack, "renamed@").await
}

/// A running installation with models of its own.
async fn with_models(make: impl FnOnce(&Path) -> Result<()>) -> Result<Stack> {
    let mut stack = Stack::stopped().await?;
    let models = stack.scratch().join("models");
    make(&models)?;
    stack.set(MODELS, &models.to_string_lossy());
    stack.start_server().await?;
    Ok(stack)
}

fn exchange(stack: &Stack, make: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    let models = stack.scratch().join("models");
    std::fs::remove_dir_all(&models).context("removing the former model")?;
    make(&models)
}

/// Waits until every document has a vector of a model whose name begins so.
async fn embedded_by(stack: &Stack, model: &str) -> Result<()> {
    wait::until("the vectors", async || {
        let shares = shares(stack).await?;
        Ok((shares.len() == 1 && shares[0].0.starts_with(model)).then_some(()))
    })
    .await
}

/// The models and how many vectors each made; documents without one belong to none.
async fn shares(stack: &Stack) -> Result<Vec<(String, i64)>> {
    let query = "select coalesce(model.name, ''), count(*) from mem_search_index
                 left join mem_embedding_models model on model.id = embedding_model_id group by 1 order by 1";
    sqlx::query_as(query).fetch_all(stack.database().pool()).await.context("counting the vectors")
}

async fn save(stack: &Stack, text: &str) -> Result<()> {
    let answer = stack.post("/api/observations").json(&json!({ "text": text })).send().await?;
    answer.error_for_status().map(drop).context("saving a note")
}

async fn search(stack: &Stack, query: &str) -> Result<(StatusCode, Value)> {
    let answer = stack.post("/api/observations/search").json(&json!({ "query": query })).send().await?;
    Ok((answer.status(), answer.json().await?))
}

fn notes(answer: &Value) -> String {
    answer["notes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")
}
