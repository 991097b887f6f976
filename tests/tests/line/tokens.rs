//! Tokens as an operator makes, uses and revokes them, here and from afar.

use anyhow::{Context, Result};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tests::operator;
use tests::stack::Stack;

#[tokio::test]
async fn a_token_lives_from_its_making_to_its_revocation() -> Result<()> {
    let stack = Stack::running().await?;
    let home = stack.home();
    let made = operator::must(home, &["token", "create", "ada-laptop", "--scope", "recall", "--person", "ada"]).await?;
    let token = made.trim();
    assert!(token.starts_with("am_") && token.len() == 67, "the token alone is printed");
    assert_eq!(search(&stack, token).await?, StatusCode::BAD_REQUEST, "it is let in");

    let listed = operator::json(&stack, &["token", "list", "--json"]).await?;
    let first = &listed[0];
    assert_eq!((&first["name"], &first["person"]), (&json!("ada-laptop"), &json!("ada")));
    assert_eq!(first["scopes"], json!(["recall"]));
    assert!(first["last_used_at"].is_string() && first["revoked_at"].is_null(), "{first}");
    assert!(!listed.to_string().contains(token), "nobody can read it again");
    let shown = operator::must(home, &["token", "list"]).await?;
    assert!(shown.contains("ada-laptop") && shown.contains("last used"), "{shown}");

    operator::must(home, &["token", "revoke", "ada-laptop"]).await?;
    assert_eq!(search(&stack, token).await?, StatusCode::UNAUTHORIZED, "from that moment on");
    let again = operator::refused(home, &["token", "revoke", "ada-laptop"]).await?;
    assert!(again.contains("there is no token `ada-laptop` that is in use"), "{again}");
    let refused = operator::refused(home, &["token", "create", "ada-laptop", "--scope", "recall"]).await?;
    assert!(refused.contains("called `ada-laptop` already"), "{refused}");

    let log = operator::must(home, &["token", "log"]).await?;
    let created = log.lines().next().context("an entry")?;
    assert!(created.contains("operator  token_created ada-laptop") && created.contains("ada"), "{created}");
    assert!(log.contains("token_revoked ada-laptop") && !log.contains(token), "{log}");
    Ok(())
}

#[tokio::test]
async fn only_the_hash_of_a_token_is_kept() -> Result<()> {
    let stack = Stack::running().await?;
    let made = operator::must(stack.home(), &["token", "create", "ci", "--scope", "ingest,recall"]).await?;
    let token = made.trim();
    let rows: Vec<String> =
        sqlx::query_scalar("select token::text from mem_api_tokens token").fetch_all(stack.database().pool()).await?;
    assert_eq!(rows.len(), 1);
    assert!(!rows[0].contains(&token[3..]), "{rows:?}");
    assert_eq!(search(&stack, token).await?, StatusCode::BAD_REQUEST);
    assert!(!stack.server_output().contains(&token[3..]));
    Ok(())
}

#[tokio::test]
async fn tokens_are_made_and_revoked_from_afar_and_the_log_names_by_whose() -> Result<()> {
    let stack = Stack::running().await?;
    let admin = operator::must(stack.home(), &["token", "create", "chief", "--scope", "admin"]).await?;
    let admin = admin.trim();
    let (tokens, client) = (stack.url("/api/admin/tokens"), stack.client());
    let wanted = json!({ "name": "bob", "scopes": ["recall"], "person": "bob" });
    let answer = client.post(&tokens).bearer_auth(admin).json(&wanted).send().await?;
    assert_eq!(answer.status(), StatusCode::CREATED);
    let made: Value = answer.json().await?;
    let bobs = made["token"].as_str().context("its text")?;
    assert_eq!(search(&stack, bobs).await?, StatusCode::BAD_REQUEST);
    let answer = client.post(&tokens).bearer_auth(bobs).json(&wanted).send().await?;
    assert_eq!(answer.status(), StatusCode::FORBIDDEN, "who may recall may not make tokens");

    for (wrong, told) in [
        (json!({ "name": "x", "scopes": ["everything"] }), "there is no scope `everything`"),
        (json!({ "name": "x", "scopes": [] }), "without a scope"),
        (json!({ "name": "x y", "scopes": ["recall"] }), "is no name"),
        (json!({ "name": "bob", "scopes": ["recall"] }), "already"),
    ] {
        let answer = client.post(&tokens).bearer_auth(admin).json(&wrong).send().await?;
        assert_eq!(answer.status(), StatusCode::BAD_REQUEST, "{wrong}");
        let error: Value = answer.json().await?;
        assert!(error["message"].as_str().is_some_and(|message| message.contains(told)), "{error}");
    }

    let answer = client.delete(format!("{tokens}/bob")).bearer_auth(admin).send().await?;
    assert_eq!(answer.status(), StatusCode::NO_CONTENT);
    assert_eq!(search(&stack, bobs).await?, StatusCode::UNAUTHORIZED);
    let log = client.get(stack.url("/api/admin/audit?limit=2")).bearer_auth(admin).send().await?;
    let log: Value = log.json().await?;
    assert_eq!(log.as_array().map(Vec::len), Some(2));
    assert_eq!((&log[0]["actor"], &log[0]["action"]), (&json!("chief"), &json!("token_revoked")));
    assert_eq!((&log[1]["actor"], &log[1]["subject"]), (&json!("chief"), &json!("bob")));
    Ok(())
}

#[tokio::test]
async fn a_token_is_no_reason_to_lose_an_event_while_the_database_is_away() -> Result<()> {
    let mut stack = Stack::stopped().await?;
    std::fs::write(stack.home().database_url_file(), "postgres://nobody:nothing@127.0.0.1:1/nowhere")?;
    stack.start_server_without_database().await?;
    // Whether it is known cannot be told: not 401, which would call it wrong.
    assert_eq!(search(&stack, &format!("am_{:064}", 0)).await?, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(search(&stack, "not-one-of-ours").await?, StatusCode::UNAUTHORIZED);
    Ok(())
}

/// A search without a query: refused for that by whoever is let in.
async fn search(stack: &Stack, token: &str) -> Result<StatusCode> {
    let request = stack.client().post(stack.url("/api/observations/search")).bearer_auth(token).json(&json!({}));
    Ok(request.send().await?.status())
}
