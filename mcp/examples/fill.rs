use chrono::Utc;
use memory::embed::{EmbedDocuments, Embedder};
use memory::event::{Envelope, Reading, read};
use memory::store::{self, ProjectCache};
use serde_json::json;

#[tokio::main]
async fn main() {
    let home = memory::home::Home::locate().unwrap();
    let db = store::connect(&home.database_url().unwrap()).await.unwrap();
    store::migrate(&db).await.unwrap();
    let mut n = 0;
    for (event, payload) in [
        ("SessionStart", json!({"source": "startup"})),
        ("UserPromptSubmit", json!({"prompt_id": "p1", "prompt": "make the widget tests pass again"})),
        (
            "PostToolUse",
            json!({"prompt_id": "p1", "tool_use_id": "t1", "tool_name": "Write", "tool_input": {"file_path": "/home/dev/widgets/a.py", "content": "def parse_config():\n    return 1\n"}, "tool_response": {"type": "create"}, "duration_ms": 4}),
        ),
        (
            "PostToolUseFailure",
            json!({"prompt_id": "p1", "tool_use_id": "t2", "tool_name": "Bash", "tool_input": {"command": "cargo test --workspace", "description": "Run tests"}, "error": "Exit code 101\nerror: linker `cc` not found", "duration_ms": 900}),
        ),
        (
            "PostToolUse",
            json!({"prompt_id": "p1", "tool_use_id": "t3", "tool_name": "Bash", "tool_input": {"command": "apt-get install -y gcc"}, "tool_response": {"stdout": "Setting up gcc", "stderr": ""}, "duration_ms": 9000}),
        ),
        ("Stop", json!({"prompt_id": "p1", "last_assistant_message": "The compiler was missing; I installed gcc."})),
        ("SessionEnd", json!({"reason": "exit"})),
    ] {
        n += 1;
        let mut payload = payload;
        payload["hook_event_name"] = json!(event);
        payload["session_id"] = json!("s1");
        payload["cwd"] = json!("/home/dev/widgets");
        let envelope = json!({"envelope": 1, "event_id": format!("00000000-0000-4000-8000-{n:012}"), "agent": "claude-code", "event": event,
            "occurred_at_us": 1_795_968_338_704_123i64 + n * 1_000_000, "cwd": "/home/dev/widgets",
            "git": {"root": "/home/dev/widgets", "common_dir": "/home/dev/widgets/.git", "remote_url": "git@example.com:acme/widgets.git", "branch": "main", "head": null},
            "payload": payload});
        let envelope = Envelope::parse(envelope.to_string().as_bytes(), None, Utc::now()).unwrap();
        let Reading::Kept(event) = read(envelope) else { panic!() };
        let mut tx = db.begin().await.unwrap();
        let recorded = store::record(&mut tx, &mut ProjectCache::default(), *event).await.unwrap();
        tx.commit().await.unwrap();
        eprintln!("{recorded:?}");
    }
    let worker = memory::queue::Worker::new(db.clone(), EmbedDocuments { db, embedder: Embedder::over(home.models()) });
    eprintln!("{:?}", worker.run_until_empty().await);
}
