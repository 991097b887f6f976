//! Whose the files are that a container shares with the host. The spool belongs to one user: the hooks' user, as whom the
//! server then runs; or, where that user is root, an unprivileged number, to whom root's hooks give what they write.

use std::path::Path;

use anyhow::{Context, Result};
use memory::home::Home;

/// A user and a group by number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Owner {
    pub uid: u32,
    pub gid: u32,
}

/// As whom a server runs whose user is root: a number that no distribution gives away.
pub(crate) const UNPRIVILEGED: Owner = Owner { uid: 10001, gid: 10001 };
/// `postgres` in both database images.
pub(crate) const POSTGRES: Owner = Owner { uid: 999, gid: 999 };

/// How the server's container and the host's files are matched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Match {
    /// For `user:` in compose.yaml.
    pub container_user: String,
    /// To whom the shared files are given; `None` where the engine maps owners itself (no Unix).
    pub server: Option<Owner>,
    /// To whom the database's password is given; `None` where only root could and the caller is not root.
    pub database: Option<Owner>,
}

/// Decides by who owns the home, which is who installed it.
pub(crate) fn match_with(home: &Home, rootless: bool) -> Result<Match> {
    let owner = owner_of(home.root()).with_context(|| format!("cannot read `{}`", home.root().display()))?;
    Ok(decide(owner, rootless))
}

fn decide(owner: Option<Owner>, rootless: bool) -> Match {
    let number = |owner: Owner| format!("{}:{}", owner.uid, owner.gid);
    match owner {
        None => Match { container_user: number(UNPRIVILEGED), server: None, database: None },
        // There, number 0 inside is the engine's own unprivileged user outside.
        Some(owner) if rootless => Match { container_user: "0:0".to_owned(), server: Some(owner), database: None },
        Some(Owner { uid: 0, .. }) => {
            Match { container_user: number(UNPRIVILEGED), server: Some(UNPRIVILEGED), database: Some(POSTGRES) }
        }
        Some(owner) => Match { container_user: number(owner), server: Some(owner), database: None },
    }
}

#[cfg(unix)]
pub(crate) fn owner_of(path: &Path) -> std::io::Result<Option<Owner>> {
    use std::os::unix::fs::MetadataExt;
    let metadata = std::fs::symlink_metadata(path)?;
    Ok(Some(Owner { uid: metadata.uid(), gid: metadata.gid() }))
}

#[cfg(not(unix))]
pub(crate) fn owner_of(path: &Path) -> std::io::Result<Option<Owner>> {
    std::fs::symlink_metadata(path).map(|_| None)
}

/// Gives a file or a folder with all it holds to a user; what is theirs already is left alone.
pub(crate) fn give_all(path: &Path, owner: Owner) -> Result<()> {
    give(path, owner)?;
    for_each_entry(path, &|entry| give_all(entry, owner))
}

pub(crate) fn give(path: &Path, owner: Owner) -> Result<()> {
    let giving = || format!("cannot give `{}` to the user {}", path.display(), owner.uid);
    // A user's other groups are as good as the first: only who they are counts.
    if owner_of(path).with_context(giving)?.is_none_or(|now| now.uid == owner.uid) {
        return Ok(());
    }
    #[cfg(unix)]
    std::os::unix::fs::lchown(path, Some(owner.uid), Some(owner.gid)).with_context(giving)?;
    Ok(())
}

/// Lets everyone read what lies in a folder. Its home is closed to others, so this opens it to the containers only.
pub(crate) fn let_read_all(path: &Path) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let opening = || format!("cannot make `{}` readable", path.display());
        let metadata = std::fs::symlink_metadata(path).with_context(opening)?;
        let mode = metadata.permissions().mode();
        let wanted = mode | if metadata.is_dir() { 0o555 } else { 0o444 };
        if wanted != mode && !metadata.is_symlink() {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(wanted)).with_context(opening)?;
        }
    }
    for_each_entry(path, &let_read_all)
}

fn for_each_entry(path: &Path, act: &dyn Fn(&Path) -> Result<()>) -> Result<()> {
    if !std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir()) {
        return Ok(());
    }
    let reading = || format!("cannot read `{}`", path.display());
    for entry in std::fs::read_dir(path).with_context(reading)? {
        let entry = entry.with_context(reading)?.path();
        // A spool file may be drained while we look.
        match act(&entry) {
            Err(_) if !entry.exists() => {}
            acted => acted?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_as_the_user_unless_that_is_root() {
        let user = Owner { uid: 1000, gid: 100 };
        let ordinary = decide(Some(user), false);
        assert_eq!((ordinary.container_user.as_str(), ordinary.server), ("1000:100", Some(user)));
        let root = decide(Some(Owner { uid: 0, gid: 0 }), false);
        assert_eq!((root.container_user.as_str(), root.server), ("10001:10001", Some(UNPRIVILEGED)));
        assert_eq!(root.database, Some(POSTGRES));
    }

    #[test]
    fn is_number_0_only_inside_an_engine_that_is_not_root_itself() {
        let user = Owner { uid: 1000, gid: 1000 };
        let rootless = decide(Some(user), true);
        assert_eq!((rootless.container_user.as_str(), rootless.server), ("0:0", Some(user)));
    }

    #[cfg(unix)]
    #[test]
    fn opens_a_folder_for_reading_and_not_for_writing() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let inner = folder.path().join("models");
        std::fs::create_dir(&inner).unwrap();
        std::fs::write(inner.join("model.onnx"), "m").unwrap();
        std::fs::set_permissions(inner.join("model.onnx"), std::fs::Permissions::from_mode(0o600)).unwrap();
        std::fs::set_permissions(&inner, std::fs::Permissions::from_mode(0o700)).unwrap();
        let_read_all(&inner).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&inner), mode(&inner.join("model.onnx"))), (0o755, 0o644));
    }
}
