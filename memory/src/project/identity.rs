//! A project as an event names it, before it has a row: by which keys it is found, and whose they are.

use super::{Instance, remote_key};
use crate::access::Who;

/// A project before it has a row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProjectIdentity {
    /// Whose checkout it is.
    pub who: Who,
    /// `remote:<host>/<path>`, `git:<common folder>`, `worktree:<folder>`, `folder:<folder>`, `name:<name>` or `unfiled:`.
    pub key: String,
    pub name: String,
    pub root: Option<String>,
    /// The normalised remote, which holds no credentials.
    pub remote_url: Option<String>,
    pub place: Place,
}

impl ProjectIdentity {
    /// The same as somebody's own: by its keys they alone find it.
    #[must_use]
    pub fn of(self, who: Who) -> Self {
        Self { who, key: who.own(&self.key), place: self.place.of(who), ..self }
    }

    /// By what one that is shared is found by everyone. A path is another folder on every machine; a remote is the same repository.
    pub(crate) fn shared_key(&self) -> Option<String> {
        self.remote_url.as_deref().map(remote_key)
    }
}

/// By what else a project can be found.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Place {
    /// Nothing but its key.
    None,
    /// A folder outside any repository. It may lie where a repository or its worktree was, nearest first.
    Folder { above: Vec<String> },
    /// A worktree that is a project of its own.
    Worktree { root_key: String },
    /// A repository on a disk.
    Repository(RepositoryPlace),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RepositoryPlace {
    /// `git:<common folder>`: whichever repository lies there now.
    pub common_key: String,
    /// The same with the time the repository was made: this one, whatever lies there later.
    pub instance_key: Option<String>,
    /// `folder:<top folder of the working tree>`.
    pub root_key: String,
    pub instance: Instance,
    pub is_worktree: bool,
}

impl Place {
    fn of(self, who: Who) -> Self {
        match self {
            Self::None => Self::None,
            Self::Folder { above } => Self::Folder { above: above.iter().map(|key| who.own(key)).collect() },
            Self::Worktree { root_key } => Self::Worktree { root_key: who.own(&root_key) },
            Self::Repository(place) => Self::Repository(RepositoryPlace {
                common_key: who.own(&place.common_key),
                instance_key: place.instance_key.map(|key| who.own(&key)),
                root_key: who.own(&place.root_key),
                ..place
            }),
        }
    }
}
