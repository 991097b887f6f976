//! `images`: builds the container images, the server's from a release build of this checkout.

use anyhow::Result;

use crate::install::build;
use crate::output::Printer;
use crate::repository::Repository;
use crate::runtime::docker::{self, Rebuild, ServerSource};

pub(super) async fn run(printer: &Printer) -> Result<()> {
    let repository = Repository::locate()?;
    let engine = docker::require().await?;
    let target_folder = build::build(&repository, printer).await?;
    let program = target_folder.join("release").join("agent-memory-server");
    let source = ServerSource { repository: repository.root(), program: &program };
    let images = docker::images(&engine, printer, source, Rebuild::IfStale).await?;
    printer.data(format_args!("{}\n{}", images.postgres, images.server));
    Ok(())
}
