//! What an agent says that a model must not learn to say: that it is about to do something, and names of things that stand nowhere
//! in the conversation.

use std::sync::LazyLock;

use regex::Regex;

use super::for_each_string;
use crate::dataset::row::Message;

static MONOLOGUE: LazyLock<Regex> = LazyLock::new(|| {
    let start = r"(?i)^(?:(?:ok(?:ay)?|alright|great|perfect|now|good|right)[,.!]?\s+)?(?:let me\b|let's\b|i(?:'ll| will| need to| am going to|'m going to| should)\b|now i\b|next,? i\b|first,? i\b|wait[,.]|hmm\b)";
    Regex::new(start).expect("the pattern is constant")
});

/// Pull requests, issues, commits: each is a fact that only the conversation can have told.
static REFERENCE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?:^|[^\w&#/])#(\d{2,6})\b|\b(?i:PR|pull request|issue)\s+#?(\d{1,6})\b|\b([0-9a-f]{7,40})\b")
        .expect("the pattern is constant")
});

/// Whether a text announces work instead of reporting it.
pub(crate) fn is_monologue(text: &str) -> bool {
    const SHORT: usize = 400;
    text.len() < SHORT && MONOLOGUE.is_match(text.trim_start())
}

/// The numbers of pull requests and issues, and the commits, that a text names.
pub(super) fn references(text: &str) -> Vec<&str> {
    let named = REFERENCE.captures_iter(text).filter_map(|found| {
        let commit = found.get(3).map(|commit| commit.as_str());
        // Seven digits are a number, seven letters a word.
        let is_commit = |text: &&str| {
            text.bytes().any(|byte| byte.is_ascii_digit()) && text.bytes().any(|byte| byte.is_ascii_alphabetic())
        };
        found.get(1).or_else(|| found.get(2)).map(|number| number.as_str()).or_else(|| commit.filter(is_commit))
    });
    named.collect()
}

/// Whether everything that a text refers to stands in what was said before, as a word of its own.
pub(crate) fn is_grounded(text: &str, before: &[Message]) -> bool {
    let mut named = references(text);
    for message in before {
        if named.is_empty() {
            break;
        }
        named.retain(|reference| !is_named(message.content(), reference));
        for argument in message.arguments() {
            for_each_string(argument, &mut |text| named.retain(|reference| !is_named(text, reference)));
        }
    }
    named.is_empty()
}

/// Whether a text has a word; a commit may be named by its beginning.
fn is_named(text: &str, word: &str) -> bool {
    let mut places = text.match_indices(word);
    places.any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        let is_commit = word.len() >= 7;
        before.is_none_or(|c| !c.is_alphanumeric()) && (is_commit || after.is_none_or(|c| !c.is_alphanumeric()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_announcements_from_reports() {
        for text in ["Let me check the tests.", "Now I'll fix it.", "Okay, let me look.", "I need to run this first"] {
            assert!(is_monologue(text), "{text}");
        }
        for text in ["The tests pass now.", "I fixed it: the lock was held twice.", "Letters are sorted by weight."] {
            assert!(!is_monologue(text), "{text}");
        }
    }

    #[test]
    fn finds_what_only_the_conversation_can_have_told() {
        assert_eq!(references("see #123, PR 45 and 1a2b3c4"), ["123", "45", "1a2b3c4"]);
        assert_eq!(references("1234567 defaced &#123; x#12 path/#33"), Vec::<&str>::new());
        let before = [Message::User { content: "git log: 1a2b3c4d5e fix, 1450 lines".into() }];
        assert!(is_grounded("reverted 1a2b3c4d", &before));
        assert!(!is_grounded("merged as #982", &before));
        assert!(!is_grounded("merged as #45", &before), "a part of a number is no number");
        let call =
            [Message::call("Bash", serde_json::Map::from_iter([("command".to_owned(), "gh pr view 45".into())]))];
        assert!(is_grounded("PR 45 is open", &call));
    }
}
