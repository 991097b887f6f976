//! Base and tuned model, side by side on the sealed test set.

use anyhow::{Result, bail};

use super::Stage;
use super::dataset::test_rows;
use super::record::Done;
use super::run::Run;
use super::watch::Progress;
use crate::dataset::row::{Row, draw};
use crate::engine::Engine;
use crate::eval::{Engines, Options, evaluate};
use crate::hint::hinted;

/// As often as is usual for an interval of 95 % (Efron and Tibshirani 1993).
const RESAMPLES: usize = 2000;

pub(super) fn compare(run: &mut Run<'_>) -> Result<Done> {
    let config = run.start.config;
    let rows = chosen(test_rows(run.start.dataset)?, config.eval.rows, config.train.seed);
    if rows.is_empty() {
        bail!(hinted(
            "the test set is empty: there is nothing to prove the model on",
            "more sessions are needed; `cargo xtask train dataset --stats` shows how the rows are split",
        ));
    }
    let mut base = Engine::load(&run.base_gguf(), &run.base.tokens)?;
    let mut tuned = Engine::load(&run.tuned_gguf(), &run.base.tokens)?;
    let watch = &mut *run.watch;
    let options = Options {
        base_name: run.start.base_name.to_owned(),
        tuned_name: run.name.clone(),
        max_tokens: config.eval.answer_tokens,
        resamples: RESAMPLES,
        seed: config.train.seed,
        thresholds: config.gate.clone(),
        progress: &mut |done, of| watch.progressed(Stage::Eval, &Progress::Counted { done, of }),
    };
    let engines = Engines { base: &mut base, tuned: &mut tuned };
    let evaluation = evaluate(&rows, &run.base, engines, options)?;
    Ok(Done { outputs: Vec::new(), figures: serde_json::to_value(&evaluation)? })
}

/// So many rows, drawn by the seed.
fn chosen(mut rows: Vec<Row>, most: usize, seed: u64) -> Vec<Row> {
    rows.sort_by_key(|row| draw(seed, &["evaluated", &row.id]));
    rows.truncate(most);
    rows
}

/// So many answers prove that another engine loads the file, and stops where it should.
#[cfg(feature = "smoke")]
const SMOKE_PROMPTS: usize = 3;

/// mistralrs, asked the first turns of the test set.
#[cfg(feature = "smoke")]
pub(super) fn smoke(run: &mut Run<'_>) -> Result<Done> {
    use crate::dataset::render::Thinking;
    let rows = chosen(test_rows(run.start.dataset)?, SMOKE_PROMPTS, run.start.config.train.seed);
    let asked = |row: &Row| {
        let first = row.trained.first().copied().unwrap_or_default();
        run.base.template.render(&row.messages[..first], &row.tools, true, Thinking::Off)
    };
    let prompts = rows.iter().map(asked).collect::<Result<Vec<_>, _>>()?;
    let file = run.tuned_gguf();
    let report = tokio::runtime::Handle::current().block_on(crate::smoke::run(&file, &prompts))?;
    Ok(Done { outputs: Vec::new(), figures: serde_json::to_value(report)? })
}

#[cfg(not(feature = "smoke"))]
pub(super) fn smoke(_: &mut Run<'_>) -> Result<Done> {
    bail!("this program was built without mistralrs")
}
