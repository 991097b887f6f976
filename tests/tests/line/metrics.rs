//! What the server tells Prometheus, read by the real one: each number after what it counts has happened, each expression of the
//! dashboard, each alert, and the page that explains them.

use std::collections::BTreeSet;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tests::canaries::canaries;
use tests::conversation::Conversation;
use tests::mcp_client::{OverHttp, OverStdio, Peer};
use tests::prometheus::{self, Prometheus, promtool};
use tests::stack::Stack;
use tests::{settings, wait};

/// In place of Grafana's own variable: the shortest that has two questions in it.
const RATE_INTERVAL: &str = "30s";

#[tokio::test]
async fn counts_what_happened_and_tells_how_things_stand() -> Result<()> {
    let stack = Stack::running().await?;
    let session = worked_session(&stack).await?;
    let page = stack.metrics().await?;
    assert_eq!(number(&page, "agent_memory_linkage_ratio"), Some(1.0));
    assert_eq!(number(&page, "agent_memory_journal_rows{kind=\"tool_calls\"}"), Some(1.0));
    assert_eq!(number(&page, "agent_memory_database_up"), Some(1.0));
    assert!(number(&page, "process_resident_memory_bytes").is_some_and(|bytes| bytes > 1e6));
    assert!(number(&page, "agent_memory_database_size_bytes").is_some_and(|bytes| bytes > 1e6));
    assert_eq!(number(&page, "agent_memory_queue_dead_jobs{kind=\"embed_document\"}"), Some(0.0));
    for way in ["mcp", "rest", "unasked"] {
        let name = format!("agent_memory_recall_duration_seconds_count{{way=\"{way}\"}}");
        assert!(number(&page, &name).is_some_and(|count| count >= 1.0), "{name}\n{page}");
    }

    let stored = number(&page, "agent_memory_events_total{result=\"stored\"}").context("no events")?;
    let bytes = number(&page, "agent_memory_event_bytes_total").context("no bytes")?;
    let (_, event) = session.runs("cargo test");
    stack.post_bare(&event).await?;
    stack.post_bare(&event).await?;
    let nobodys_name = "AxolotlHappened";
    stack.post_bare(&session.event(nobodys_name, json!({}))).await?;
    stack.post("/api/hooks/claude-code").body("no event").send().await?;
    stack.client().get(stack.url("/metrics")).send().await?;
    let page = stack.metrics().await?;
    assert_eq!(number(&page, "agent_memory_events_total{result=\"stored\"}"), Some(stored + 1.0));
    assert!(number(&page, "agent_memory_events_total{result=\"known\"}").is_some_and(|known| known >= 1.0));
    assert_eq!(number(&page, "agent_memory_events_total{result=\"ignored\"}"), Some(1.0));
    assert_eq!(number(&page, "agent_memory_events_total{result=\"malformed\"}"), Some(1.0));
    assert_eq!(number(&page, "agent_memory_refused_requests_total"), Some(1.0));
    assert_eq!(number(&page, "agent_memory_event_bytes_total"), Some(bytes + 2.0 * event.json().len() as f64));
    assert!(!page.contains(nobodys_name), "no name of an agent's stands in a label");
    Ok(())
}

#[tokio::test]
async fn counts_deadlines_that_hooks_missed_once_they_can_tell() -> Result<()> {
    let stack = Stack::running().await?;
    let missed = "agent_memory_hook_deadlines_missed_total";
    assert_eq!(number(&stack.metrics().await?, missed), Some(0.0));
    // As long as there were misses, as hooks leave it.
    std::fs::write(stack.home().root().join("missed-deadlines"), "...")?;
    let mut session = Conversation::new(stack.scratch());
    // On a busy machine a hook may miss another one.
    wait::until("a hook in time", async || {
        stack.hook(&session.asks("what now")).await?;
        Ok(number(&stack.metrics().await?, missed).filter(|count| *count > 0.0))
    })
    .await?;
    let count = number(&stack.metrics().await?, missed);
    assert!(count.is_some_and(|count| (3.0..20.0).contains(&count)), "{count:?}");
    Ok(())
}

#[tokio::test]
async fn tells_what_it_can_without_a_database() -> Result<()> {
    let mut stack = Stack::stopped().await?;
    std::fs::write(stack.home().database_url_file(), "postgres://nobody@127.0.0.1:9/nothing\n")?;
    stack.start_server_without_database().await?;
    let mut session = Conversation::new(stack.scratch());
    stack.hook(&session.asks("what now")).await?;
    let page = stack.metrics().await?;
    assert_eq!(number(&page, "agent_memory_database_up"), Some(0.0));
    assert_eq!(number(&page, "agent_memory_spool_waiting_files"), Some(1.0));
    assert_eq!(number(&page, "agent_memory_linkage_ratio"), None, "what is not known is absent");
    Ok(())
}

#[tokio::test]
async fn a_real_prometheus_understands_everything_and_the_dashboard_has_something_to_show() -> Result<()> {
    if !prometheus::is_installed().await? {
        return Ok(());
    }
    let stack = Stack::running().await?;
    let mut session = worked_session(&stack).await?;
    memory::store::note_backup(stack.database().pool(), true).await?;
    promtool(&["check", "metrics"], &stack.metrics().await?).await?;
    let prometheus = Prometheus::of(&stack).await?;
    prometheus.asked_again(2).await?;
    stack.post_bare(&session.asks(&canaries(7)[0].text)).await?;
    recall(&stack).await?;
    // The tables of the journal are counted seldom, the rest with each question that is five seconds old.
    prometheus.asked_again(8).await?;

    assert_eq!(prometheus.number("up{job=\"agent-memory\"}").await?, Some(1.0));
    let expressions = dashboard_expressions()?;
    assert!(expressions.len() > 20, "{expressions:?}");
    for expression in &expressions {
        let asked = expression.replace("$__rate_interval", RATE_INTERVAL);
        assert!(!prometheus.ask(&asked).await?.is_empty(), "`{expression}` has nothing to show");
    }
    assert!(prometheus.number("increase(agent_memory_redactions_total[1m]) > 0").await?.is_some());
    for expression in alert_expressions()? {
        let firing = prometheus.ask(&expression).await?;
        assert!(firing.is_empty(), "a server that is well: `{expression}` {firing:?}");
    }
    Ok(())
}

#[tokio::test]
async fn dashboard_alerts_and_documentation_speak_of_what_there_is() -> Result<()> {
    let stack = Stack::running().await?;
    worked_session(&stack).await?;
    for succeeded in [true, false] {
        memory::store::note_backup(stack.database().pool(), succeeded).await?;
    }
    let page = stack.metrics().await?;
    let told: BTreeSet<_> =
        page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).map(str::to_owned).collect();
    let base = |name: &str| name.trim_end_matches("_bucket").trim_end_matches("_count").to_owned();
    for expression in dashboard_expressions()?.into_iter().chain(alert_expressions()?) {
        for name in names_in(&expression) {
            assert!(told.contains(&base(&name)), "`{expression}` asks for `{name}`, which there is not");
        }
    }
    let documentation = std::fs::read_to_string(settings::checkout().join("docs/metrics.md"))?;
    let documented: BTreeSet<_> =
        documentation.lines().filter(|line| line.starts_with("| `")).flat_map(names_in).collect();
    assert_eq!(documented, told, "docs/metrics.md has a row for each");
    Ok(())
}

/// A process of its own tells of an answer when it next needs the server.
#[tokio::test]
async fn counts_answers_of_a_process_of_its_own() -> Result<()> {
    let stack = Stack::running().await?;
    let mut peer = OverStdio::start(stack.home().root()).await?;
    peer.initialize().await?;
    for _ in 0..2 {
        peer.call("search", json!({"query": "axolotl"})).await?;
    }
    let count = number(&stack.metrics().await?, "agent_memory_recall_duration_seconds_count{way=\"mcp\"}");
    assert_eq!(count, Some(1.0), "the second is still to be told");
    Ok(())
}

/// A session with a prompt, a call and an answer, and questions about it by each way in.
async fn worked_session(stack: &Stack) -> Result<Conversation> {
    let mut session = Conversation::new(stack.scratch());
    // Past the hook program, which on a busy machine may leave an event to the spool, and so to a later moment.
    stack.post_bare(&session.starts()).await?;
    stack.post_bare(&session.asks("Why does the axolotl not build?")).await?;
    stack.post_bare(&session.runs("cargo build --package axolotl").1).await?;
    stack.post_bare(&session.stops("It builds now.")).await?;
    recall(stack).await?;
    Ok(session)
}

async fn recall(stack: &Stack) -> Result<()> {
    let question = json!({"query": "axolotl build"});
    stack.post("/api/observations/search").json(&question).send().await?.error_for_status()?;
    OverHttp::connect(stack).await?.call("search", question).await.map(drop)
}

fn number(page: &str, series: &str) -> Option<f64> {
    page.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse().ok())
}

fn names_in(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    words.filter(|word| word.starts_with("agent_memory_") || word.starts_with("process_")).map(str::to_owned).collect()
}

fn dashboard_expressions() -> Result<Vec<String>> {
    let file = settings::checkout().join("compose/grafana/dashboards/agent-memory.json");
    let dashboard: Value = serde_json::from_str(&std::fs::read_to_string(file)?)?;
    let panels = dashboard["panels"].as_array().context("no panels")?;
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    targets.map(|target| Ok(target["expr"].as_str().context("a target without an expression")?.to_owned())).collect()
}

fn alert_expressions() -> Result<Vec<String>> {
    let file = settings::checkout().join("compose/prometheus/alerts.yml");
    let alerts: Value = yaml_serde::from_str(&std::fs::read_to_string(file)?)?;
    let rules = alerts["groups"][0]["rules"].as_array().context("no rules")?;
    rules.iter().map(|rule| Ok(rule["expr"].as_str().context("a rule without an expression")?.to_owned())).collect()
}
