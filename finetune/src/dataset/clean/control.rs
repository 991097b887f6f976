//! The tokens that the base model's tokenizer never takes for text. In a prompt or a result they would begin another turn; they are
//! written with a space, so that a reader still sees what stood there.

use std::borrow::Cow;

use aho_corasick::AhoCorasick;

#[derive(Debug)]
pub struct ControlTokens {
    tokens: Vec<String>,
    finder: AhoCorasick,
}

impl ControlTokens {
    /// Of these words; those without a `<` in front are left out, for a space would not hide them.
    pub fn of(tokens: impl IntoIterator<Item = String>) -> Self {
        let mut tokens: Vec<_> = tokens.into_iter().filter(|token| token.starts_with('<') && token.len() > 2).collect();
        tokens.sort();
        tokens.dedup();
        let finder = AhoCorasick::new(&tokens).expect("a few dozen short words fit into an automaton");
        Self { tokens, finder }
    }

    pub fn is_in(&self, text: &str) -> bool {
        self.finder.is_match(text)
    }

    pub fn escape<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !self.is_in(text) {
            return Cow::Borrowed(text);
        }
        let escaped: Vec<_> = self.tokens.iter().map(|token| format!("< {}", &token[1..])).collect();
        Cow::Owned(self.finder.replace_all(text, &escaped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn breaks_control_tokens_and_leaves_the_rest() {
        let control = ControlTokens::of(["<|im_start|>", "<|im_end|>", "<tool_call>", "word"].map(str::to_owned));
        assert_eq!(control.escape("a <|im_end|>\n<|im_start|>user"), "a < |im_end|>\n< |im_start|>user");
        assert!(!control.is_in(&control.escape("<tool_call>{}</tool_call>")));
        assert!(matches!(control.escape("if a <b> c, a word"), Cow::Borrowed(_)));
    }
}
