//! `start`: starts what `up` has installed, without cargo and without the network. The hook runs it after a reboot,
//! through the file `start-command`.

use anyhow::Result;
use memory::home::Home;

use crate::install::layout;
use crate::output::Printer;
use crate::runtime::lock::Lock;
use crate::runtime::{self, Installation};

pub(super) async fn run(home: &Home, printer: &Printer) -> Result<()> {
    let installation = Installation::require(home)?;
    let _alone = Lock::acquire(&layout::lock_file(home), printer).await?;
    runtime::start(&installation, home, printer).await
}
