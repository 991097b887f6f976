//! A home that now lies elsewhere than when it was installed. What lies outside of it still knows the former place; and a copy of a home
//! must not use the other one's database.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use memory::home::Home;

use super::Installation;
use crate::files;
use crate::output::hinted;

/// Where the home lay when it was installed, if that was elsewhere.
pub fn former(home: &Home) -> Option<PathBuf> {
    let noted = Installation::read(home).ok().flatten().and_then(|installation| installation.folder);
    noted.or_else(|| of_start_command(home)).filter(|folder| folder != home.root())
}

/// Fails where the home is a copy of an installation that is still there: both would use one database.
pub fn refuse_copy(home: &Home) -> Result<()> {
    let Some(former) = former(home) else { return Ok(()) };
    if !Home::at(&former).installation_file().exists() || is_same(&former, home.root()) {
        return Ok(());
    }
    let error = anyhow!(
        "`{}` is a copy of the installation in `{}`, which is still there",
        home.root().display(),
        former.display()
    );
    let hint = format!(
        "to move it, remove the one that is left over; for a second one, install into an empty folder, and `cargo xtask restore` there a \
         backup from `{}`",
        Home::at(&former).backups().display()
    );
    Err(hinted(error, hint))
}

/// Versions that did not note the folder left at least how they are started.
fn of_start_command(home: &Home) -> Option<PathBuf> {
    let text = files::read_if_there(&home.start_command_file()).ok().flatten()?;
    Some(Path::new(text.lines().next()?).parent()?.parent()?.to_owned())
}

/// One folder may have two names.
fn is_same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::layout;

    #[test]
    fn a_moved_home_knows_where_it_was_and_a_copy_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (Home::at(folder.path().join("old")), Home::at(folder.path().join("new")));
        layout::create(&old).unwrap();
        layout::write_start_command(&old).unwrap();
        std::fs::write(old.installation_file(), "{}").unwrap();
        assert_eq!(former(&old), None);
        refuse_copy(&old).unwrap();

        layout::create(&new).unwrap();
        std::fs::copy(old.start_command_file(), new.start_command_file()).unwrap();
        assert_eq!(former(&new).as_deref(), Some(old.root()));
        let told = crate::output::report(&refuse_copy(&new).unwrap_err());
        assert!(told.contains("is a copy of") && told.contains("hint: "), "{told}");
        std::fs::remove_dir_all(old.root()).unwrap();
        refuse_copy(&new).unwrap();
    }
}
