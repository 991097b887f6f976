//! Everything that can be asked of the memory, in every way in which it can be asked.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tests::stack::Stack;

use super::{KEY, ROOT};

pub(super) struct Person {
    pub(super) name: &'static str,
    /// A word in everything that they record.
    pub(super) secret: &'static str,
    pub(super) token: String,
}

/// What is asked of a tool in the tests below, besides what names one document.
fn questions() -> Vec<(&'static str, Value)> {
    vec![
        ("search", json!({"query": "ledger migration", "limit": 50})),
        ("search", json!({"query": "ledger migration", "limit": 50, "file": "ledger.rs"})),
        ("timeline", json!({"anchor": "2999-01-01T00:00:00Z", "depth_before": 50})),
        ("file_history", json!({"path": "ledger.rs"})),
        ("find_fix", json!({"error": "error[E0308]: mismatched ledger types"})),
        ("how", json!({"what": "test the ledger migration"})),
        ("search_lessons", json!({"query": "force push ledger"})),
        ("search_lessons", json!({})),
        ("forget", json!({"query": "ledger migration"})),
    ]
}

/// Those that are asked about one document, or write: see [`check_others_are_not_there`] and what the people of the test record.
const OF_ONE: [&str; 6] = ["get_observations", "timeline", "update_memory", "forget", "save_memory", "create_lesson"];
/// Which looks through a project and shows the proposals in it; there are none here.
const OF_PROJECT: &str = "propose_lessons";

/// By which route a tool is asked.
const ROUTES: [(&str, &str); 13] = [
    ("save_memory", "POST /api/observations"),
    ("search", "POST /api/observations/search"),
    ("timeline", "POST /api/observations/timeline"),
    ("file_history", "POST /api/observations/file_history"),
    ("find_fix", "POST /api/observations/find_fix"),
    ("how", "POST /api/observations/how"),
    ("update_memory", "POST /api/observations/update"),
    ("forget", "POST /api/observations/forget"),
    ("get_observations", "GET /api/observations/{ids}"),
    ("create_lesson", "POST /api/lessons"),
    ("search_lessons", "POST /api/lessons/search"),
    ("search_lessons", "GET /api/lessons"),
    ("propose_lessons", "POST /api/lessons/propose"),
];
/// Those that ask no tool: the lessons that a call fires are checked with the tools; hooks and spool in `whose`; the others tell
/// nothing that was recorded, or are the operator's.
const OTHER_ROUTES: [&str; 11] = [
    "POST /api/lessons/match",
    "POST /api/hooks/{agent}",
    "POST /mcp",
    "GET /api/health",
    "GET /api/openapi.json",
    "POST /api/embed",
    "GET /metrics",
    "GET /api/admin/stats",
    "GET /api/admin/tokens",
    "POST /api/admin/tokens",
    "DELETE /api/admin/tokens/{name}",
];
const AUDIT: &str = "GET /api/admin/audit";

/// What an answer says, and whether it is one.
#[derive(Debug, PartialEq)]
pub(super) struct Answer {
    pub(super) is_refused: bool,
    pub(super) text: String,
}

impl Person {
    /// Asks a tool over `/mcp` and by its routes; all must say the same.
    pub(super) async fn ask_everywhere(&self, stack: &Stack, tool: &str, arguments: &Value) -> Result<Vec<Answer>> {
        let mut answers = vec![self.ask_over_mcp(stack, tool, arguments).await?];
        for (_, route) in ROUTES.iter().filter(|(of, _)| *of == tool) {
            answers.push(self.ask(stack, route, arguments).await?);
        }
        Ok(answers)
    }

    async fn ask(&self, stack: &Stack, route: &str, arguments: &Value) -> Result<Answer> {
        let (method, path) = route.split_once(' ').context("a route has a method")?;
        let ids =
            arguments["ids"].as_array().map(|ids| ids.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(","));
        let path = path.replace("{ids}", &ids.unwrap_or_default());
        let members = arguments.as_object().context("arguments are an object")?;
        let behind: Vec<_> = members
            .iter()
            .filter(|(name, _)| *name != "ids")
            .map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default().replace(' ', "%20")))
            .collect();
        let path = if method == "GET" { format!("{path}?{}", behind.join("&")) } else { path };
        let request = stack.client().request(Method::from_bytes(method.as_bytes())?, stack.url(&path));
        let request = if method == "GET" { request } else { request.json(arguments) };
        let answer = request.bearer_auth(&self.token).send().await?;
        let status = answer.status();
        ensure!(!status.is_server_error() && status != StatusCode::FORBIDDEN, "{route}: {status}");
        Ok(Answer { is_refused: !status.is_success(), text: answer.text().await? })
    }

    async fn ask_over_mcp(&self, stack: &Stack, tool: &str, arguments: &Value) -> Result<Answer> {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                             "params": {"name": tool, "arguments": arguments}});
        let request = stack.client().post(stack.url("/mcp")).bearer_auth(&self.token);
        let answer = request.header("accept", "application/json, text/event-stream").json(&message).send().await?;
        let answer: Value = answer.json().await?;
        let result = &answer["result"];
        ensure!(result.is_object(), "{tool}: {answer}");
        Ok(Answer { is_refused: result["isError"] == true, text: result["content"].to_string() })
    }

    /// What a tool replies, which must not refuse.
    pub(super) async fn must(&self, stack: &Stack, tool: &str, arguments: Value) -> Result<Value> {
        let (_, route) = ROUTES.iter().find(|(of, _)| *of == tool).context("a tool has a route")?;
        let answer = self.ask(stack, route, &arguments).await?;
        ensure!(!answer.is_refused, "{} asked {tool}: {}", self.name, answer.text);
        Ok(serde_json::from_str(&answer.text)?)
    }

    /// One document of each kind in which their own word stands.
    async fn own_documents(&self, stack: &Stack) -> Result<Vec<String>> {
        let mut ids = Vec::new();
        for kind in ["prompt", "call", "note"] {
            let found = self.must(stack, "search", json!({"query": self.secret, "type": kind})).await?;
            let id = found["hits"][0]["id"].as_str().with_context(|| format!("a {kind} in {found}"))?;
            ids.push(id.to_owned());
        }
        Ok(ids)
    }
}

/// A tool or a route that the tests below do not know would be a way round them.
pub(super) async fn check_every_way(stack: &Stack) -> Result<()> {
    let document = stack.client().get(stack.url("/api/openapi.json")).bearer_auth(stack.token());
    let document: Value = document.send().await?.json().await?;
    let mut routes = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().context("paths")? {
        routes.extend(
            operations
                .as_object()
                .context("operations")?
                .keys()
                .map(|method| format!("{} {path}", method.to_uppercase())),
        );
    }
    let known = ROUTES.iter().map(|(_, route)| *route).chain(OTHER_ROUTES).chain([AUDIT]).map(str::to_owned);
    assert_eq!(routes, known.collect::<BTreeSet<_>>());

    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let listed =
        stack.post("/mcp").header("accept", "application/json, text/event-stream").json(&message).send().await?;
    let listed: Value = listed.json().await?;
    let tools = listed["result"]["tools"].as_array().context("tools")?;
    let tools: BTreeSet<_> = tools.iter().filter_map(|tool| tool["name"].as_str().map(str::to_owned)).collect();
    let asked: BTreeSet<_> =
        questions().into_iter().map(|(tool, _)| tool).chain(OF_ONE).chain([OF_PROJECT]).map(str::to_owned).collect();
    assert_eq!(tools, asked);
    let by_route: BTreeSet<_> = ROUTES.iter().map(|(tool, _)| (*tool).to_owned()).collect();
    assert_eq!(tools, by_route);
    Ok(())
}

/// In whatever way somebody asks, they find something of those, and nothing of others.
pub(super) async fn check_each_finds(stack: &Stack, asker: &Person, seen: &[&Person]) -> Result<()> {
    let all = ["zebrafinch", "quokkapod", "nutcracker"];
    let expected: BTreeSet<_> = seen.iter().map(|person| person.secret).collect();
    let told = |text: &str| all.into_iter().filter(|secret| text.contains(secret)).collect::<BTreeSet<_>>();
    for (tool, arguments) in questions() {
        for answer in asker.ask_everywhere(stack, tool, &arguments).await? {
            assert!(!answer.is_refused, "{tool}: {answer:?}");
            let told = told(&answer.text);
            assert!(told.is_subset(&expected), "{} asked {tool} {arguments} and was told {}", asker.name, answer.text);
            assert!(told.contains(asker.secret), "{} asked {tool} {arguments}: {}", asker.name, answer.text);
            if tool == "search" || tool == "search_lessons" {
                assert_eq!(told, expected, "{} asked {tool} {arguments}: {}", asker.name, answer.text);
            }
        }
    }
    let call = json!({"tool_name": "Bash", "tool_input": {"command": "git push --force origin"}});
    let fired = tests::wait::until("the lessons", async || {
        let fired = asker.ask(stack, "POST /api/lessons/match", &call).await?;
        Ok((!told(&fired.text).is_empty()).then_some(fired))
    });
    let fired = fired.await?;
    assert!(told(&fired.text).is_subset(&expected), "{}: {fired:?}", asker.name);
    Ok(())
}

/// What another has recorded is not there, whoever knows its id: refused in the same words as what nobody has recorded.
pub(super) async fn check_others_are_not_there(stack: &Stack, asker: &Person, owner: &Person) -> Result<()> {
    let absent = |id: &str| format!("{}-999999", id.split_once('-').map_or(id, |(kind, _)| kind));
    for id in owner.own_documents(stack).await? {
        let questions = |id: &str| {
            let mut questions = vec![
                ("get_observations", json!({"ids": [id]})),
                ("timeline", json!({"anchor": id})),
                ("forget", json!({"ids": [id]})),
                ("forget", json!({"ids": [id], "dry_run": false})),
            ];
            if id.starts_with("note") {
                questions.push(("update_memory", json!({"id": id, "text": "nothing of it is true"})));
            }
            questions
        };
        for ((tool, theirs), (_, nobodys)) in questions(&id).into_iter().zip(questions(&absent(&id))) {
            let theirs = asker.ask_everywhere(stack, tool, &theirs).await?;
            let nobodys = asker.ask_everywhere(stack, tool, &nobodys).await?;
            for (theirs, nobodys) in theirs.iter().zip(&nobodys) {
                assert!(theirs.is_refused, "{} asked {tool} for {id}: {theirs:?}", asker.name);
                assert_eq!(theirs.text.replace(&id, "ID"), nobodys.text.replace(&absent(&id), "ID"), "{tool}");
            }
        }
        let kept = owner.must(stack, "get_observations", json!({"ids": [id]})).await?;
        assert!(kept.to_string().contains(owner.secret), "{kept}");
    }
    // By its name, its remote, its key and its folder one has what is one's own.
    for name in ["ledger", KEY, ROOT, "git.example/team/ledger"] {
        for answer in asker.ask_everywhere(stack, "search", &json!({"query": "ledger", "project": name})).await? {
            assert!(!answer.text.contains(owner.secret), "{name}: {answer:?}");
        }
    }
    // The operator's key is what each one's own is called too.
    let Some(number) = ["ada", "bob"].iter().position(|name| *name == owner.name) else { return Ok(()) };
    let key = format!("person:{}/{KEY}", number + 1);
    for (tool, arguments) in [
        ("search", json!({"query": "ledger", "project": key})),
        ("propose_lessons", json!({"project": key})),
        ("search_lessons", json!({"project": key})),
    ] {
        for answer in asker.ask_everywhere(stack, tool, &arguments).await? {
            assert!(answer.is_refused && !answer.text.contains(owner.secret), "{tool} {key}: {answer:?}");
        }
    }
    Ok(())
}
