//! Codex's dialect, the responses API, always as a stream of server-sent events.

use axum::response::Response;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Block, text_of};

/// A turn: it opens, each item comes whole, it closes.
pub(super) fn answer(blocks: &[Block]) -> Response {
    let items: Vec<Value> = blocks.iter().map(item).collect();
    let id = format!("resp_{}", Uuid::new_v4().simple());
    let mut events = vec![json!({"type": "response.created", "response": {"id": id}})];
    for (index, item) in items.iter().enumerate() {
        events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }
    let usage = json!({
        "input_tokens": 10, "input_tokens_details": null, "output_tokens": 5, "output_tokens_details": null,
        "total_tokens": 15
    });
    events.push(json!({"type": "response.completed", "response": {"id": id, "output": items, "usage": usage}}));
    super::event_stream(super::named_events(&events))
}

/// The text of all tool results in a request.
pub(super) fn tool_results(request: &Value) -> String {
    let items = request["input"].as_array().into_iter().flatten();
    let results = items.filter(|item| {
        item["type"].as_str().is_some_and(|kind| kind == "function_call_output" || kind == "custom_tool_call_output")
    });
    results.map(|item| text_of(&item["output"])).collect()
}

fn item(block: &Block) -> Value {
    let id = Uuid::new_v4().simple();
    match block {
        Block::Text(text) => json!({
            "type": "message", "role": "assistant", "id": format!("msg_{id}"),
            "content": [{"type": "output_text", "text": text}]
        }),
        Block::Call { tool, input: Value::String(text) } => json!({
            "type": "custom_tool_call", "id": format!("ctc_{id}"), "call_id": format!("call_{id}"),
            "name": tool, "input": text
        }),
        Block::Call { tool, input } => {
            let (namespace, name) = split(tool);
            json!({
                "type": "function_call", "id": format!("fc_{id}"), "call_id": format!("call_{id}"),
                "namespace": namespace, "name": name, "arguments": input.to_string()
            })
        }
    }
}

/// Codex offers the tools of an MCP server in a namespace of their own: `mcp__server__tool` is `tool` in `mcp__server`.
fn split(tool: &str) -> (Option<&str>, &str) {
    match tool.rsplit_once("__") {
        Some((namespace, name)) if tool.starts_with("mcp__") => (Some(namespace), name),
        _ => (None, tool),
    }
}
