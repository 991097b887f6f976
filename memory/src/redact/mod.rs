//! What is never kept: parts that a person marked `<private>`.

const OPEN: &str = "<private>";
const CLOSE: &str = "</private>";

/// What stands where a private part was.
pub const PRIVATE_MARK: &str = "‹private›";

/// Cuts private parts out of a text; one that is never closed reaches to the end.
pub fn clean(text: &str) -> String {
    let mut rest = text;
    let mut out = String::with_capacity(text.len());
    while let Some(start) = find(rest, OPEN) {
        out.push_str(&rest[..start]);
        out.push_str(PRIVATE_MARK);
        let inside = &rest[start + OPEN.len()..];
        rest = find(inside, CLOSE).map_or("", |end| &inside[end + CLOSE.len()..]);
    }
    out.push_str(rest);
    out
}

/// Cleans every string in a JSON value.
pub fn clean_json(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::String(text) if find(text, OPEN).is_some() => *text = clean(text),
        serde_json::Value::Array(items) => items.iter_mut().for_each(clean_json),
        serde_json::Value::Object(members) => members.values_mut().for_each(clean_json),
        _ => {}
    }
}

/// Like `str::find`, whatever the case of the mark's letters.
fn find(text: &str, mark: &str) -> Option<usize> {
    let mark = mark.as_bytes();
    text.as_bytes().windows(mark.len()).position(|window| window.eq_ignore_ascii_case(mark))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cuts_every_private_part() {
        assert_eq!(clean("a <private>b</private> c <PRIVATE>d</Private>e"), "a ‹private› c ‹private›e");
    }

    #[test]
    fn an_unclosed_private_part_reaches_to_the_end() {
        assert_eq!(clean("a <private>b c"), "a ‹private›");
    }

    #[test]
    fn leaves_other_text_alone() {
        assert_eq!(clean("a < b > c"), "a < b > c");
    }

    #[test]
    fn cleans_inside_json() {
        let mut value = json!({"command": ["echo <private>x</private>"]});
        clean_json(&mut value);
        assert_eq!(value, json!({"command": ["echo ‹private›"]}));
    }
}
