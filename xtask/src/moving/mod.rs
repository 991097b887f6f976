//! Moving what is remembered from one runtime to another. The other place is made ready while everything goes on; then the server stops,
//! hooks keep what happens in the spool, everything is copied and compared, and one file says where the installation is from then on. The
//! former database stays as it was. Until that file is written any failure, and any kill, leaves the installation where it is.
//!
//! `place` is the other end, `record` what moves leave behind; the copy itself is a matter of `backup`.

mod place;
mod record;

use anyhow::{Error, Result, anyhow};
use memory::home::Home;

pub use place::{Leaving, Place};
pub use record::{Kept, Record, UnderWay};

use self::place::{Ready, installed_at, make_ready, target};
use crate::backup::{self, Copied, Target};
use crate::files;
use crate::install::layout;
use crate::output::{Printer, headline, hinted};
use crate::runtime::embedded::InstalledPostgres;
use crate::runtime::lock::Lock;
use crate::runtime::stopped::Stopped;
use crate::runtime::{self, Installation, RuntimeKind, docker, moved_home, postgres_url};

/// What a move did.
#[derive(Debug)]
pub struct Moved {
    pub from: String,
    pub to: Installation,
    pub copied: Copied,
}

/// Fails where there is nothing to move, before anything is asked.
pub fn check(place: &Place, home: &Home) -> Result<Installation> {
    moved_home::refuse_copy(home)?;
    let installation = Installation::require(home)?;
    let is_there = match place {
        Place::External(url) => {
            installation.runtime == RuntimeKind::External && postgres_url::place(url) == installation.database
        }
        _ => installation.runtime == place.kind(),
    };
    if is_there {
        return Err(hinted(
            anyhow!("what is remembered lies in {place} already"),
            "`cargo xtask status` shows what runs",
        ));
    }
    // It would go on leading the server to the former database.
    let pooled = home.pooled_database_url_file();
    if pooled.exists() {
        let error = anyhow!("the server reaches its database by a pooler, which knows the present one");
        return Err(hinted(error, format!("remove `{}` first, and write it anew afterwards", pooled.display())));
    }
    Ok(installation)
}

/// Moves the installation's database there.
pub async fn go(place: &Place, installation: &Installation, home: &Home, printer: &Printer) -> Result<Moved> {
    files::create_private_folder(&home.run())?;
    let alone = Lock::acquire(&layout::lock_file(home), printer).await?;
    tidy(home, printer).await?;
    if Installation::require(home)? != *installation {
        let error = anyhow!("another command changed the installation while this one waited for it");
        return Err(hinted(error, "look at `cargo xtask status`, and run it again"));
    }
    start_database(installation, home, printer).await?;
    let ready = make_ready(place, installation, home, printer).await.map_err(|error| left(error, installation))?;
    let to = installed_at(place, installation, &ready.url);
    let way = Way { place, installation, to: &to, ready: &ready, home, printer };
    let mut record = Record::read(home)?;
    record.under_way = Some(UnderWay { from: installation.clone(), to: to.clone(), leaving: ready.leaving });
    record.keep(home)?;
    let copied = match way.take(alone).await {
        Ok(copied) => copied,
        Err(error) => {
            way.take_away().await;
            return Err(left(error, installation));
        }
    };
    record.moved(installation, &to);
    record.keep(home)?;
    if let Err(error) = place::leave(installation.runtime, Leaving::Stopped, home, printer).await {
        printer.warn(format_args!("the former database does not stop: {}", headline(&error)));
    }
    Ok(Moved { from: installation.database.clone(), to, copied })
}

/// Both ends.
struct Way<'a> {
    place: &'a Place,
    installation: &'a Installation,
    to: &'a Installation,
    ready: &'a Ready,
    home: &'a Home,
    printer: &'a Printer,
}

impl Way<'_> {
    /// Stops the server, copies, and starts it at the other end; or starts it again where it was.
    async fn take(&self, alone: Lock) -> Result<Copied> {
        let Self { installation, home, printer, .. } = *self;
        let from = Target::open(home, printer).await?;
        let mut to = target(self.to.clone(), &self.ready.url, home, printer).await?;
        backup::check_way(&from, &mut to).await?;
        if to.installation.runtime == RuntimeKind::External && backup::rows(&to).await? > 0 {
            let error = anyhow!("{} already holds what an agent-memory remembers", self.place);
            let hint = "name an empty database; or, to go on with what is there: `cargo xtask up --database-url URL`, on an installation \
                        that uses a Postgres of yours";
            return Err(hinted(error, hint));
        }
        let stopped = Stopped::holding(alone, installation, home).await?;
        let copied = backup::copy(&from, &mut to).await;
        drop((from, to));
        let moved = match copied {
            Ok(copied) => self.switch().await.map(|()| copied),
            Err(error) => Err(error),
        };
        if moved.is_err()
            && let Err(trouble) = stopped.start(printer).await
        {
            printer.warn(format_args!("the server does not start again: {}", headline(&trouble)));
        }
        moved
    }

    /// From here on the installation is at the other end, unless its server does not get healthy there.
    async fn switch(&self) -> Result<()> {
        let Self { installation, to, home, .. } = *self;
        let url_before = files::read_if_there(&home.database_url_file())?;
        if to.runtime == RuntimeKind::External {
            // First: the other runtimes write it at each start.
            files::write_private(&home.database_url_file(), &format!("{}\n", self.ready.url))?;
        }
        to.write(home)?;
        let Err(error) = self.start().await else { return Ok(()) };
        installation.write(home)?;
        if let Some(url) = url_before {
            files::write_private_if_changed(&home.database_url_file(), &url)?;
        }
        Err(error.context(format!("the server does not get healthy with {}", self.place)))
    }

    async fn start(&self) -> Result<()> {
        let Self { to, home, printer, .. } = *self;
        match to.runtime {
            RuntimeKind::Docker => place::raise_containers(&docker::require().await?, to, home, printer).await?,
            RuntimeKind::Embedded | RuntimeKind::External => runtime::start(to, home, printer).await?,
        }
        layout::write_start_command(home)
    }

    /// After a failure: what was made for the move goes, what was there before stops again.
    async fn take_away(&self) {
        let Self { to, home, printer, .. } = *self;
        let removed = async {
            place::leave(to.runtime, self.ready.leaving, home, printer).await?;
            let mut record = Record::read(home)?;
            record.under_way = None;
            record.keep(home)
        };
        if let Err(error) = removed.await {
            printer.warn(format_args!("{} is left over: {}", self.place, headline(&error)));
        }
    }
}

/// Sees to a move that was killed: before the switch nothing has changed, and what was made for it goes; after it, it is made complete.
pub async fn tidy(home: &Home, printer: &Printer) -> Result<()> {
    let mut record = Record::read(home)?;
    let Some(UnderWay { from, to, leaving }) = record.under_way.take() else { return Ok(()) };
    let installation = Installation::require(home)?;
    if (installation.runtime, &installation.database) == (to.runtime, &to.database) {
        record.moved(&from, &to);
        place::leave(from.runtime, Leaving::Stopped, home, printer).await?;
        printer.note(format_args!("A move to {} had been broken off at its end; it is complete", to.runtime));
    } else {
        place::leave(to.runtime, leaving, home, printer).await?;
        printer.note(format_args!("A move to {} had been broken off; nothing of it is left", to.runtime));
    }
    record.keep(home)
}

/// Removes the databases that moves have kept; gives where they were.
pub async fn forget(home: &Home, printer: &Printer) -> Result<Vec<Kept>> {
    let _alone = Lock::acquire(&layout::lock_file(home), printer).await?;
    tidy(home, printer).await?;
    let mut record = Record::read(home)?;
    let kept = std::mem::take(&mut record.kept);
    for former in &kept {
        place::leave(former.runtime, Leaving::Removed, home, printer).await?;
    }
    record.keep(home)?;
    Ok(kept)
}

async fn start_database(installation: &Installation, home: &Home, printer: &Printer) -> Result<()> {
    match installation.runtime {
        RuntimeKind::Docker => docker::start(&docker::require().await?, home, printer).await,
        RuntimeKind::Embedded => InstalledPostgres::of_home(home)?.start().await.map(drop),
        RuntimeKind::External => Ok(()),
    }
}

/// One clear message: where what is remembered still is.
fn left(error: Error, installation: &Installation) -> Error {
    let error = error
        .context(format!("nothing was moved: what is remembered is still in {}, as it was", installation.database));
    hinted(error, "mend that, and run it again; `cargo xtask status` shows what runs")
}
