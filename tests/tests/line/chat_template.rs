//! The rows' text and tokens, held against what Hugging Face's own code made of the same conversations (`tests/chat-template/make.py`).

use anyhow::{Context, Result, ensure};
use finetune::dataset::render::{Base, Thinking};
use finetune::dataset::row::Message;
use serde::Deserialize;
use serde_json::Value;
use tests::base_model::Family;
use tests::summary;

const CONVERSATIONS: &str = include_str!("../../chat-template/conversations.json");
const QWEN3: &str = include_str!("../../chat-template/qwen3.json");
const QWEN25: &str = include_str!("../../chat-template/qwen2_5.json");

#[derive(Deserialize)]
struct Conversation {
    messages: Vec<Message>,
    tools: Vec<Value>,
}

#[derive(Deserialize)]
struct Expected {
    made_with: String,
    rendered: Vec<Rendered>,
}

#[derive(Deserialize)]
struct Rendered {
    conversation: usize,
    /// How many messages of the conversation were rendered.
    messages: usize,
    asks: bool,
    thinks: bool,
    text: String,
    ids: Vec<u32>,
}

#[tokio::test]
async fn renders_qwen3_as_hugging_face_does() -> Result<()> {
    check(Family::Qwen3, QWEN3).await
}

#[tokio::test]
async fn renders_qwen2_5_as_hugging_face_does() -> Result<()> {
    check(Family::Qwen25, QWEN25).await
}

async fn check(family: Family, expected: &str) -> Result<()> {
    let Some(folder) = family.folder().await? else { return Ok(()) };
    let base = Base::load(&folder)?;
    assert_eq!(base.family.as_str(), family.as_str());
    let conversations: Vec<Conversation> = serde_json::from_str(CONVERSATIONS).context("reading the conversations")?;
    let expected: Expected = serde_json::from_str(expected).context("reading what was expected")?;
    ensure!(conversations.len() >= 30 && expected.rendered.len() >= 2 * conversations.len(), "too few");
    for rendered in &expected.rendered {
        let Conversation { messages, tools } = &conversations[rendered.conversation];
        let thinking = if rendered.thinks { Thinking::Default } else { Thinking::Off };
        let text = base.template.render(&messages[..rendered.messages], tools, rendered.asks, thinking)?;
        assert_eq!(text, rendered.text, "conversation {}", rendered.conversation);
        let encoded = base.tokens.encode(&text).map_err(|error| anyhow::anyhow!("{error}"))?;
        assert_eq!(encoded.ids, rendered.ids, "conversation {}: {text}", rendered.conversation);
    }
    summary::line(&format!(
        "chat template of {}: {} texts equal to those of {}",
        family.as_str(),
        expected.rendered.len(),
        expected.made_with
    ));
    Ok(())
}
