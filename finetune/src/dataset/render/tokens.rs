//! The tokenizer of the base model.

use std::ops::Range;

use tokenizers::Tokenizer;

#[derive(Debug)]
pub struct Tokens(Tokenizer);

/// A text as tokens, and which bytes of the text each is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded {
    pub ids: Vec<u32>,
    pub bytes: Vec<Range<usize>>,
}

impl Tokens {
    pub fn of(json: &[u8]) -> Result<Self, tokenizers::Error> {
        Tokenizer::from_bytes(json).map(Self)
    }

    /// As a server does: the control tokens in the text are taken for such, and none is added.
    pub fn encode(&self, text: &str) -> Result<Encoded, tokenizers::Error> {
        let encoding = self.0.encode(text, false)?;
        let bytes = encoding.get_offsets().iter().map(|(start, end)| *start..*end).collect();
        Ok(Encoded { ids: encoding.get_ids().to_vec(), bytes })
    }

    /// How many tokens a text is; more than it could be if it cannot be read at all.
    pub fn count(&self, text: &str) -> usize {
        self.0.encode_fast(text, false).map_or(text.len(), |encoding| encoding.len())
    }

    /// Tokens as text, control tokens too.
    pub fn decode(&self, ids: &[u32]) -> Result<String, tokenizers::Error> {
        self.0.decode(ids, false)
    }

    /// The id of a token by its text.
    pub fn id(&self, token: &str) -> Option<u32> {
        self.0.token_to_id(token)
    }

    /// How many ids have a token.
    pub fn vocabulary(&self) -> usize {
        self.0.get_vocab_size(true)
    }

    /// What was added to the vocabulary: the control tokens.
    pub fn added(&self) -> impl Iterator<Item = String> {
        self.0.get_added_tokens_decoder().into_values().map(|token| token.content)
    }
}
