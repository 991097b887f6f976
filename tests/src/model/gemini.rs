//! Gemini CLI's dialect, `generateContent`: a turn whole, or as a stream of one piece.

use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::Block;

pub(super) fn whole(blocks: &[Block]) -> Response {
    axum::Json(turn(blocks)).into_response()
}

pub(super) fn stream(blocks: &[Block]) -> Response {
    super::event_stream(format!("data: {}\r\n\r\n", turn(blocks)))
}

/// The text of all tool results in a request.
pub(super) fn tool_results(request: &Value) -> String {
    let contents = request["contents"].as_array().into_iter().flatten();
    let parts = contents.filter_map(|content| content["parts"].as_array()).flatten();
    parts.filter_map(|part| part["functionResponse"].get("response")).map(strings_in).collect()
}

fn turn(blocks: &[Block]) -> Value {
    let parts: Vec<Value> = blocks
        .iter()
        .map(|block| match block {
            Block::Text(text) => json!({"text": text}),
            Block::Call { tool, input } => json!({"functionCall": {"name": tool, "args": input}}),
        })
        .collect();
    json!({
        "candidates": [{"content": {"role": "model", "parts": parts}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        "modelVersion": "scripted"
    })
}

/// A response is an object whose members differ from tool to tool.
fn strings_in(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(strings_in).collect(),
        Value::Object(members) => members.values().map(strings_in).collect(),
        _ => String::new(),
    }
}
