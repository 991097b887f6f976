//! Which project an event belongs to. A project is a repository: its normalised remote if it has one, else its git common
//! folder, else the folder itself. Worktrees share their repository's common folder and so its project.
//!
//! This module names what an event says of itself; which row that means, also after a remote was renamed or a checkout moved,
//! is found in `store::projects`. `inspect` asks a folder on this machine, `exclusion` knows what must not be recorded.

mod exclusion;
mod identity;
mod inspect;
mod places;
mod remote;

pub use exclusion::{EXCLUDE_FILE, Exclusions, REPOSITORY_FILE};
pub use identity::{Place, ProjectIdentity, RepositoryPlace};
pub use inspect::inspect;
pub use remote::normalise as normalise_remote;

use std::fmt;
use std::str::FromStr;

use crate::access::Who;
use crate::event::bounded_id;

/// The key of the one project for what was done nowhere in particular: in the home folder or in a temporary one.
pub(crate) const UNFILED_KEY: &str = "unfiled:";

/// Where an agent worked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checkout {
    pub folder: Option<String>,
    pub git: Option<GitCheckout>,
}

/// What the hook read from `.git`, as it found it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitCheckout {
    pub root: String,
    /// The repository's own folder, which all its worktrees share.
    pub common_dir: String,
    pub remote_url: Option<String>,
    pub branch: Option<String>,
    pub head: Option<String>,
    /// Whether this is a linked worktree; `None` from hooks that do not say, then the paths decide.
    pub is_worktree: Option<bool>,
    pub instance: Instance,
}

/// What tells a repository from another one at the same place, and the same one at another place: facts of the file
/// `description` in its common folder, which is written when a repository is made and then never again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Instance {
    /// When the file was written, in microseconds since 1970.
    pub created_at_us: Option<i64>,
    /// Its number in the file system. Two repositories that a script makes at once can have one time, but not one number.
    pub inode: Option<i64>,
}

/// Whether the worktrees of a repository are one project.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum WorktreePolicy {
    /// A worktree belongs to its repository.
    #[default]
    Shared,
    /// Each linked worktree is a project of its own.
    Separate,
}

impl fmt::Display for WorktreePolicy {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Shared => "shared",
            Self::Separate => "separate",
        })
    }
}

#[derive(Debug, thiserror::Error)]
#[error("`{0}` is no way to file worktrees: expected `shared` or `separate`")]
pub struct UnknownWorktreePolicy(String);

impl FromStr for WorktreePolicy {
    type Err = UnknownWorktreePolicy;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "shared" => Ok(Self::Shared),
            "separate" => Ok(Self::Separate),
            _ => Err(UnknownWorktreePolicy(text.to_owned())),
        }
    }
}

/// What decides the project of a checkout beside the checkout itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProjectPolicy {
    pub worktrees: WorktreePolicy,
    /// Folders that are no project by themselves, such as the user's own: exactly these.
    pub homes: Vec<String>,
    /// The same with everything in them.
    pub temporary: Vec<String>,
}

impl ProjectPolicy {
    /// The usual policy, with the home and the temporary folder of this process.
    pub fn of_process(worktrees: WorktreePolicy) -> Self {
        let home = crate::home::Surroundings::of_process().home;
        let homes = home.map(|home| places::without_end(&home.to_string_lossy()).to_owned()).into_iter().collect();
        let temporary = places::without_end(&std::env::temp_dir().to_string_lossy()).to_owned();
        Self { worktrees, homes, temporary: vec![temporary] }
    }
}

impl Checkout {
    pub fn project(&self, policy: &ProjectPolicy) -> ProjectIdentity {
        match &self.git {
            None => folder_identity(self.folder.as_deref(), policy),
            Some(git) if policy.worktrees == WorktreePolicy::Separate && git.is_worktree() => {
                let root = places::without_end(&git.root);
                ProjectIdentity {
                    who: Who::Operator,
                    key: bounded_id(format!("worktree:{root}")),
                    name: places::last_part(root),
                    root: Some(root.to_owned()),
                    remote_url: None,
                    place: Place::Worktree { root_key: folder_key(root) },
                }
            }
            Some(git) => git.identity(),
        }
    }

    /// The worktree's folder, if this is not the repository's main checkout.
    pub fn worktree(&self) -> Option<&str> {
        self.git.as_ref().filter(|git| git.is_worktree()).map(|git| git.root.as_str())
    }
}

impl GitCheckout {
    fn identity(&self) -> ProjectIdentity {
        let place = RepositoryPlace {
            common_key: bounded_id(format!("git:{}", self.common_dir)),
            instance_key: self.instance.created_at_us.map(|at| bounded_id(format!("git:{}#{at}", self.common_dir))),
            root_key: folder_key(&self.root),
            instance: self.instance,
            is_worktree: self.is_worktree(),
        };
        let main = if place.is_worktree { places::main_checkout(&self.common_dir) } else { &self.root };
        let remote = self.remote_url.as_deref().and_then(remote::normalise);
        let key = match &remote {
            Some(remote) => remote_key(remote),
            None => place.instance_key.clone().unwrap_or_else(|| place.common_key.clone()),
        };
        ProjectIdentity {
            who: Who::Operator,
            key,
            name: places::last_part(remote.as_deref().unwrap_or(main)),
            root: Some(main.to_owned()),
            remote_url: remote,
            place: Place::Repository(place),
        }
    }

    /// Without the hook's word: a working tree away from a repository that is no submodule's.
    fn is_worktree(&self) -> bool {
        self.is_worktree.unwrap_or_else(|| {
            !places::is_submodule(&self.common_dir)
                && places::main_checkout(&self.common_dir) != self.root
                && !places::is_inside(&self.common_dir, &self.root)
        })
    }
}

/// The key of a normalised remote.
pub(crate) fn remote_key(remote: &str) -> String {
    bounded_id(format!("remote:{remote}"))
}

/// The key of a folder by itself.
pub(crate) fn folder_key(folder: &str) -> String {
    bounded_id(format!("folder:{}", places::without_end(folder)))
}

/// The key of whichever repository has its own folder there.
pub(crate) fn common_key(common_dir: &str) -> String {
    bounded_id(format!("git:{}", places::without_end(common_dir)))
}

/// A name for what lies at that path.
pub(crate) fn name_of(path: &str) -> String {
    places::last_part(path)
}

/// What was done nowhere in particular.
pub(crate) fn unfiled() -> ProjectIdentity {
    ProjectIdentity {
        who: Who::Operator,
        key: UNFILED_KEY.into(),
        name: "(unfiled)".into(),
        root: None,
        remote_url: None,
        place: Place::None,
    }
}

fn folder_identity(folder: Option<&str>, policy: &ProjectPolicy) -> ProjectIdentity {
    let folder = places::without_end(folder.unwrap_or("/"));
    // What is gone may have been a worktree that an agent made inside a repository.
    let owner = places::agent_worktree_owner(folder);
    let place = Place::Folder { above: places::ancestors(folder, policy) };
    match owner.unwrap_or(folder) {
        nowhere if places::is_unfiled(nowhere, policy) => ProjectIdentity { place, ..unfiled() },
        folder => ProjectIdentity {
            who: Who::Operator,
            key: folder_key(folder),
            name: places::last_part(folder),
            root: Some(folder.to_owned()),
            remote_url: None,
            place,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkout(root: &str, common_dir: &str, remote_url: Option<&str>) -> Checkout {
        let git = GitCheckout {
            root: root.into(),
            common_dir: common_dir.into(),
            remote_url: remote_url.map(str::to_owned),
            ..GitCheckout::default()
        };
        Checkout { folder: Some(format!("{root}/src")), git: Some(git) }
    }

    fn bare(folder: &str) -> ProjectIdentity {
        Checkout { folder: Some(folder.into()), git: None }.project(&ProjectPolicy::default())
    }

    fn project(checkout: &Checkout) -> ProjectIdentity {
        checkout.project(&ProjectPolicy::default())
    }

    #[test]
    fn clones_of_one_remote_are_one_project() {
        let one = project(&checkout("/a/widgets", "/a/widgets/.git", Some("git@example.com:acme/widgets.git")));
        let two = project(&checkout("/b/w2", "/b/w2/.git", Some("https://token@Example.com/acme/widgets")));
        assert_eq!((&one.key, &one.name), (&two.key, &two.name));
        assert_eq!(one.key, "remote:example.com/acme/widgets");
    }

    #[test]
    fn a_worktree_belongs_to_its_repository() {
        let main = checkout("/a/widgets", "/a/widgets/.git", None);
        let tree = checkout("/srv/agent-7", "/a/widgets/.git", None);
        assert_eq!((project(&main).key, project(&main).root), (project(&tree).key, project(&tree).root));
        assert_eq!((main.worktree(), tree.worktree()), (None, Some("/srv/agent-7")));
    }

    #[test]
    fn a_worktree_is_a_project_of_its_own_for_those_who_want_that() {
        let policy = ProjectPolicy { worktrees: WorktreePolicy::Separate, ..ProjectPolicy::default() };
        let tree = checkout("/srv/agent-7", "/a/widgets/.git", Some("git@example.com:acme/widgets.git"));
        assert_eq!(tree.project(&policy).key, "worktree:/srv/agent-7");
        let main = checkout("/a/widgets", "/a/widgets/.git", Some("git@example.com:acme/widgets.git"));
        assert_eq!(main.project(&policy), project(&main));
    }

    #[test]
    fn a_submodule_is_a_project_of_its_own_and_no_worktree() {
        let module = checkout("/a/widgets/lib", "/a/widgets/.git/modules/lib", None);
        assert_eq!((project(&module).name.as_str(), module.worktree()), ("lib", None));
    }

    #[test]
    fn names_a_bare_repository_and_its_worktrees_alike() {
        for (root, common_dir, name) in [
            ("/srv/trees/main", "/srv/widgets.git", "widgets"),
            ("/srv/widgets/main", "/srv/widgets/.bare", "widgets"),
            ("/srv/widgets/main", "/srv/widgets/.git", "widgets"),
        ] {
            let tree = checkout(root, common_dir, None);
            assert_eq!((project(&tree).name.as_str(), tree.worktree()), (name, Some(root)), "{common_dir}");
        }
        let beside_its_files = checkout("/srv/widgets", "/srv/widgets/.bare", None);
        assert_eq!((project(&beside_its_files).name.as_str(), beside_its_files.worktree()), ("widgets", None));
    }

    #[test]
    fn believes_the_hook_before_the_paths() {
        let mut away = checkout("/a/widgets", "/store/widgets-git", None);
        away.git.as_mut().unwrap().is_worktree = Some(false);
        assert_eq!((project(&away).name.as_str(), away.worktree()), ("widgets", None));
    }

    #[test]
    fn tells_two_repositories_at_one_place_apart() {
        let with = |created_at_us| {
            let mut checkout = checkout("/a/widgets", "/a/widgets/.git", None);
            checkout.git.as_mut().unwrap().instance = Instance { created_at_us, inode: None };
            project(&checkout).key
        };
        assert_ne!(with(Some(1)), with(Some(2)));
        assert_eq!(with(None), "git:/a/widgets/.git");
    }

    #[test]
    fn a_bare_folder_is_its_own_project() {
        let project = bare("/home/dev/notes/");
        assert_eq!((project.key.as_str(), project.name.as_str()), ("folder:/home/dev/notes", "notes"));
    }

    #[test]
    fn home_and_temporary_folders_are_one_pseudo_project() {
        let nowhere = Checkout::default().project(&ProjectPolicy::default());
        assert_eq!((nowhere.key.as_str(), nowhere.name.as_str(), nowhere.root), ("unfiled:", "(unfiled)", None));
        for folder in ["/home/dev", "/root/", "/Users/dev", "C:\\Users\\dev", "/", "/tmp", "/tmp/x/y", "/var/tmp/a"] {
            assert_eq!(bare(folder).key, "unfiled:", "{folder}");
        }
        let policy = ProjectPolicy {
            homes: vec!["/data/dev".into()],
            temporary: vec!["/scratch".into()],
            ..ProjectPolicy::default()
        };
        for (folder, key) in [
            ("/data/dev", "unfiled:"),
            ("/data/dev/notes", "folder:/data/dev/notes"),
            ("/scratch/a", "unfiled:"),
            ("/scratchpad", "folder:/scratchpad"),
        ] {
            let checkout = Checkout { folder: Some(folder.into()), git: None };
            assert_eq!(checkout.project(&policy).key, key, "{folder}");
        }
    }

    #[test]
    fn a_worktree_that_an_agent_made_and_removed_belongs_to_the_folder_around_it() {
        for folder in ["/a/widgets/.claude/worktrees/agent-7", "/a/widgets/.claude/worktrees/agent-7/src"] {
            assert_eq!(bare(folder).key, "folder:/a/widgets", "{folder}");
        }
    }
}
