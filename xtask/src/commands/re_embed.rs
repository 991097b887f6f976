//! `re-embed`: has documents embedded that have no vector of the installed model. The server does the work, in the background; after a
//! change of the model it does so by itself.

use anyhow::{Context, Result};
use memory::home::Home;
use memory::store;

use crate::cli::ReEmbedArgs;
use crate::journal;
use crate::output::{HintExt, Printer};
use crate::runtime::Installation;

pub(super) async fn run(arguments: &ReEmbedArgs, home: &Home, printer: &Printer) -> Result<()> {
    let model = Installation::require(home)?.embedding_model;
    let db = journal::open(home).await?;
    let wanted = (!arguments.all).then_some(model.as_str());
    let jobs = store::enqueue_without_vector(&db, wanted).await.context("cannot have the documents embedded");
    db.close().await;
    let jobs = jobs.hint("run `cargo xtask migrate` if the schema is older than this program")?;
    let others =
        if arguments.all { "the others wait for it already" } else { "the others have one or wait for it already" };
    printer.note(format_args!("{jobs} documents get a vector of {model}; {others}"));
    if jobs > 0 {
        printer.note("The server embeds them in the background; `cargo xtask status` shows how far it is");
    }
    Ok(())
}
