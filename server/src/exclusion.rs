//! Keeps out what must not be recorded. The hook sends none of it; an agent that posts by itself, and an older hook, do.

use std::path::{Path, PathBuf};

use memory::event::{Envelope, Reading, read};
use memory::project::{Checkout, Exclusions};

/// The name under which such events are counted.
const REASON: &str = "excluded from capture";

/// Cheap to clone. The list is read again for every event, as the hook does: a change counts at once.
#[derive(Debug, Clone)]
pub(crate) struct Exclusion {
    lists: Option<PathBuf>,
}

impl Exclusion {
    pub(crate) fn listed_in(lists: Option<PathBuf>) -> Self {
        Self { lists }
    }

    /// Reads an event, unless nothing of it may be kept. Looks at the disk.
    pub(crate) fn read(&self, envelope: Envelope) -> Reading {
        match read(envelope) {
            Reading::Kept(event) if self.excludes(&event.checkout) => {
                Reading::Ignored { event: REASON.to_owned(), reason: REASON }
            }
            Reading::AboutToRun(upcoming) if self.excludes(&upcoming.checkout) => {
                Reading::Ignored { event: REASON.to_owned(), reason: REASON }
            }
            reading => reading,
        }
    }

    fn excludes(&self, checkout: &Checkout) -> bool {
        let list = self.lists.as_deref().map(Exclusions::load).unwrap_or_default();
        let git = checkout.git.as_ref();
        let remote = git.and_then(|git| git.remote_url.as_deref());
        // An agent that went elsewhere is where it says; its hook ran where it began.
        let folders = checkout.folder.as_deref().into_iter().chain(git.map(|git| git.root.as_str()));
        folders.map(Path::new).any(|folder| list.excludes(folder, remote))
    }
}
