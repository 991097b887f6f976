//! Where the tools' database comes from: the server hands over its own pool; the program finds the installation's, at the
//! first call and again after a reinstallation, so that nothing stands between its start and the handshake.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use memory::home::{Home, HomeError};
use memory::settings::{self, Settings};
use memory::store::{self, Db, Way};

use crate::error::ToolError;

#[derive(Clone)]
pub(crate) enum Database {
    Open(Db),
    Installed(Arc<Installation>),
}

impl Database {
    /// The pool; it may not have reached its database yet.
    pub(crate) fn pool(&self) -> Result<Db, ToolError> {
        match self {
            Self::Open(db) => Ok(db.clone()),
            Self::Installed(installation) => installation.pool(),
        }
    }
}

/// What `cargo xtask up` left for this user, read when it is needed.
pub struct Installation {
    home: Result<Home, HomeError>,
    opened: Mutex<Option<Opened>>,
}

struct Opened {
    url: String,
    db: Db,
}

impl Installation {
    /// Finds the home and reads nothing in it. Having none is an error of the first tool call, not of the handshake.
    pub fn locate() -> Self {
        Self::new(Home::locate())
    }

    /// An installation in a known place.
    pub fn at(home: Home) -> Self {
        Self::new(Ok(home))
    }

    fn new(home: Result<Home, HomeError>) -> Self {
        Self { home, opened: Mutex::new(None) }
    }

    pub(crate) fn home(&self) -> Result<&Home, ToolError> {
        self.home.as_ref().map_err(|error| ToolError::NotInstalled(error.to_string()))
    }

    /// A pool over the URL that the home holds now; `up` may have changed it while this process ran.
    fn pool(&self) -> Result<Db, ToolError> {
        let home = self.home()?;
        let (way, url) = match home.pooled_database_url().map_err(ToolError::Home)? {
            Some(url) => (Way::Pooled, Ok(url)),
            None => (Way::Direct, home.database_url()),
        };
        let url = url.map_err(|error| match error {
            HomeError::Read { path, source } if source.kind() == io::ErrorKind::NotFound => {
                ToolError::NotInstalled(format!("there is no `{}`", path.display()))
            }
            error => ToolError::Home(error),
        })?;
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(opened) = opened.as_ref().filter(|opened| opened.url == url) {
            return Ok(opened.db.clone());
        }
        // A file that cannot be understood is the server's to complain of.
        let limits = Settings::read(&settings::folder(home)).unwrap_or_default().database;
        let db = store::connect_lazily(&url, way, limits)?;
        *opened = Some(Opened { url, db: db.clone() });
        Ok(db)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_that_nothing_is_installed_where_there_is_no_database_url() {
        let folder = tempfile::tempdir().unwrap();
        let error = Installation::at(Home::at(folder.path())).pool().unwrap_err();
        assert!(matches!(error, ToolError::NotInstalled(_)), "{error}");
    }

    #[tokio::test]
    async fn follows_a_database_url_that_changes() {
        let folder = tempfile::tempdir().unwrap();
        let write = |url: &str| std::fs::write(folder.path().join("database-url"), url).unwrap();
        let installation = Installation::at(Home::at(folder.path()));
        let port = |db: Db| db.connect_options().get_port();
        write("postgres://u:p@127.0.0.1:1001/m\n");
        assert_eq!(port(installation.pool().unwrap()), 1001);
        write("postgres://u:p@127.0.0.1:1002/m\n");
        assert_eq!(port(installation.pool().unwrap()), 1002);
        std::fs::write(folder.path().join("pooled-database-url"), "postgres://u:p@127.0.0.1:6432/m\n").unwrap();
        assert_eq!(port(installation.pool().unwrap()), 6432);
        std::fs::remove_file(folder.path().join("pooled-database-url")).unwrap();
        write("nonsense");
        assert!(matches!(installation.pool(), Err(ToolError::Connect(_))));
    }
}
