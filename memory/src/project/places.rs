//! What paths say by their shape alone. Hooks of any system send them to a server of any system, so both separators count
//! everywhere and nothing here looks at a disk.

use super::{ProjectPolicy, folder_key};

const SEPARATORS: [char; 2] = ['/', '\\'];

/// Folders in which agents make worktrees of the repository around them: Claude Code, Codex, Cursor and tools beside them.
const AGENT_WORKTREES: [&str; 5] =
    ["/.claude/worktrees/", "/.codex/worktrees/", "/.cursor/worktrees/", "/.worktrees/", "/.git/worktrees/"];

/// Where systems keep temporary files.
const TEMPORARY: [&str; 8] = [
    "/tmp",
    "/var/tmp",
    "/dev/shm",
    "/private/tmp",
    "/private/var/tmp",
    "/private/var/folders",
    "/var/folders",
    "C:/Windows/Temp",
];

/// More folders than this above another are not asked for.
const MOST_ANCESTORS: usize = 24;

/// A path without separators at its end; the root stays.
pub(super) fn without_end(path: &str) -> &str {
    let trimmed = path.trim_end_matches(SEPARATORS);
    if trimmed.is_empty() { "/" } else { trimmed }
}

/// The name of a file or folder, without the `.git` of a bare repository.
pub(super) fn last_part(path: &str) -> String {
    let part = path.trim_end_matches(SEPARATORS).rsplit(SEPARATORS).next().unwrap_or_default();
    let part = part.strip_suffix(".git").unwrap_or(part);
    if part.is_empty() { "root".to_owned() } else { part.to_owned() }
}

/// The folder that stands for a repository: `/src/widgets` for `/src/widgets/.git` and `/src/widgets/.bare`, and a bare
/// repository's own.
pub(super) fn main_checkout(common_dir: &str) -> &str {
    match parent(common_dir) {
        Some(parent) if matches!(common_dir.rsplit(SEPARATORS).next(), Some(".git" | ".bare")) => parent,
        _ => common_dir,
    }
}

/// Git keeps the repositories of submodules inside that of the project around them.
pub(super) fn is_submodule(common_dir: &str) -> bool {
    let path = slashed(common_dir);
    path.split_once("/.git/").is_some_and(|(_, inside)| inside.starts_with("modules/") || inside.contains("/modules/"))
}

/// Whether a path lies in that folder.
pub(super) fn is_inside(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with(SEPARATORS))
}

/// The folder around an agent's worktree, which is all that is known of it once it is gone.
pub(super) fn agent_worktree_owner(folder: &str) -> Option<&str> {
    let path = slashed(folder);
    let at = AGENT_WORKTREES.iter().filter_map(|inside| path.find(inside)).min().filter(|at| *at > 0)?;
    Some(&folder[..at])
}

/// The keys of a folder and of those above it, nearest first. Folders that are no project by accident are left out but for
/// the first: whoever has a repository in the home folder does not mean everything in it.
pub(super) fn ancestors(folder: &str, policy: &ProjectPolicy) -> Vec<String> {
    let above = std::iter::successors(parent(folder), |folder| parent(folder));
    let above = above.filter(|folder| !is_unfiled_itself(folder, policy));
    std::iter::once(folder).chain(above).take(MOST_ANCESTORS).map(folder_key).collect()
}

/// Whether work in that folder was done nowhere in particular.
pub(super) fn is_unfiled(folder: &str, policy: &ProjectPolicy) -> bool {
    let path = slashed(folder);
    let is_in = |place: &str| path == place || is_inside(&path, place);
    is_unfiled_itself(folder, policy)
        || TEMPORARY.iter().any(|place| is_in(place))
        || policy.temporary.iter().any(|place| is_in(&slashed(place)))
        || path.to_lowercase().contains("/appdata/local/temp")
}

/// The root, a user's home, or the top of a temporary folder.
pub(super) fn is_unfiled_itself(folder: &str, policy: &ProjectPolicy) -> bool {
    let path = slashed(folder);
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let is_home = match parts[..] {
        [] | ["root" | "home" | "Users"] | ["home" | "Users", _] | ["var", "root"] => true,
        [drive] => is_drive(drive),
        [drive, users] | [drive, users, _] => is_drive(drive) && users.eq_ignore_ascii_case("users"),
        _ => false,
    };
    let is_named = |places: &[String]| places.iter().any(|place| slashed(place) == path);
    is_home || TEMPORARY.contains(&path.as_str()) || is_named(&policy.homes) || is_named(&policy.temporary)
}

fn is_drive(part: &str) -> bool {
    matches!(part.as_bytes(), [letter, b':'] if letter.is_ascii_alphabetic())
}

fn parent(path: &str) -> Option<&str> {
    let (parent, _) = path.rsplit_once(SEPARATORS)?;
    (!parent.is_empty()).then_some(parent)
}

fn slashed(path: &str) -> String {
    path.replace('\\', "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn asks_for_the_nearest_folder_first_and_for_no_home() {
        let found = ancestors("/home/dev/widgets/src", &ProjectPolicy::default());
        assert_eq!(found, ["folder:/home/dev/widgets/src", "folder:/home/dev/widgets"]);
        let found = ancestors("C:\\src\\widgets", &ProjectPolicy::default());
        assert_eq!(found, ["folder:C:\\src\\widgets", "folder:C:\\src"]);
    }

    #[test]
    fn knows_the_owner_of_an_agents_worktree() {
        for (folder, owner) in [
            ("/a/widgets/.claude/worktrees/x/src", Some("/a/widgets")),
            ("C:\\a\\widgets\\.claude\\worktrees\\x", Some("C:\\a\\widgets")),
            ("/a/widgets/.worktrees/x", Some("/a/widgets")),
            ("/a/widgets/worktrees/x", None),
            ("/.claude/worktrees/x", None),
        ] {
            assert_eq!(agent_worktree_owner(folder), owner, "{folder}");
        }
    }

    #[test]
    fn knows_the_repositories_of_submodules() {
        for (common_dir, expected) in [
            ("/a/.git/modules/lib", true),
            ("C:\\a\\.git\\modules\\lib", true),
            ("/a/.git/worktrees/tree/modules/lib", true),
            ("/a/.git", false),
            ("/a/modules/lib/.git", false),
        ] {
            assert_eq!(is_submodule(common_dir), expected, "{common_dir}");
        }
    }
}
