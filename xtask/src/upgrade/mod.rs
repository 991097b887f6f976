//! Before a newer schema is brought in, which no older program can take back: everything is backed up. And the programs from before are
//! kept until the new ones have proven that they run (`former`), or come back (`roll_back`).

pub mod former;
mod roll_back;

use anyhow::{Context, Result};
use memory::home::Home;
use memory::settings::{self, Settings};
use memory::store;

use crate::backup::{self, Made, Origin, Target, Wanted};
use crate::output::{HintExt, Printer};

pub use former::Former;
pub use roll_back::{Changed, roll_back, undo};

/// Makes a backup if the database that runs has an older schema than this program brings. One that does not run is not looked at; the
/// caller starts it first where it can.
pub async fn back_up_first(home: &Home, printer: &Printer) -> Result<Option<Made>> {
    let Ok(target) = Target::open(home, printer).await else { return Ok(None) };
    let Some(found) = target.schema_version().await? else { return Ok(None) };
    let known = store::known_schema_version();
    if found >= known {
        return Ok(None);
    }
    let step = printer.step(format!("Backing up before the schema goes from {found} to {known}"));
    // Settings that cannot be read are told of by the server; the backup goes where it goes without them.
    let settings = Settings::read(&settings::folder(home)).unwrap_or_default().backup;
    let label = "before-upgrade".parse().expect("small letters and hyphens");
    let wanted = Wanted { settings: &settings, origin: Origin::Manual, label: Some(label) };
    let made = backup::make(&target, wanted)
        .await
        .context("nothing was changed: there is no backup to go back to")
        .hint("mend that, and run `cargo xtask up` again")?;
    step.done(format!("Backed up before the upgrade: {}", made.path.display()));
    Ok(Some(made))
}

/// The schema of the database as it is; unknown where it does not answer.
pub async fn schema_version(home: &Home, printer: &Printer) -> Option<i64> {
    Target::open(home, printer).await.ok()?.schema_version().await.ok()?
}
