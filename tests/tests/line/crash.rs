//! The server is killed while hooks run, again and again: nothing is lost, nothing is there twice.

use anyhow::{Context, Result};
use tests::conversation::{Conversation, Event};
use tests::hook;
use tests::stack::Stack;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const KILLS: usize = 20;
const AGENTS: usize = 3;
const CALLS: usize = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn loses_and_doubles_no_event_when_the_server_is_killed_under_load() -> Result<()> {
    let mut stack = Stack::stopped().await?;
    let mut expected: Vec<(String, Vec<String>)> = Vec::new();
    for round in 0..KILLS {
        stack.start_server().await?;
        let sessions: Vec<_> = (0..AGENTS).map(|_| session(&stack)).collect();
        let (done, mut progress) = mpsc::unbounded_channel();
        let mut agents = JoinSet::new();
        for (session_id, ids, events) in sessions {
            let home = stack.home().root().to_owned();
            let done = done.clone();
            expected.push((session_id, ids));
            agents.spawn(async move {
                for event in &events {
                    hook::send(&home, hook::CLAUDE_CODE, event).await?;
                    // The other end is dropped once the server is dead.
                    let _ = done.send(());
                }
                anyhow::Ok(())
            });
        }
        // At another point of the load each time.
        for _ in 0..=(round * 7) % (AGENTS * CALLS - 2) {
            progress.recv().await.context("the load ended before the kill")?;
        }
        stack.kill_server().await?;
        drop(progress);
        while let Some(agent) = agents.join_next().await {
            agent??;
        }
    }
    stack.start_server().await?;
    stack.drained().await?;
    check(&stack, &expected).await
}

async fn check(stack: &Stack, expected: &[(String, Vec<String>)]) -> Result<()> {
    assert!(stack.rejected()?.is_empty());
    let calls = stack.journal().tool_calls().await?;
    assert_eq!(calls.len(), KILLS * AGENTS * CALLS, "none is missing and none is there twice");
    for (session, ids) in expected {
        let kept: Vec<_> = calls.iter().filter(|call| call.session == *session).map(|call| &call.tool_use_id).collect();
        assert_eq!(kept, ids.iter().collect::<Vec<_>>(), "session {session} is whole and in its order");
    }
    assert_eq!(stack.journal().prompts().await?.len(), KILLS * AGENTS);
    assert_eq!(stack.journal().sessions().await?.len(), KILLS * AGENTS);
    assert_eq!(stack.journal().linkage_ratio().await?, Some(1.0));
    Ok(())
}

fn session(stack: &Stack) -> (String, Vec<String>, Vec<Event>) {
    let mut session = Conversation::new(stack.scratch());
    let mut events = vec![session.asks("Work on, whatever happens")];
    let mut ids = Vec::new();
    for number in 0..CALLS {
        let (id, event) = session.runs(&format!("make step-{number}"));
        ids.push(id);
        events.push(event);
    }
    (session.session_id, ids, events)
}
