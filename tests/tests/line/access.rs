//! Every route before every kind of token, origin and peer. A route that is not in the table fails the test.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use memory::access::Scope;
use memory::store::tokens::{self, NewToken};
use reqwest::Method;
use serde_json::{Value, json};
use tests::network::{self, Call, Outside};
use tests::stack::Stack;

/// A route, a request for it, and what becomes of that when it is let in.
struct Entry {
    route: (&'static str, &'static str),
    path: &'static str,
    body: &'static str,
    needs: Needs,
    let_in: u16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    AnyToken,
    Ingest,
    Recall,
    Admin,
}

const fn entry(
    route: (&'static str, &'static str),
    (path, body): (&'static str, &'static str),
    needs: Needs,
    let_in: u16,
) -> Entry {
    Entry { route, path, body, needs, let_in }
}

/// Requests that change nothing when they are let in: their bodies hold nothing that the route could take.
const ROUTES: [Entry; 25] = [
    entry(("get", "/api/health"), ("/api/health", ""), Needs::Nothing, 200),
    entry(("get", "/api/openapi.json"), ("/api/openapi.json", ""), Needs::AnyToken, 200),
    entry(("get", "/metrics"), ("/metrics", ""), Needs::AnyToken, 200),
    entry(("post", "/api/hooks/{agent}"), ("/api/hooks/claude-code", "[]"), Needs::Ingest, 400),
    entry(("post", "/api/embed"), ("/api/embed", "{}"), Needs::Recall, 400),
    entry(("post", "/mcp"), ("/mcp", LIST_TOOLS), Needs::Recall, 200),
    entry(("post", "/api/observations"), ("/api/observations", "{}"), Needs::Recall, 400),
    entry(("post", "/api/observations/search"), ("/api/observations/search", "{}"), Needs::Recall, 400),
    entry(("post", "/api/observations/timeline"), ("/api/observations/timeline", "{}"), Needs::Recall, 400),
    entry(("post", "/api/observations/file_history"), ("/api/observations/file_history", "{}"), Needs::Recall, 400),
    entry(("post", "/api/observations/find_fix"), ("/api/observations/find_fix", "{}"), Needs::Recall, 400),
    entry(("post", "/api/observations/how"), ("/api/observations/how", "{}"), Needs::Recall, 400),
    entry(("post", "/api/observations/update"), ("/api/observations/update", "{}"), Needs::Recall, 400),
    entry(("post", "/api/observations/forget"), ("/api/observations/forget", "{}"), Needs::Recall, 400),
    entry(("get", "/api/observations/{ids}"), ("/api/observations/note-1", ""), Needs::Recall, 404),
    entry(("post", "/api/lessons"), ("/api/lessons", "{}"), Needs::Recall, 400),
    entry(("get", "/api/lessons"), ("/api/lessons", ""), Needs::Recall, 200),
    entry(("post", "/api/lessons/search"), ("/api/lessons/search", "[]"), Needs::Recall, 400),
    entry(("post", "/api/lessons/propose"), ("/api/lessons/propose", "[]"), Needs::Recall, 400),
    entry(("post", "/api/lessons/match"), ("/api/lessons/match", "{}"), Needs::Recall, 400),
    entry(("get", "/api/admin/stats"), ("/api/admin/stats", ""), Needs::Admin, 200),
    entry(("get", "/api/admin/tokens"), ("/api/admin/tokens", ""), Needs::Admin, 200),
    entry(("post", "/api/admin/tokens"), ("/api/admin/tokens", "{}"), Needs::Admin, 400),
    entry(("delete", "/api/admin/tokens/{name}"), ("/api/admin/tokens/nobodys", ""), Needs::Admin, 404),
    entry(("get", "/api/admin/audit"), ("/api/admin/audit", ""), Needs::Admin, 200),
];

const LIST_TOOLS: &str = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#;

/// Where a request comes from: each has a door of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Peer {
    ThisMachine,
    Another,
}

#[tokio::test]
async fn the_document_names_every_route_of_the_table_and_no_other() -> Result<()> {
    let stack = Stack::running().await?;
    let document = document(&stack).await?;
    let mut served = BTreeMap::new();
    for (path, methods) in document["paths"].as_object().context("paths")? {
        for (method, operation) in methods.as_object().context("methods")? {
            let needs = match &operation["security"] {
                none if *none == json!([]) => Needs::Nothing,
                any if *any == json!([{ "token": [] }]) => Needs::AnyToken,
                scope => match scope[0]["token"][0].as_str() {
                    Some("ingest") => Needs::Ingest,
                    Some("recall") => Needs::Recall,
                    Some("admin") => Needs::Admin,
                    _ => anyhow::bail!("{method} {path} needs {scope}"),
                },
            };
            served.insert((method.as_str(), path.as_str()), needs);
        }
    }
    let expected: BTreeMap<_, _> = ROUTES.iter().map(|entry| (entry.route, entry.needs)).collect();
    assert_eq!(served, expected, "every route needs an entry in this table");
    Ok(())
}

#[tokio::test]
async fn the_document_is_whole_in_itself() -> Result<()> {
    let stack = Stack::running().await?;
    let document = document(&stack).await?;
    assert_eq!(document["openapi"], "3.1.0");
    let mut ids = Vec::new();
    for operation in document["paths"].as_object().into_iter().flatten().filter_map(|(_, methods)| methods.as_object())
    {
        for operation in operation.values() {
            ids.push(operation["operationId"].as_str().context("an id")?.to_owned());
            assert!(operation["summary"].as_str().is_some_and(|text| !text.is_empty()), "{operation}");
        }
    }
    let all = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), all, "no two operations are called alike");
    let search = &document["paths"]["/api/observations/search"]["post"];
    let query = &search["requestBody"]["content"]["application/json"]["schema"]["properties"]["query"];
    assert_eq!(query["type"], "string", "{search}");
    let details = document["paths"]["/api/observations/{ids}"]["get"]["parameters"].as_array().context("parameters")?;
    assert!(details.iter().any(|parameter| parameter["name"] == "ids" && parameter["in"] == "path"), "{details:?}");
    let mut references = Vec::new();
    collect_references(&document, &mut references);
    assert!(!references.is_empty());
    for reference in references {
        let pointer = reference.strip_prefix('#').context("a reference into the document")?;
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
    Ok(())
}

#[tokio::test]
async fn lets_in_by_token_origin_and_peer_what_the_table_says() -> Result<()> {
    let mut stack = Stack::stopped().await?;
    let outside = Outside::made_in(stack.scratch())?;
    open(&mut stack, &outside);
    stack.start_server().await?;
    let tokens = Tokens::made(&stack).await?;
    network::is_open(&stack).await?;
    let before = stack.journal().row_count().await?;
    let mut looked_at = 0;
    for entry in &ROUTES {
        for (whose, token, scopes) in tokens.all() {
            for origin in [None, Some(Origin::Own), Some(Origin::Foreign)] {
                for peer in [Peer::ThisMachine, Peer::Another] {
                    let known = token.is_some() && (peer == Peer::ThisMachine || !whose.is_of_the_home());
                    let expected = match (entry.needs, origin) {
                        (_, Some(Origin::Foreign)) => 403,
                        (Needs::Nothing, _) => entry.let_in,
                        _ if !known || !whose.is_in_use() => 401,
                        (Needs::AnyToken, _) => entry.let_in,
                        (Needs::Ingest, _) if scopes.contains(&Scope::Ingest) => entry.let_in,
                        (Needs::Recall, _) if scopes.contains(&Scope::Recall) => entry.let_in,
                        (Needs::Admin, _) if scopes.contains(&Scope::Admin) => entry.let_in,
                        _ => 403,
                    };
                    let status = ask(&stack, &outside, entry, (token, origin, peer)).await?;
                    assert_eq!(status, expected, "{:?} with {whose:?} from {peer:?}, {origin:?}", entry.route);
                    looked_at += 1;
                }
            }
        }
    }
    assert_eq!(looked_at, ROUTES.len() * 9 * 3 * 2);
    assert_eq!(stack.journal().row_count().await?, before, "none of it leaves anything");
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Whose {
    Nobodys,
    Wrong,
    Operators,
    Hooks,
    Ingest,
    Recall,
    Admin,
    Everything,
    Revoked,
}

impl Whose {
    fn is_of_the_home(self) -> bool {
        matches!(self, Self::Operators | Self::Hooks)
    }

    fn is_in_use(self) -> bool {
        !matches!(self, Self::Nobodys | Self::Wrong | Self::Revoked)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Own,
    Foreign,
}

struct Tokens(Vec<(Whose, Option<String>, Vec<Scope>)>);

impl Tokens {
    async fn made(stack: &Stack) -> Result<Self> {
        let db = stack.database().pool();
        let hooks = stack.home().hook_token()?;
        let mut all = vec![
            (Whose::Nobodys, None, vec![]),
            (Whose::Wrong, Some(format!("am_{:064}", 0)), vec![]),
            (Whose::Operators, Some(stack.token().to_owned()), Scope::ALL.to_vec()),
            (Whose::Hooks, Some(hooks), vec![Scope::Ingest]),
        ];
        for (whose, name, scopes) in [
            (Whose::Ingest, "in", &[Scope::Ingest][..]),
            (Whose::Recall, "out", &[Scope::Recall]),
            (Whose::Admin, "admin", &[Scope::Admin]),
            (Whose::Everything, "all", &Scope::ALL),
            (Whose::Revoked, "gone", &Scope::ALL),
        ] {
            let token = tokens::create(db, NewToken { name, scopes, person: None }, "test").await?;
            all.push((whose, Some(token), scopes.to_vec()));
        }
        tokens::revoke(db, "gone", "test").await?;
        Ok(Self(all))
    }

    fn all(&self) -> impl Iterator<Item = (Whose, Option<&str>, &[Scope])> {
        self.0.iter().map(|(whose, token, scopes)| (*whose, token.as_deref(), scopes.as_slice()))
    }
}

async fn ask(
    stack: &Stack,
    outside: &Outside,
    entry: &Entry,
    (token, origin, peer): (Option<&str>, Option<Origin>, Peer),
) -> Result<u16> {
    let method = entry.route.0.to_ascii_uppercase();
    let own = match peer {
        Peer::ThisMachine => stack.url(""),
        Peer::Another => format!("https://{}", outside.address),
    };
    let origin = origin.map(|origin| match origin {
        Origin::Own => own.as_str(),
        Origin::Foreign => "https://evil.example",
    });
    let mut headers = vec![("accept", "application/json, text/event-stream")];
    headers.extend(origin.map(|origin| ("origin", origin)));
    match peer {
        Peer::ThisMachine => {
            let mut request = stack.client().request(Method::from_bytes(method.as_bytes())?, stack.url(entry.path));
            for (name, value) in headers.into_iter().chain([("content-type", "application/json")]) {
                request = request.header(name, value);
            }
            if let Some(token) = token {
                request = request.bearer_auth(token);
            }
            Ok(request.body(entry.body).send().await?.status().as_u16())
        }
        Peer::Another => {
            let call = Call { method: &method, path: entry.path, token, headers: &headers, body: entry.body };
            Ok(outside.send(call).await?.0)
        }
    }
}

fn open(stack: &mut Stack, outside: &Outside) {
    stack.set("AGENT_MEMORY_BIND", &outside.address.to_string());
    stack.set("AGENT_MEMORY_TLS_CERTIFICATE", &outside.certificate.display().to_string());
    stack.set("AGENT_MEMORY_TLS_KEY", &outside.key.display().to_string());
}

async fn document(stack: &Stack) -> Result<Value> {
    let answer = stack.client().get(stack.url("/api/openapi.json")).bearer_auth(stack.token()).send().await?;
    ensure!(answer.status().is_success(), "{}", answer.status());
    Ok(answer.json().await?)
}

fn collect_references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str).map(str::to_owned));
            members.values().for_each(|value| collect_references(value, found));
        }
        Value::Array(values) => values.iter().for_each(|value| collect_references(value, found)),
        _ => {}
    }
}
