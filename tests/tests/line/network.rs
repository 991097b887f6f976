//! The server's door to other machines: when it is open, what it speaks, and under which names it is reached.

use std::process::Stdio;

use anyhow::{Context, Result, bail};
use memory::access::Scope;
use memory::store::tokens::{self, NewToken};
use tests::network::{self, Call, NAME, Outside};
use tests::stack::Stack;
use tests::{operator, programs, wait};
use tokio::net::TcpStream;
use tokio::process::Command;

#[tokio::test]
async fn stays_shut_until_there_is_a_token_for_those_who_come() -> Result<()> {
    let mut stack = Stack::stopped().await?;
    let outside = Outside::made_in(stack.scratch())?;
    set(&stack, &outside)?;
    stack.start_server().await?;
    let why = wait::until("the door's state", async || {
        let network = &stack.health().await?["network"];
        Ok(network["message"].as_str().filter(|why| why.contains("no token")).map(str::to_owned))
    });
    let why = why.await?;
    assert!(why.contains("cargo xtask token create"), "{why}");
    assert!(TcpStream::connect(outside.address).await.is_err(), "nothing listens there");

    let token = token(&stack, &[Scope::Recall]).await?;
    network::is_open(&stack).await?;
    let health = Call { method: "GET", path: "/api/health", token: None, headers: &[], body: "" };
    assert_eq!(outside.send(health).await?.0, 200);
    let list = Call { path: "/api/lessons", token: Some(&token), ..health };
    assert_eq!(outside.send(list).await?.0, 200);
    let own = Call { token: Some(stack.token()), ..list };
    assert_eq!(outside.send(own).await?.0, 401, "the home's token is for this machine");
    // What this machine's programs use is as it was.
    assert!(stack.stats().await?["journal"].is_object());
    Ok(())
}

#[tokio::test]
async fn is_reached_by_its_names_alone_and_by_tls_alone() -> Result<()> {
    let mut stack = Stack::stopped().await?;
    let outside = Outside::made_in(stack.scratch())?;
    set(&stack, &outside)?;
    stack.start_server().await?;
    let token = token(&stack, &[Scope::Recall]).await?;
    network::is_open(&stack).await?;
    for (host, expected) in [(NAME, 200), ("memory.example:8443", 200), ("evil.example", 403), ("example", 403)] {
        let headers = [("host", host)];
        let call = Call { method: "GET", path: "/api/lessons", token: Some(&token), headers: &headers, body: "" };
        assert_eq!(outside.send(call).await?.0, expected, "{host}");
        let tools = r#"{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}"#;
        let headers = [("host", host), ("accept", "application/json, text/event-stream")];
        let call = Call { method: "POST", path: "/mcp", token: Some(&token), headers: &headers, body: tools };
        assert_eq!(outside.send(call).await?.0, expected, "{host} by MCP");
    }
    let plain = stack.client().get(format!("http://{}/api/health", outside.address)).send().await;
    assert!(plain.is_err(), "nothing is said without encryption: {plain:?}");
    Ok(())
}

#[tokio::test]
async fn a_server_that_would_be_open_to_all_does_not_start() -> Result<()> {
    let stack = Stack::stopped().await?;
    let outside = Outside::made_in(stack.scratch())?;
    let (certificate, key) = (outside.certificate.display().to_string(), outside.key.display().to_string());
    let broken = stack.scratch().join("broken.pem").display().to_string();
    std::fs::write(&broken, "no certificate")?;
    let bind = format!("--bind={}", outside.address);
    for (arguments, told, hint) in [
        (vec!["--listen=0.0.0.0:0"], "speaks without encryption", "--behind-loopback"),
        (vec![&*bind], "without TLS", "--tls-certificate"),
        (vec![&*bind, "--tls-certificate", &certificate], "without TLS", "--tls-key"),
        (vec![&*bind, "--tls-certificate", &broken, "--tls-key", &key], "cannot use the certificate", "PEM"),
        (vec![&*bind, "--tls-certificate", "/nowhere", "--tls-key", &key], "cannot use the certificate", "PEM"),
    ] {
        let said = refused(&stack, &arguments).await?;
        assert!(said.contains(told) && said.contains(hint), "{arguments:?}: {said}");
    }
    Ok(())
}

/// By the settings, as an operator does it.
fn set(stack: &Stack, outside: &Outside) -> Result<()> {
    let Outside { address, certificate, key, .. } = outside;
    operator::set(
        stack,
        &format!(
            "[server]\nbind = \"{address}\"\ntls_certificate = \"{}\"\ntls_key = \"{}\"\nhosts = [\"{NAME}\"]\n",
            certificate.display(),
            key.display()
        ),
    )
}

async fn token(stack: &Stack, scopes: &[Scope]) -> Result<String> {
    let new = NewToken { name: "outside", scopes, person: None };
    Ok(tokens::create(stack.database().pool(), new, "test").await?)
}

/// What a server says that must not start.
async fn refused(stack: &Stack, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(programs::server().await?);
    command.env_clear().env("AGENT_MEMORY_HOME", stack.home().root()).args(arguments).kill_on_drop(true);
    let output = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).output();
    let output = tokio::time::timeout(wait::PATIENCE, output).await.context("it goes on running")??;
    if output.status.success() {
        bail!("it ended well");
    }
    Ok(String::from_utf8_lossy(&output.stderr).into_owned())
}
