//! What is trained of a row: the text a server would have sent, and the tokens of it that carry loss.
//!
//! The prefix property: for every trained turn the text before it is, byte for byte, what a server sends to get that turn. Where one
//! rendering of the whole conversation has it for all of them, it is one sample. Where it does not (a hybrid model, told not to
//! think, gets an empty thought before each answer, but only the last answer keeps it), each trained turn is a sample of its own.

use std::ops::Range;

use super::{Base, Thinking};
use crate::dataset::row::Row;

/// How ChatML ends a turn; it is trained on, else the model would not stop.
const END_OF_TURN: &str = "<|im_end|>";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sample {
    pub text: String,
    /// The bytes of the text that carry loss, in order.
    pub trained: Vec<Range<usize>>,
    pub ids: Vec<u32>,
    /// For each id whether it carries loss.
    pub carries_loss: Vec<bool>,
}

#[derive(Debug, thiserror::Error)]
pub enum RenderError {
    #[error("the chat template refuses the row")]
    Template(#[from] minijinja::Error),
    #[error("message {0} is rendered otherwise than a server would send it")]
    Prefix(usize),
    #[error("message {0} has no end")]
    Endless(usize),
    #[error("a token stands across the border of what is trained on, at byte {0}")]
    Border(usize),
    #[error("the text cannot be tokenised: {0}")]
    Tokens(String),
}

impl Sample {
    /// Tokenises a text of which these bytes, in order, carry loss.
    pub fn of(text: String, trained: Vec<Range<usize>>, base: &Base) -> Result<Self, RenderError> {
        let encoded = base.tokens.encode(&text).map_err(|error| RenderError::Tokens(error.to_string()))?;
        let mut carries_loss = Vec::with_capacity(encoded.ids.len());
        let mut spans = trained.iter().peekable();
        for bytes in &encoded.bytes {
            while spans.next_if(|span| span.end <= bytes.start).is_some() {}
            let Some(span) = spans.peek() else {
                carries_loss.push(false);
                continue;
            };
            let is_inside = bytes.start >= span.start && bytes.end <= span.end;
            let is_outside = bytes.end <= span.start;
            // A token that is half of what the server sent and half of the answer exists in no conversation.
            if !is_inside && !is_outside {
                return Err(RenderError::Border(bytes.start));
            }
            carries_loss.push(is_inside);
        }
        Ok(Self { text, trained, ids: encoded.ids, carries_loss })
    }
}

/// The samples of a row: one, or one for each trained turn.
pub fn samples(row: &Row, base: &Base) -> Result<Vec<Sample>, RenderError> {
    if let Some(sample) = whole(row, base)? {
        return Ok(vec![sample]);
    }
    row.trained.iter().map(|index| single(row, *index, base)).collect()
}

fn whole(row: &Row, base: &Base) -> Result<Option<Sample>, RenderError> {
    let text = base.template.render(&row.messages, &row.tools, false, Thinking::Off)?;
    let mut trained = Vec::with_capacity(row.trained.len());
    for index in &row.trained {
        let asked = base.template.render(&row.messages[..*index], &row.tools, true, Thinking::Off)?;
        if !text.starts_with(&asked) {
            return Ok(None);
        }
        trained.push(asked.len()..end_of_turn(&text, asked.len()).ok_or(RenderError::Endless(*index))?);
    }
    Sample::of(text, trained, base).map(Some)
}

fn single(row: &Row, index: usize, base: &Base) -> Result<Sample, RenderError> {
    let asked = base.template.render(&row.messages[..index], &row.tools, true, Thinking::Off)?;
    let mut text = base.template.render(&row.messages[..=index], &row.tools, false, Thinking::Off)?;
    if !text.starts_with(&asked) {
        return Err(RenderError::Prefix(index));
    }
    let end = end_of_turn(&text, asked.len()).ok_or(RenderError::Endless(index))?;
    text.truncate(end);
    Sample::of(text, std::iter::once(asked.len()..end).collect(), base)
}

fn end_of_turn(text: &str, from: usize) -> Option<usize> {
    text[from..].find(END_OF_TURN).map(|at| from + at + END_OF_TURN.len())
}
