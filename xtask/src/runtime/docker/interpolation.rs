//! `${NAME}`, `${NAME:-default}` and `${NAME:?message}` in compose.yaml, as Compose reads them. Only the form with braces
//! is known: a bare `$NAME` is more often a mistake than meant.

use std::collections::BTreeMap;

/// Why a text could not be completed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InterpolationError {
    #[error("`{text}`: `$` must be followed by `{{NAME}}`, or by another `$` to stand for itself")]
    Syntax { text: String },
    #[error("`{text}`: {name} has no value{message}")]
    Missing { text: String, name: String, message: String },
}

/// Puts the variables' values in. An empty value counts as none, as the colon in the operators says.
pub(crate) fn interpolate(text: &str, variables: &BTreeMap<String, String>) -> Result<String, InterpolationError> {
    let syntax = || InterpolationError::Syntax { text: text.to_owned() };
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        result.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            result.push('$');
            rest = after;
            continue;
        }
        let inside = rest.strip_prefix('{').ok_or_else(syntax)?;
        let (expression, after) = inside.split_once('}').ok_or_else(syntax)?;
        result.push_str(&value_of(expression, text, variables)?);
        rest = after;
    }
    result.push_str(rest);
    Ok(result)
}

fn value_of(expression: &str, text: &str, variables: &BTreeMap<String, String>) -> Result<String, InterpolationError> {
    let (name, operator) = match expression.split_once(':') {
        Some((name, operator)) => (name, Some(operator)),
        None => (expression, None),
    };
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
        return Err(InterpolationError::Syntax { text: text.to_owned() });
    }
    if let Some(value) = variables.get(name).filter(|value| !value.is_empty()) {
        return Ok(value.clone());
    }
    let message = match operator.and_then(|operator| operator.split_at_checked(1)) {
        Some(("-", default)) => return Ok(default.to_owned()),
        Some(("?", message)) => format!(": {message}"),
        Some(_) => return Err(InterpolationError::Syntax { text: text.to_owned() }),
        None => String::new(),
    };
    Err(InterpolationError::Missing { text: text.to_owned(), name: name.to_owned(), message })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let variables = BTreeMap::from([("PORT".to_owned(), "4000".to_owned()), ("EMPTY".to_owned(), String::new())]);
        assert_eq!(interpolate(text, &variables).map_err(|error| error.to_string()), Ok(expected.to_owned()));
    }

    fn check_refused(text: &str, expected: &str) {
        let error = interpolate(text, &BTreeMap::new()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn puts_values_and_defaults_in() {
        check("127.0.0.1:${PORT:-3377}:3377", "127.0.0.1:4000:3377");
        check("${USER:-10001:10001}", "10001:10001");
        check("${EMPTY:-default} and ${PORT}", "default and 4000");
        check("a $$ stands for itself", "a $ stands for itself");
        check("no variable", "no variable");
    }

    #[test]
    fn says_what_is_missing_and_why_it_is_needed() {
        check_refused("${HOME}/spool", "HOME has no value");
        check_refused("${HOME:?run up first}", "HOME has no value: run up first");
    }

    #[test]
    fn refuses_what_compose_would_read_otherwise() {
        check_refused("$NAME", "must be followed by");
        check_refused("${NAME", "must be followed by");
        check_refused("${NAME:+other}", "must be followed by");
        check_refused("${na me}", "must be followed by");
    }
}
