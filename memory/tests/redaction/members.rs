//! Values that are taken out because of the names of their members, and those that stay though their names speak of secrets.

use memory::redact::{clean, clean_json};
use serde_json::{Value, json};

fn cleaned(mut value: Value) -> Value {
    clean_json(&mut value);
    value
}

fn check_gone(value: &Value) {
    for text in super::strings(&cleaned(value.clone())) {
        assert!(text.contains("‹redacted:"), "{value} -> {text}");
    }
}

fn check_kept(value: &Value) {
    assert_eq!(&cleaned(value.clone()), value);
    let text = value.to_string();
    assert_eq!(clean(&text), text);
}

#[test]
fn a_secret_name_is_enough() {
    for name in [
        "password",
        "db_password",
        "passwd",
        "api_key",
        "apiKey",
        "client_secret",
        "secret",
        "PGPASSWORD",
        "passphrase",
    ] {
        for value in ["hunter2", "swordfish", "correct horse battery staple", "a\"b\\c", "12345"] {
            check_gone(&json!({name: value}));
        }
    }
    for value in ["Bearer abcdefgh", "Basic dXNlcjpwdw", "abcdefghijkl"] {
        check_gone(&json!({"Authorization": value}));
    }
    check_gone(&json!({"password": 123_456}));
    check_gone(&json!({"passwords": {"password": ["swordfish", "hunter2"]}}));
    assert_eq!(cleaned(json!({"name": "DB_PASSWORD", "value": "swordfish"}))["value"], "‹redacted:password›");
}

#[test]
fn a_secret_name_is_enough_in_json_within_a_string_at_any_depth() {
    let mut text = json!({"user": "dev", "password": "swordfish"}).to_string();
    for _ in 0..4 {
        let value = cleaned(json!({"body": text}));
        assert!(!value.to_string().contains("swordfish"), "{value}");
        assert!(value.to_string().contains("dev"), "{value}");
        text = json!({"body": text, "more": 1}).to_string();
    }
}

#[test]
fn keeps_placeholders_and_what_is_no_value() {
    for value in [
        json!(""),
        json!(null),
        json!(true),
        json!("null"),
        json!("xxx"),
        json!("********"),
        json!("<your key>"),
        json!("${DB_PASSWORD}"),
        json!("$DB_PASSWORD"),
        json!("{{ vault_password }}"),
        json!("%DB_PASSWORD%"),
        json!("DB_PASSWORD"),
        json!("changeme"),
        json!("your-password-here"),
        json!("string"),
        json!("Enter your password"),
        json!("process.env.DB_PASSWORD"),
        json!("password"),
    ] {
        check_kept(&json!({"password": value}));
    }
    check_kept(
        &json!({"max_tokens": 4096, "tokens": ["a", "b"], "key": "ArrowUp", "token": "identifier", "author": "Ada"}),
    );
    check_kept(
        &json!({"key": "items/2024/01/report.csv", "sort_key": "created_at", "nextPageToken": "CAUQAA2b3c4d5e6f7g8h9"}),
    );
    check_kept(
        &json!({"type": "object", "properties": {"password": {"type": "string"}}, "required": ["password", "token"]}),
    );
}
