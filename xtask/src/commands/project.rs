//! `project`: which projects there are, what a person decides about them, and what must not be recorded.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use memory::access::plain_name;
use memory::home::{Home, Surroundings};
use memory::project::{EXCLUDE_FILE, Exclusions};
use memory::store::{self, Db, ProjectError, ProjectMerge, ProjectOverview, SplitBy, StoreError};
use serde::Serialize;

use crate::cli::{AliasArgs, ExcludeArgs, JsonArgs, MergeArgs, ProjectCommand, ShareArgs, SplitArgs};
use crate::output::{HintExt, Printer, hinted};
use crate::{files, journal};

pub(super) async fn run(command: ProjectCommand, home: &Home, printer: &Printer) -> Result<()> {
    match command {
        ProjectCommand::List(arguments) => list(&arguments, home, printer).await,
        ProjectCommand::Merge(arguments) => merge(&arguments, home, printer).await,
        ProjectCommand::Unmerge(arguments) => undo(arguments.merge, home, printer).await,
        ProjectCommand::Split(arguments) => split(&arguments, home, printer).await,
        ProjectCommand::Alias(arguments) => alias(&arguments, home, printer).await,
        ProjectCommand::Share(arguments) => share(&arguments, home, printer).await,
        ProjectCommand::Unshare(arguments) => unshare(&arguments, home, printer).await,
        ProjectCommand::Exclude(arguments) => exclude(&arguments, home, printer),
        ProjectCommand::Include(arguments) => include(&arguments, home, printer),
    }
}

#[derive(Debug, Serialize)]
struct Listing {
    projects: Vec<ProjectOverview>,
    /// Those that can be undone.
    merges: Vec<ProjectMerge>,
    /// The lines of the list of what is not recorded.
    excluded: Vec<String>,
    /// Those of them that name nothing.
    misunderstood: Vec<String>,
}

async fn list(arguments: &JsonArgs, home: &Home, printer: &Printer) -> Result<()> {
    let db = journal::open(home).await?;
    let read =
        async { Ok::<_, StoreError>((store::list_projects(&db).await?, store::list_project_merges(&db).await?)) };
    let read = read.await.context("cannot read the projects");
    db.close().await;
    let (projects, merges) = read.hint("run `cargo xtask migrate` if the schema is older than this program")?;
    let excluded = excluded_lines(home)?;
    let misunderstood = Exclusions::load(&home.config()).misunderstood;
    let listing = Listing { projects, merges, excluded, misunderstood };
    if arguments.json {
        printer.data(serde_json::to_string_pretty(&listing).context("cannot write the projects as JSON")?);
    } else {
        printer.data(listing.text().trim_end());
    }
    for line in &listing.misunderstood {
        printer.warn(format_args!(
            "`{line}` in {} excludes nothing: write an absolute folder, `~/folder` or `remote:host/path`",
            home.config().join(EXCLUDE_FILE).display()
        ));
    }
    Ok(())
}

impl Listing {
    fn text(&self) -> String {
        let mut text = String::new();
        if self.projects.is_empty() {
            let _ = writeln!(text, "Nothing is recorded yet.");
        }
        let width = self.projects.iter().map(|project| project.name.chars().count()).max().unwrap_or_default();
        for project in &self.projects {
            let place = project.remote_url.as_deref().or(project.root.as_deref()).unwrap_or(&project.key);
            let (name, sessions) = (&project.name, counted(project.sessions, "session"));
            let _ = write!(text, "{name:<width$}  {sessions:<13} {place}");
            if project.notes > 0 {
                let _ = write!(text, ", {}", counted(project.notes, "note"));
            }
            if let Some(person) = &project.person {
                // The key is what tells it from a project of the same name that is another's.
                let _ = write!(text, ", {person}'s ({})", project.key);
            }
            if project.is_shared {
                let _ = write!(text, ", shared");
            }
            let _ = writeln!(text);
            for alias in project.aliases.iter().filter(|alias| !plain_name(alias).starts_with("git:")) {
                let _ = writeln!(text, "{:<width$}  also {alias}", "");
            }
        }
        for merge in &self.merges {
            let _ = writeln!(
                text,
                "merge {}: {} into {}, {}, {}",
                merge.id,
                merge.from,
                merge.into,
                counted(merge.sessions, "session"),
                merge.merged_at.format("%Y-%m-%d %H:%M UTC")
            );
        }
        for line in &self.excluded {
            let _ = writeln!(text, "not recorded: {line}");
        }
        text
    }
}

fn counted(number: i64, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

async fn merge(arguments: &MergeArgs, home: &Home, printer: &Printer) -> Result<()> {
    if let Some(merge) = arguments.undo {
        return undo(merge, home, printer).await;
    }
    let (Some(from), Some(into)) = (&arguments.from, &arguments.into) else {
        return Err(hinted(anyhow!("two projects are needed"), "run `cargo xtask project merge FROM INTO`"));
    };
    let (from, into) = (absolute_if_folder(from), absolute_if_folder(into));
    let db = journal::open(home).await?;
    let step = printer.step(format!("Merging {from} into {into}"));
    let merged = told(store::merge_projects(&db, &from, &into).await, &db).await?;
    step.done(format!(
        "Merged {} into {}: {}, {}, {}",
        merged.from,
        merged.into,
        counted(merged.sessions as i64, "session"),
        counted(merged.notes as i64, "note"),
        counted(merged.lessons as i64, "lesson"),
    ));
    printer.note(format_args!("Undo it with `cargo xtask project unmerge {}`", merged.merge));
    Ok(())
}

async fn undo(merge: i64, home: &Home, printer: &Printer) -> Result<()> {
    let db = journal::open(home).await?;
    let step = printer.step(format!("Undoing merge {merge}"));
    let undone = told(store::undo_merge(&db, merge).await, &db).await?;
    let sessions = counted(undone.sessions as i64, "session");
    step.done(format!("Gave {} back what merge {merge} had moved into {}: {sessions}", undone.from, undone.into));
    Ok(())
}

async fn split(arguments: &SplitArgs, home: &Home, printer: &Printer) -> Result<()> {
    let folder = arguments.folder.as_deref().map(absolute).transpose()?.map(|folder| folder.display().to_string());
    let by = match (&folder, &arguments.remote) {
        (Some(folder), _) => SplitBy::Folder(folder),
        (None, Some(remote)) => SplitBy::Remote(remote),
        (None, None) => return Err(hinted(anyhow!("nothing to split off"), "name it with --folder or --remote")),
    };
    let project = absolute_if_folder(&arguments.project);
    let db = journal::open(home).await?;
    let step = printer.step(format!("Splitting {project}"));
    let split = told(store::split_project(&db, &project, by).await, &db).await?;
    let sessions = counted(split.sessions as i64, "session");
    step.done(format!("Split {} off {}: {sessions}", split.name, split.from));
    Ok(())
}

async fn alias(arguments: &AliasArgs, home: &Home, printer: &Printer) -> Result<()> {
    let (project, place) = (absolute_if_folder(&arguments.project), absolute_if_folder(&arguments.key_or_path));
    let db = journal::open(home).await?;
    let keys = told(store::alias_project(&db, &project, &place).await, &db).await?;
    printer.note(format_args!("Whatever comes from {} belongs to {project} now", keys.join(", ")));
    Ok(())
}

async fn share(arguments: &ShareArgs, home: &Home, printer: &Printer) -> Result<()> {
    let project = absolute_if_folder(&arguments.project);
    let db = journal::open(home).await?;
    let step = printer.step(format!("Sharing {project}"));
    let shared = told(store::share_project(&db, &project).await, &db).await?;
    let verb = if shared.is_new { "Shared" } else { "Shared already:" };
    step.done(format!("{verb} {}: everybody who records on this server sees all of it", shared.project));
    if !shared.key.starts_with("remote:") {
        printer.note(format_args!(
            "It has no remote by which others' checkouts could be known for the same: what others record in theirs stays theirs"
        ));
    }
    Ok(())
}

async fn unshare(arguments: &ShareArgs, home: &Home, printer: &Printer) -> Result<()> {
    let project = absolute_if_folder(&arguments.project);
    let db = journal::open(home).await?;
    let step = printer.step(format!("Unsharing {project}"));
    let unshared = told(store::unshare_project(&db, &project).await, &db).await?;
    let owner = unshared.person.as_deref().unwrap_or("the operator");
    step.done(format!("Unshared {}: {owner} alone sees it", unshared.project));
    if unshared.sessions_of_others > 0 {
        printer.note(format_args!(
            "{} of others stay in it; what they do from now on in new sessions is their own",
            counted(unshared.sessions_of_others, "session")
        ));
    }
    Ok(())
}

/// Closes the database, and says to a failure what the operator can do.
async fn told<T>(outcome: Result<T, ProjectError>, db: &Db) -> Result<T> {
    db.close().await;
    outcome.map_err(|error| {
        let hint = match &error {
            ProjectError::Store(StoreError::UnknownProject { .. }) | ProjectError::SameProject(_) => {
                "run `cargo xtask project list`".to_owned()
            }
            ProjectError::Store(StoreError::AmbiguousProject { .. }) => {
                "name it by its remote, its folder or its key".to_owned()
            }
            ProjectError::UnknownMerge(_) => {
                "run `cargo xtask project list`; it shows the merges that can be".to_owned()
            }
            ProjectError::UnknownAlias { .. } | ProjectError::OwnKey { .. } => {
                "run `cargo xtask project list`; it shows by what each project is known".to_owned()
            }
            ProjectError::AliasTaken { project, .. } => {
                format!("merge the two with `cargo xtask project merge`, or split it off `{project}` first")
            }
            ProjectError::OthersProject { into, .. } => {
                format!("share the one that takes it in first: `cargo xtask project share {into}`")
            }
            ProjectError::SharedKeyTaken { own, taken } => format!(
                "share that one with `cargo xtask project share {taken}`, then make one of both: `cargo xtask project merge {own} {taken}`"
            ),
            ProjectError::HoldsOthers { .. } => {
                "undo these merges first with `cargo xtask project unmerge`".to_owned()
            }
            ProjectError::Unfiled(_) => "share the projects that are meant".to_owned(),
            ProjectError::Store(_) => "run `cargo xtask doctor`".to_owned(),
        };
        hinted(error, hint)
    })
}

fn exclude(arguments: &ExcludeArgs, home: &Home, printer: &Printer) -> Result<()> {
    let line = line_of(&arguments.place)?;
    if !Exclusions::parse(&line, None).misunderstood.is_empty() {
        return Err(hinted(anyhow!("`{line}` names no folder and no remote"), "give a folder or `remote:host/path`"));
    }
    let mut lines = all_lines(home)?;
    if lines.iter().any(|known| known.trim() == line) {
        printer.note(format_args!("{line} was excluded already"));
        return Ok(());
    }
    lines.push(line.clone());
    write_lines(home, &lines)?;
    printer.note(format_args!("Nothing from {line} is recorded from now on; what was recorded before is still there"));
    Ok(())
}

fn include(arguments: &ExcludeArgs, home: &Home, printer: &Printer) -> Result<()> {
    let line = line_of(&arguments.place)?;
    let lines = all_lines(home)?;
    let is_meant = |known: &String| line_of(known.trim()).is_ok_and(|known| known == line);
    let (removed, kept): (Vec<String>, Vec<String>) = lines.into_iter().partition(is_meant);
    if removed.is_empty() {
        return Err(hinted(
            anyhow!("{line} is not in the list of what is not recorded"),
            "run `cargo xtask project list`; a folder may also be excluded by one above it or by its .agent-memory.toml",
        ));
    }
    write_lines(home, &kept)?;
    printer.note(format_args!("What happens in {line} is recorded again"));
    Ok(())
}

/// A line of the list: a remote or a pattern as it is, a folder as hooks will see it.
fn line_of(place: &str) -> Result<String> {
    if place.starts_with("remote:") || place.starts_with('#') || place.is_empty() || place.contains('*') {
        return Ok(place.to_owned());
    }
    let folder = match (place.strip_prefix("~/"), Surroundings::of_process().home) {
        (Some(rest), Some(user_home)) => PathBuf::from(user_home).join(rest),
        _ => absolute(Path::new(place))?,
    };
    // Agents work in folders without links.
    Ok(std::fs::canonicalize(&folder).unwrap_or(folder).display().to_string())
}

fn excluded_lines(home: &Home) -> Result<Vec<String>> {
    let lines = all_lines(home)?.into_iter().map(|line| line.trim().to_owned());
    Ok(lines.filter(|line| !line.is_empty() && !line.starts_with('#')).collect())
}

fn all_lines(home: &Home) -> Result<Vec<String>> {
    let file = home.config().join(EXCLUDE_FILE);
    match std::fs::read_to_string(&file) {
        Ok(text) => Ok(text.lines().map(str::to_owned).collect()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error)
            .with_context(|| format!("cannot read `{}`", file.display()))
            .hint("make it readable: until then nothing at all is recorded"),
    }
}

fn write_lines(home: &Home, lines: &[String]) -> Result<()> {
    files::create_private_folder(&home.config())?;
    let text: String = lines.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
    files::write_private(&home.config().join(EXCLUDE_FILE), &text)
}

fn absolute(folder: &Path) -> Result<PathBuf> {
    std::path::absolute(folder).with_context(|| format!("cannot tell where `{}` is", folder.display()))
}

/// A project may be named by a folder; `.` means the one the operator is in.
pub(super) fn absolute_if_folder(name: &str) -> String {
    let is_folder = name.starts_with('.') && Path::new(name).is_dir();
    match std::fs::canonicalize(name) {
        Ok(folder) if is_folder => folder.display().to_string(),
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_the_list_and_leaves_comments_alone() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let printer = Printer::new(crate::output::Verbosity::Quiet);
        write_lines(&home, &["# mine".into(), "/srv/a/".into()]).unwrap();
        let place = |place: &str| ExcludeArgs { place: place.into() };
        exclude(&place("/srv/secret"), &home, &printer).unwrap();
        exclude(&place("remote:example.com/a/b"), &home, &printer).unwrap();
        exclude(&place("/srv/secret"), &home, &printer).unwrap();
        assert_eq!(excluded_lines(&home).unwrap(), ["/srv/a/", "/srv/secret", "remote:example.com/a/b"]);
        include(&place("/srv/secret"), &home, &printer).unwrap();
        assert!(include(&place("/srv/secret"), &home, &printer).is_err());
        assert_eq!(all_lines(&home).unwrap(), ["# mine", "/srv/a/", "remote:example.com/a/b"]);
    }
}
