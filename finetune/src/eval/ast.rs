//! Whether two calls mean the same, as the Berkeley Function Calling Leaderboard compares syntax trees
//! (<https://gorilla.cs.berkeley.edu/blogs/8_berkeley_function_calling_leaderboard.html>), with one recorded call in place of a list of
//! possible answers.

use std::borrow::Cow;

use serde_json::Value;

use crate::dataset::row::Function;

/// `required` are the arguments that the tool's schema asks for. Others that were recorded may be missing; where the schema asks for
/// none, none may.
pub(super) fn matches(given: &Function, recorded: &Function, required: &[String]) -> bool {
    let is_there = |name: &String| given.arguments.contains_key(name);
    let is_complete =
        if required.is_empty() { recorded.arguments.keys().all(is_there) } else { required.iter().all(is_there) };
    let is_recorded = |(name, value): (&String, &Value)| {
        recorded.arguments.get(name).is_some_and(|recorded| is_same(value, recorded))
    };
    given.name == recorded.name && is_complete && given.arguments.iter().all(is_recorded)
}

fn is_same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::String(one), Value::String(other)) => plain(one) == plain(other),
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| is_same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            let is_in_other =
                |(name, value): (&String, &Value)| other.get(name).is_some_and(|other| is_same(value, other));
            one.len() == other.len() && one.iter().all(is_in_other)
        }
        _ => one == other,
    }
}

/// A text with one space where there is any whitespace, and a path without what says nothing: `./a//b/` is `a/b`.
fn plain(text: &str) -> Cow<'_, str> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words[..] {
        [path] if path.contains('/') && !path.contains("://") => Cow::Owned(plain_path(path)),
        [word] => Cow::Borrowed(word),
        _ => Cow::Owned(words.join(" ")),
    }
}

fn plain_path(path: &str) -> String {
    let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let root = if path.starts_with('/') { "/" } else { "" };
    let plain = format!("{root}{}", parts.join("/"));
    // The working directory, however it is written.
    if plain.is_empty() { ".".to_owned() } else { plain }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(arguments: &Value) -> Function {
        Function { name: "Read".into(), arguments: arguments.as_object().unwrap().clone() }
    }

    fn check(given: &Value, recorded: &Value, required: &[&str]) -> bool {
        let required: Vec<_> = required.iter().map(|name| (*name).to_owned()).collect();
        matches(&call(given), &call(recorded), &required)
    }

    #[test]
    fn looks_past_how_values_are_spelled() {
        for (one, other) in [
            (json!("./src/a.rs"), json!("src/a.rs")),
            (json!("src//a.rs"), json!("src/./a.rs")),
            (json!("src/"), json!("src")),
            (json!("./"), json!(".")),
            (json!("cargo  test\n-p x"), json!("cargo test -p x")),
            (json!(3), json!(3.0)),
            (json!([1.0, {"a": " b"}]), json!([1, {"a": "b"}])),
        ] {
            assert!(check(&json!({"a": one}), &json!({"a": other}), &["a"]), "{one} {other}");
        }
    }

    #[test]
    fn tells_values_apart() {
        for (one, other) in [
            (json!("/src/a.rs"), json!("src/a.rs")),
            (json!("../a.rs"), json!("a.rs")),
            (json!("https://x/a"), json!("https:/x/a")),
            (json!("a b"), json!("ab")),
            (json!("3"), json!(3)),
            (json!([1]), json!([1, 1])),
            (json!({"a": 1}), json!({"a": 1, "b": 1})),
            (json!({"a": 1}), json!({"b": 1})),
            (json!(true), json!(false)),
        ] {
            assert!(!check(&json!({"a": one}), &json!({"a": other}), &["a"]), "{one} {other}");
        }
    }

    #[test]
    fn asks_for_required_arguments_and_for_none_that_was_not_recorded() {
        let recorded = json!({"path": "a", "limit": 3});
        assert!(check(&json!({"path": "a"}), &recorded, &["path"]), "an optional one may be missing");
        assert!(!check(&json!({"limit": 3}), &recorded, &["path"]));
        assert!(!check(&json!({"path": "a", "offset": 1}), &recorded, &["path"]));
        assert!(!check(&json!({}), &recorded, &[]), "where none is required, all that were recorded are");
        assert!(check(&json!({}), &json!({}), &[]));
    }

    #[test]
    fn asks_for_the_same_tool() {
        let other = Function { name: "Bash".into(), arguments: serde_json::Map::new() };
        assert!(!matches(&other, &call(&json!({})), &[]));
    }
}
