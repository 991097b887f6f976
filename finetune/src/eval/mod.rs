//! Whether a tuned model is better than its base: both answer the turns of a dataset's sealed test split, side by side, and each answer
//! is held against the recorded one.
//!
//! A row becomes turns (`replay`), an answer is read (`parse`) and judged (`score`), the judgements become rates with intervals
//! (`bootstrap`, `measure`), and the rates a verdict (`gate`). The engine that answers is not part of it: whoever can generate
//! implements [`Generate`]. What each number means, and what none of them measures, is in docs/finetune/eval.md.

pub mod ab;
mod ast;
mod bootstrap;
#[cfg(test)]
mod fake;
mod gate;
mod grounding;
mod loops;
mod measure;
mod metrics;
mod parse;
mod replay;
mod report;
mod run;
mod score;

pub use bootstrap::Estimate;
pub use gate::{Evidence, Thresholds, Verdict, judge};
pub use measure::{Measured, Side, ToolCounts, ToolUse};
pub use metrics::{Facts, METRICS, Metric};
pub use parse::{Parsed, parse};
pub use report::{Chains, Evaluation, MultiTurn};
pub use run::{Options, evaluate};

/// Whatever answers a prompt.
pub trait Generate {
    /// Greedy: the most likely token each time. `prompt` is rendered text; stops at the end of turn or at `max_tokens`.
    fn generate(&mut self, prompt: &str, max_tokens: usize) -> anyhow::Result<Answer>;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// Without the token that ends the turn.
    pub text: String,
    /// Whether the model ended its turn by itself.
    pub stopped: bool,
    pub tokens: usize,
}

/// The two sides of a comparison.
pub struct Engines<'a> {
    pub base: &'a mut dyn Generate,
    pub tuned: &'a mut dyn Generate,
}
