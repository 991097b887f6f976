//! From a row to the text and the tokens that a model sees: by the base model's own template and tokenizer, never by ones of ours.

mod base;
mod samples;
mod template;
mod tokens;

pub use base::{Base, BaseError, Family, template_of};
pub use samples::{RenderError, Sample, samples};
pub use template::{ChatTemplate, Thinking};
pub use tokens::{Encoded, Tokens};
