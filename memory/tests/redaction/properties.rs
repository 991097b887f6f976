//! What holds of any text and any value.

use memory::redact::{clean, clean_json};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Texts that come near what the rules look for.
fn near_secrets() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        prop::sample::select(vec![
            "password",
            "PASSWORD=",
            "--token ",
            "\"secret\": \"",
            "api_key",
            "://",
            ":",
            "@",
            "-----BEGIN ",
            "PRIVATE KEY-----",
            "-----END ",
            "eyJ",
            "Bearer ",
            "Authorization: ",
            "curl ",
            " -u ",
            "mysql ",
            " -p",
            "Cookie: ",
            "sessionid=",
            "‹redacted:",
            "‹private›",
            "›",
            "<private>",
            "</private>",
            "\\\"",
            "\\n",
            "\"",
            "'",
            "\n",
            "é",
            "…",
            "sk-",
            "AKIA",
            "value",
            "name",
            "‹",
        ])
        .prop_map(str::to_owned),
        "[A-Za-z0-9+/=_.-]{1,40}",
        "\\PC{0,6}",
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        near_secrets().prop_map(Value::from),
    ];
    let name = prop_oneof![
        prop::sample::select(vec!["password", "token", "key", "name", "value", "Authorization"])
            .prop_map(str::to_owned),
        near_secrets()
    ];
    leaf.prop_recursive(3, 16, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..4)
                .prop_map(|members| members.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

fn has_the_shape_of(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| has_the_shape_of(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.values().zip(other.values()).all(|(one, other)| has_the_shape_of(one, other))
        }
        // A number that was a secret has become a placeholder.
        (Value::String(_), Value::Number(_)) => true,
        (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn cleaning_twice_changes_nothing(text in near_secrets()) {
        let once = clean(&text).into_owned();
        prop_assert_eq!(clean(&once), once.as_str(), "of {:?}", text);
    }

    #[test]
    fn any_text_can_be_cleaned(text in "\\PC{0,300}") {
        let once = clean(&text).into_owned();
        prop_assert_eq!(clean(&once), once.as_str());
    }

    #[test]
    fn a_value_keeps_its_shape(value in values()) {
        let mut cleaned = value.clone();
        clean_json(&mut cleaned);
        prop_assert!(has_the_shape_of(&cleaned, &value), "{} -> {}", value, cleaned);
        let mut again = cleaned.clone();
        clean_json(&mut again);
        prop_assert_eq!(again, cleaned, "of {}", value);
    }
}

#[test]
fn a_long_text_that_is_all_keywords_is_cleaned_in_time_that_grows_with_its_length() {
    for piece in
        ["eyJ-", "password=\"", "://a:", "-----BEGIN PRIVATE KEY-----", "curl -u ", "\\\"token\\\":", "cookie: a=b; "]
    {
        let time = |bytes: usize| {
            let text = piece.repeat(bytes / piece.len());
            let start = std::time::Instant::now();
            clean(&text);
            start.elapsed()
        };
        time(4096);
        let (short, long) = (time(64 * 1024), time(256 * 1024));
        // Four times as long; a quadratic search would take sixteen times.
        assert!(long < short * 10 + std::time::Duration::from_millis(200), "{piece:?}: {short:?}, then {long:?}");
    }
    let mut deep = json!("x");
    for _ in 0..100 {
        deep = json!({"secret": [deep]});
    }
    clean_json(&mut deep);
}
