//! `lessons`: keeps, changes and tries lessons, and shows how they have done.

use std::fmt::Write;

use anyhow::{Context, Result, anyhow};
use memory::access::Who;
use memory::home::Home;
use memory::ids::{LessonId, ProjectId};
use memory::lessons::{
    Action, Author, DEFAULT_THRESHOLD, Decision, Found, Lesson, LessonSet, NewLesson, Status, Trigger, speak,
};
use memory::store::{self, Db, LessonChange, LessonError, LessonFilter, LessonStats, StoreError};
use serde::Serialize;
use serde_json::{Value, json};

use super::project::absolute_if_folder;
use crate::cli::{
    AcceptLessonArgs, AddLessonArgs, EditLessonArgs, LessonsCommand, ListLessonsArgs, MineArgs, RetireLessonArgs,
    ShowLessonArgs, StatsArgs, TestLessonArgs, TriggerArgs,
};
use crate::journal;
use crate::output::{Printer, hinted};

pub(super) async fn run(command: LessonsCommand, home: &Home, printer: &Printer) -> Result<()> {
    let db = journal::open(home).await?;
    let done = match command {
        LessonsCommand::List(arguments) => list(&arguments, &db, printer).await,
        LessonsCommand::Show(arguments) => show(&arguments, &db, printer).await,
        LessonsCommand::Add(arguments) => add(arguments, &db, printer).await,
        LessonsCommand::Edit(arguments) => edit(arguments, &db, printer).await,
        LessonsCommand::Accept(arguments) => accept(&arguments, &db, printer).await,
        LessonsCommand::Retire(arguments) => retire(&arguments, &db, printer).await,
        LessonsCommand::Stats(arguments) => stats(&arguments, &db, printer).await,
        LessonsCommand::Test(arguments) => test(&arguments, &db, printer).await,
        LessonsCommand::Mine(arguments) => mine(&arguments, &db, printer).await,
    };
    db.close().await;
    done
}

async fn list(arguments: &ListLessonsArgs, db: &Db, printer: &Printer) -> Result<()> {
    let project = project(db, arguments.project.as_deref()).await?;
    let filter = LessonFilter { project, status: arguments.status, ..LessonFilter::default() };
    let lessons = store::lessons(db, &filter).await.map_err(told)?;
    if arguments.json {
        return print_json(printer, &lessons);
    }
    if lessons.is_empty() {
        printer.data("There are no lessons yet.");
    }
    for lesson in &lessons {
        printer.data(line(lesson));
    }
    Ok(())
}

fn line(lesson: &Lesson) -> String {
    let Lesson { id, title, severity, status, .. } = lesson;
    let stops = if lesson.stops() { "stops" } else { "tells" };
    let place = lesson.project_name.as_deref().unwrap_or("everywhere");
    format!("{:>4}  {status:<8}  {severity:<8}  {stops}  {place}: {title}", id.0)
}

async fn show(arguments: &ShowLessonArgs, db: &Db, printer: &Printer) -> Result<()> {
    let lesson = store::lesson(db, LessonId(arguments.id)).await.map_err(told)?;
    if arguments.json {
        return print_json(printer, &lesson);
    }
    printer.data(whole(&lesson).trim_end());
    Ok(())
}

fn whole(lesson: &Lesson) -> String {
    let mut text = line(lesson).trim_start().to_owned();
    let _ = writeln!(text, "\n{}", lesson.rule);
    if let Some(why) = &lesson.why {
        let _ = writeln!(text, "why: {why}");
    }
    match &lesson.trigger {
        None => text.push_str("trigger: none, it is found by a search only\n"),
        Some(trigger) => {
            let _ = write!(text, "trigger: {}", trigger.tool.as_deref().unwrap_or("any tool"));
            for (name, value) in [("pattern", &trigger.pattern), ("meaning", &trigger.meaning)] {
                if let Some(value) = value {
                    let _ = write!(text, ", {name} `{value}`");
                }
            }
            if let Some(field) = trigger.field {
                let _ = write!(text, " in the {field}");
            }
            text.push('\n');
        }
    }
    if let Some(by) = &lesson.enforced_by {
        let _ = writeln!(text, "enforced by: {by}");
    }
    if !lesson.evidence.is_empty() {
        let _ = writeln!(text, "evidence: {}", lesson.evidence.join(", "));
    }
    let _ = writeln!(text, "written by {} on {}", lesson.author, lesson.created_at.format("%Y-%m-%d"));
    text
}

async fn add(arguments: AddLessonArgs, db: &Db, printer: &Printer) -> Result<()> {
    let new = NewLesson {
        project: arguments.project.as_deref().map(absolute_if_folder),
        title: arguments.title,
        rule: arguments.rule,
        why: arguments.why,
        severity: arguments.severity,
        trigger: trigger(arguments.trigger, None),
        author: Author::Person,
        asks_person: arguments.ask,
    };
    let step = printer.step("Keeping the lesson");
    let lesson = store::add_lesson(db, Who::Operator, new).await.map_err(told)?;
    step.done(format!("Kept lesson {}: {}", lesson.id.0, lesson.title));
    if lesson.trigger.is_none() {
        printer.warn("it has no trigger and fires on nothing: give one with --pattern or --meaning");
    }
    Ok(())
}

/// What is given, over what was there; `None` where nothing is either way.
fn trigger(arguments: TriggerArgs, old: Option<Trigger>) -> Option<Trigger> {
    let TriggerArgs { tool, pattern, field, meaning, threshold } = arguments;
    if tool.is_none() && pattern.is_none() && field.is_none() && meaning.is_none() && threshold.is_none() {
        return None;
    }
    let nothing = Trigger { tool: None, pattern: None, field: None, meaning: None, threshold: DEFAULT_THRESHOLD };
    let old = old.unwrap_or(nothing);
    Some(Trigger {
        tool: tool.or(old.tool),
        pattern: pattern.or(old.pattern),
        field: field.or(old.field),
        meaning: meaning.or(old.meaning),
        threshold: threshold.unwrap_or(old.threshold),
    })
}

async fn edit(arguments: EditLessonArgs, db: &Db, printer: &Printer) -> Result<()> {
    let id = LessonId(arguments.id);
    let old = store::lesson(db, id).await.map_err(told)?;
    let change = LessonChange {
        title: arguments.title,
        rule: arguments.rule,
        why: arguments.why,
        severity: arguments.severity,
        trigger: trigger(arguments.trigger, old.trigger),
        status: arguments.enforced_by.is_some().then_some(Status::Enforced),
        enforced_by: arguments.enforced_by,
        may_stop: None,
        asks_person: arguments.ask,
    };
    changed(db, id, change, "Changed", printer).await
}

async fn accept(arguments: &AcceptLessonArgs, db: &Db, printer: &Printer) -> Result<()> {
    let change = LessonChange {
        status: Some(Status::Active),
        may_stop: Some(!arguments.inform_only),
        ..LessonChange::default()
    };
    changed(db, LessonId(arguments.id), change, "Accepted", printer).await
}

async fn retire(arguments: &RetireLessonArgs, db: &Db, printer: &Printer) -> Result<()> {
    let change = LessonChange { status: Some(Status::Retired), ..LessonChange::default() };
    changed(db, LessonId(arguments.id), change, "Retired", printer).await
}

async fn changed(db: &Db, id: LessonId, change: LessonChange, done: &str, printer: &Printer) -> Result<()> {
    let step = printer.step(format!("Changing lesson {}", id.0));
    let lesson = store::change_lesson(db, id, change).await.map_err(told)?;
    step.done(format!("{done} lesson {}: {}", lesson.id.0, lesson.title));
    Ok(())
}

async fn stats(arguments: &StatsArgs, db: &Db, printer: &Printer) -> Result<()> {
    let stats = store::lesson_stats(db).await.context("cannot read what came of lessons")?;
    if arguments.json {
        return print_json(printer, &stats);
    }
    if stats.is_empty() {
        printer.data("There are no lessons yet.");
        return Ok(());
    }
    printer.data("lesson  fired  obeyed  overridden  failed again  last fired");
    for LessonStats { lesson, fired, obeyed, overridden, repeated_failures, last_fired_at, retire } in &stats {
        let last = last_fired_at.map_or_else(|| "never".to_owned(), |at| at.format("%Y-%m-%d").to_string());
        let retire = retire.as_ref().map(|why| format!("  retire? {why}")).unwrap_or_default();
        printer.data(format!(
            "{:>6}  {fired:>5}  {obeyed:>6}  {overridden:>10}  {repeated_failures:>12}  {last}{retire}",
            lesson.0
        ));
    }
    Ok(())
}

#[derive(Debug, Serialize)]
struct Tried {
    /// The call as patterns see it: how it was written, and in the one spelling.
    commands: Vec<String>,
    paths: Vec<String>,
    /// What would be said first, and the others.
    lessons: Vec<TriedLesson>,
}

#[derive(Debug, Serialize)]
struct TriedLesson {
    id: i64,
    title: String,
    project: Option<String>,
    /// What its pattern was found in.
    found_in: String,
    decision: Decision,
}

async fn test(arguments: &TestLessonArgs, db: &Db, printer: &Printer) -> Result<()> {
    let filter = LessonFilter { status: Some(Status::Active), ..LessonFilter::default() };
    let lessons = store::lessons(db, &filter).await.map_err(told)?;
    let set = LessonSet::new(lessons.into_iter().map(|lesson| (lesson, None)));
    let action = Action::of(&arguments.tool, &input(arguments), None);
    let lessons = set.matching(&action).into_iter().map(|found| TriedLesson {
        id: found.lesson.id.0,
        title: found.lesson.title.clone(),
        project: found.lesson.project_name.clone(),
        found_in: match found.found {
            Found::Pattern { field, text } => format!("{field} `{text}`"),
            Found::Meaning { similarity } => format!("meaning {similarity:.2}"),
        },
        decision: speak(found.lesson, &action).decision,
    });
    let lessons = lessons.collect();
    let mut commands: Vec<_> = action
        .commands
        .iter()
        .zip(&action.spelt)
        .flat_map(|(written, spelt)| [written.clone(), spelt.clone()])
        .collect();
    commands.dedup();
    let tried = Tried { commands, paths: action.paths.clone(), lessons };
    if arguments.json {
        return print_json(printer, &tried);
    }
    for command in tried.commands.iter().chain(&tried.paths) {
        printer.data(format!("seen as  {command}"));
    }
    match &tried.lessons[..] {
        [] => printer.data("No active lesson fires by its pattern."),
        [first, others @ ..] => {
            let place = first.project.as_deref().map(|name| format!(" in {name}")).unwrap_or_default();
            printer.data(format!(
                "lesson {}{place}: {} ({}, by its {})",
                first.id, first.title, first.decision, first.found_in
            ));
            for other in others {
                printer.data(format!("  behind it: lesson {}: {}", other.id, other.title));
            }
        }
    }
    Ok(())
}

fn input(arguments: &TestLessonArgs) -> Value {
    match &arguments.path {
        Some(path) => json!({ "file_path": path, "content": arguments.command }),
        None if arguments.tool.starts_with("mcp__") => {
            serde_json::from_str(&arguments.command).unwrap_or_else(|_| json!({ "input": arguments.command }))
        }
        None => json!({ "command": arguments.command }),
    }
}

async fn mine(arguments: &MineArgs, db: &Db, printer: &Printer) -> Result<()> {
    let Some(project) = project(db, Some(&arguments.project)).await? else {
        return Err(hinted(anyhow!("no project is named"), "run `cargo xtask project list`"));
    };
    let step = printer.step("Looking through the journal");
    let new = store::propose_lessons(db, project).await.map_err(told)?;
    step.done(format!("Looked through the journal: {} new proposals", new.len()));
    for id in &new {
        printer.data(line(&store::lesson(db, *id).await.map_err(told)?));
    }
    if !new.is_empty() {
        printer.note("`cargo xtask lessons show ID` shows one, `accept ID` or `retire ID` decides");
    }
    Ok(())
}

async fn project(db: &Db, name: Option<&str>) -> Result<Option<ProjectId>> {
    let Some(name) = name else { return Ok(None) };
    let mut connection = db.acquire().await.context("cannot reach the database")?;
    let found = store::find_project(&mut connection, Who::Operator, &absolute_if_folder(name)).await;
    Ok(found.map_err(|error| told(LessonError::Store(error)))?.first().copied())
}

fn print_json(printer: &Printer, value: &impl Serialize) -> Result<()> {
    printer.data(serde_json::to_string_pretty(value).context("cannot write it as JSON")?);
    Ok(())
}

/// Says to a failure what the operator can do.
fn told(error: LessonError) -> anyhow::Error {
    let hint = match &error {
        LessonError::Store(StoreError::UnknownProject { .. }) => "run `cargo xtask project list`",
        LessonError::Store(StoreError::AmbiguousProject { .. }) => "name it by its remote or its folder",
        LessonError::Unknown(_) => "run `cargo xtask lessons list`",
        LessonError::Trigger(_) => "docs/lessons.md says how to write a good trigger",
        LessonError::TooLong { .. } | LessonError::NoRule => "say the rule in a few sentences",
        LessonError::EnforcedByNothing => "name it with --enforced-by",
        LessonError::Name(_) => "run `cargo xtask lessons --help`",
        LessonError::Store(_) => "run `cargo xtask doctor`",
    };
    hinted(error, hint)
}
