//! A server that is stopped for a while, so that nobody writes into its database: hooks keep what happens meanwhile in the spool.

use anyhow::Result;
use memory::home::Home;

use super::lock::Lock;
use super::server::Server;
use super::{Installation, RuntimeKind, docker};
use crate::files;
use crate::install::layout;
use crate::output::Printer;

/// The server is stopped, and the lock is held by which a hook would start it again. Dropped, the server stays stopped until somebody
/// starts it.
#[derive(Debug)]
pub struct Stopped<'a> {
    installation: &'a Installation,
    home: &'a Home,
    ran: bool,
    _alone: Lock,
}

impl<'a> Stopped<'a> {
    /// Stops the server, if it runs, and leaves its database running.
    pub async fn server(installation: &'a Installation, home: &'a Home, printer: &Printer) -> Result<Self> {
        files::create_private_folder(&home.run())?;
        let alone = Lock::acquire(&layout::lock_file(home), printer).await?;
        Self::holding(alone, installation, home).await
    }

    /// The same for a caller who holds the lock already.
    pub async fn holding(alone: Lock, installation: &'a Installation, home: &'a Home) -> Result<Self> {
        let ran = if installation.runtime == RuntimeKind::Docker {
            docker::stop_server(&docker::require().await?, home).await?
        } else {
            let server = Server::of_home(home);
            let ran = !server.processes().is_empty();
            server.stop().await?;
            ran
        };
        Ok(Self { installation, home, ran, _alone: alone })
    }

    /// Starts the server again, if it ran.
    pub async fn start(self, printer: &Printer) -> Result<()> {
        if self.ran { super::start(self.installation, self.home, printer).await } else { Ok(()) }
    }
}
