//! Claude Code's dialect, the messages API: a turn whole, or as a stream of server-sent events.

use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Block, text_of};

/// The answer to that request, as it wants it.
pub(super) fn answer(request: &Value, blocks: &[Block]) -> Response {
    let message = message(&request["model"], blocks);
    if request["stream"] == Value::Bool(true) {
        super::event_stream(stream(&message))
    } else {
        axum::Json(message).into_response()
    }
}

/// The text of all tool results in a request.
pub(super) fn tool_results(request: &Value) -> String {
    let messages = request["messages"].as_array().into_iter().flatten();
    let blocks = messages.filter_map(|message| message["content"].as_array()).flatten();
    blocks.filter(|block| block["type"] == "tool_result").map(|block| text_of(&block["content"])).collect()
}

/// The whole message.
fn message(model: &Value, blocks: &[Block]) -> Value {
    let content: Vec<Value> = blocks
        .iter()
        .map(|block| match block {
            Block::Text(text) => json!({"type": "text", "text": text}),
            Block::Call { tool, input } => json!({
                "type": "tool_use", "id": format!("toolu_{}", Uuid::new_v4().simple()), "name": tool, "input": input
            }),
        })
        .collect();
    let calls = blocks.iter().any(|block| matches!(block, Block::Call { .. }));
    json!({
        "id": format!("msg_{}", Uuid::new_v4().simple()),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": if calls { "tool_use" } else { "end_turn" },
        "stop_sequence": null,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    })
}

/// The same message as a stream: it opens empty, each block opens empty and is filled by one delta.
fn stream(message: &Value) -> String {
    let mut opening = message.clone();
    opening["content"] = json!([]);
    opening["stop_reason"] = Value::Null;
    let mut events = vec![json!({"type": "message_start", "message": opening})];
    for (index, block) in message["content"].as_array().into_iter().flatten().enumerate() {
        let mut empty = block.clone();
        let delta = if block["type"] == "text" {
            empty["text"] = json!("");
            json!({"type": "text_delta", "text": block["text"]})
        } else {
            empty["input"] = json!({});
            json!({"type": "input_json_delta", "partial_json": block["input"].to_string()})
        };
        events.push(json!({"type": "content_block_start", "index": index, "content_block": empty}));
        events.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    events.push(json!({
        "type": "message_delta",
        "delta": {"stop_reason": message["stop_reason"], "stop_sequence": null},
        "usage": {"output_tokens": 20},
    }));
    events.push(json!({"type": "message_stop"}));
    super::named_events(&events)
}
