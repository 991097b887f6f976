//! Work from which a very small model can learn: what is asked decides which tool is called with what, and the words around it change
//! every time.

use anyhow::Result;
use serde_json::{Value, json};
use tests::conversation::{Call, Conversation, Outcome};
use tests::stack::Stack;

use crate::unasked::repository;

/// Whose outputs may be trained on.
const OPEN_MODEL: &str = "qwen3-coder";

const SUBJECTS: [&str; 3] = ["lexer", "cache", "index"];
const VERBS: [&str; 4] = ["open", "test", "search", "list"];
const WORDS: [&str; 40] = [
    "amber", "basin", "cedar", "delta", "ember", "fjord", "grove", "haven", "inlet", "jetty", "kelp", "ledge", "mango",
    "north", "ocean", "petal", "quartz", "reef", "slate", "tidal", "umber", "vista", "willow", "xenon", "yarrow",
    "zephyr", "acorn", "birch", "coral", "dune", "eagle", "fern", "glade", "heath", "iris", "juniper", "krill",
    "lotus", "maple", "nectar",
];

/// What the calls of a project have to do with what was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Labels {
    /// They are what was asked for.
    Right,
    /// They are drawn by lot.
    Shuffled,
}

/// Puts sessions into the journal, of a project of this name.
pub(super) async fn record(stack: &Stack, project: &str, sessions: usize, labels: Labels) -> Result<()> {
    let mut lot = Lot(7);
    for number in 0..sessions {
        let folder = repository(&stack.scratch().join("code").join(project)).await?;
        let mut session = Conversation::new(folder);
        // Which sessions are held out, and in which order the others are learnt, goes by their ids: the same in every run.
        session.session_id = format!("{project}-{number:03}");
        let started = session.event("SessionStart", json!({"source": "startup", "model": OPEN_MODEL}));
        // Through the hook, which says which repository the folder is.
        stack.hook(&started).await?;
        for turn in 0..8 {
            let around = [WORDS[lot.draw(WORDS.len())], WORDS[lot.draw(WORDS.len())]].join(" ");
            if turn == 7 {
                stack.post_bare(&session.asks(&format!("{} {around}", emphatic("thanks")))).await?;
                stack.post_bare(&session.stops("Welcome.")).await?;
                continue;
            }
            let (asked, subject) = ((number + turn) % 4, SUBJECTS[(number + turn / 4 + turn) % SUBJECTS.len()]);
            let prompt = format!("{} {} {around}", emphatic(VERBS[asked]), emphatic(subject));
            stack.post_bare(&session.asks(&prompt)).await?;
            let called = match labels {
                Labels::Right => (asked, subject),
                Labels::Shuffled => (lot.draw(4), SUBJECTS[lot.draw(SUBJECTS.len())]),
            };
            stack.post_bare(&session.calls(call(called)).1).await?;
            stack.post_bare(&session.stops("Done.")).await?;
        }
        stack.post_bare(&session.ends()).await?;
    }
    stack.drained().await
}

/// Said often: two layers of random numbers look at everything alike, and hear what is said once only after long training.
fn emphatic(word: &str) -> String {
    [word; 32].join(" ")
}

fn call((asked, subject): (usize, &str)) -> Call {
    let path = format!("src/{subject}.rs");
    let output = json!({"stdout": "ok", "stderr": "", "interrupted": false, "isImage": false});
    let (tool, input, response) = match asked {
        0 => ("Read", json!({"file_path": path}), json!({"type": "text", "file": {"filePath": path, "content": "ok"}})),
        1 => ("Bash", json!({"command": format!("cargo test {subject}")}), output),
        2 => ("Grep", json!({"pattern": subject}), json!({"content": "ok"})),
        _ => ("Glob", json!({"pattern": format!("**/{subject}*")}), json!({"filenames": [path]})),
    };
    Call { tool, input, outcome: Outcome::Response(response) }
}

/// The tools that the agent offers.
pub(super) fn offered() -> Value {
    let tool = |name: &str, argument: &str| {
        let parameters =
            json!({"type": "object", "properties": {argument: {"type": "string"}}, "required": [argument]});
        json!({"type": "function", "function": {"name": name, "description": name, "parameters": parameters}})
    };
    json!([tool("Read", "file_path"), tool("Bash", "command"), tool("Grep", "pattern"), tool("Glob", "pattern")])
}

/// Numbers that are the same in every run (Numerical Recipes' generator).
struct Lot(u64);

impl Lot {
    fn draw(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % below
    }
}
