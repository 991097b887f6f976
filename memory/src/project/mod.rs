//! Which project an event belongs to. A project is a repository: its normalised remote if it has one, else its git common
//! folder, else the folder itself. Worktrees share their repository's common folder and so its project.

mod remote;

use crate::event::bounded_id;

/// Where an agent worked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checkout {
    pub folder: Option<String>,
    pub git: Option<GitCheckout>,
}

/// What the hook read from `.git`, as it found it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitCheckout {
    pub root: String,
    /// The repository's own folder, which all its worktrees share.
    pub common_dir: String,
    pub remote_url: Option<String>,
    pub branch: Option<String>,
    pub head: Option<String>,
}

/// A project before it has a row.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ProjectIdentity {
    /// `remote:<host>/<path>`, `git:<common folder>` or `folder:<folder>`.
    pub key: String,
    pub name: String,
    pub root: Option<String>,
    /// The normalised remote, which holds no credentials.
    pub remote_url: Option<String>,
    /// The key it had before it got its remote.
    pub former_key: Option<String>,
}

impl Checkout {
    pub fn project(&self) -> ProjectIdentity {
        let Some(git) = &self.git else { return folder_identity(self.folder.as_deref()) };
        let main_root = main_checkout(&git.common_dir).unwrap_or(&git.root).to_owned();
        match git.remote_url.as_deref().and_then(remote::normalise) {
            Some(remote) => ProjectIdentity {
                key: bounded_id(format!("remote:{remote}")),
                name: last_part(&remote),
                root: Some(main_root),
                remote_url: Some(remote),
                former_key: Some(git_key(git)),
            },
            None => ProjectIdentity {
                key: git_key(git),
                name: last_part(&main_root),
                root: Some(main_root),
                remote_url: None,
                former_key: None,
            },
        }
    }

    /// The worktree's folder, if this is not the repository's main checkout.
    pub fn worktree(&self) -> Option<&str> {
        let git = self.git.as_ref()?;
        (main_checkout(&git.common_dir) != Some(git.root.as_str())).then_some(git.root.as_str())
    }
}

fn git_key(git: &GitCheckout) -> String {
    bounded_id(format!("git:{}", git.common_dir))
}

fn folder_identity(folder: Option<&str>) -> ProjectIdentity {
    let folder = folder.map_or("/", |folder| folder.trim_end_matches(['/', '\\']));
    let folder = if folder.is_empty() { "/" } else { folder };
    ProjectIdentity {
        key: bounded_id(format!("folder:{folder}")),
        name: last_part(folder),
        root: Some(folder.to_owned()),
        remote_url: None,
        former_key: None,
    }
}

/// `/src/widgets` for `/src/widgets/.git`; nothing for a bare repository.
fn main_checkout(common_dir: &str) -> Option<&str> {
    common_dir.strip_suffix("/.git").or_else(|| common_dir.strip_suffix("\\.git"))
}

fn last_part(path: &str) -> String {
    let part = path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next().unwrap_or_default();
    let part = part.strip_suffix(".git").unwrap_or(part);
    if part.is_empty() { "root".to_owned() } else { part.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkout(root: &str, common_dir: &str, remote_url: Option<&str>) -> Checkout {
        Checkout {
            folder: Some(format!("{root}/src")),
            git: Some(GitCheckout {
                root: root.into(),
                common_dir: common_dir.into(),
                remote_url: remote_url.map(str::to_owned),
                branch: None,
                head: None,
            }),
        }
    }

    #[test]
    fn clones_of_one_remote_are_one_project() {
        let one = checkout("/a/widgets", "/a/widgets/.git", Some("git@example.com:acme/widgets.git")).project();
        let two = checkout("/b/w2", "/b/w2/.git", Some("https://token@Example.com/acme/widgets")).project();
        assert_eq!((&one.key, &one.name), (&two.key, &two.name));
        assert_eq!(one.key, "remote:example.com/acme/widgets");
    }

    #[test]
    fn a_worktree_belongs_to_its_repository() {
        let main = checkout("/a/widgets", "/a/widgets/.git", None);
        let tree = checkout("/tmp/agent-7", "/a/widgets/.git", None);
        assert_eq!(main.project(), tree.project());
        assert_eq!((main.worktree(), tree.worktree()), (None, Some("/tmp/agent-7")));
    }

    #[test]
    fn a_bare_folder_is_its_own_project() {
        let project = Checkout { folder: Some("/home/dev/notes/".into()), git: None }.project();
        assert_eq!((project.key.as_str(), project.name.as_str()), ("folder:/home/dev/notes", "notes"));
    }
}
