//! Cuts out what a person marked `<private>`.

use super::PRIVATE_MARK;

pub(super) const OPEN: &str = "<private>";
const CLOSE: &str = "</private>";

/// The text without its private parts; one that is never closed reaches to the end.
pub(super) fn cut(text: &str) -> String {
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

/// Like `str::find`, whatever the case of the mark's letters.
fn find(text: &str, mark: &str) -> Option<usize> {
    let mark = mark.as_bytes();
    text.as_bytes().windows(mark.len()).position(|window| window.eq_ignore_ascii_case(mark))
}

#[cfg(test)]
mod tests {
    use super::super::clean;

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
}
