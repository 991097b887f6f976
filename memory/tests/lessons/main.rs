//! How many calls fire the lesson that they should, and none that they should not: thirty lessons and calls in many spellings, the
//! figures as a snapshot.

use std::fmt::Write as _;

use memory::ids::LessonId;
use memory::lessons::{Action, Author, DEFAULT_THRESHOLD, Field, Lesson, LessonSet, Severity, Status, Trigger};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
struct Lessons {
    lesson: Vec<Named>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
    tool: Option<String>,
    field: Option<Field>,
    pattern: String,
}

#[derive(Deserialize)]
struct Actions {
    action: Vec<Called>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Called {
    fires: Option<String>,
    tool: Option<String>,
    command: Option<String>,
    /// JSON.
    input: Option<String>,
}

impl Called {
    fn action(&self) -> Action {
        let input = match (&self.command, &self.input) {
            (Some(command), _) => json!({ "command": command }),
            (None, Some(input)) => serde_json::from_str(input).expect("an input is JSON"),
            (None, None) => Value::Null,
        };
        Action::of(self.tool.as_deref().unwrap_or("Bash"), &input, Some("/w"))
    }

    fn told(&self) -> &str {
        self.command.as_deref().or(self.input.as_deref()).unwrap_or_default()
    }
}

impl Named {
    fn lesson(&self, id: usize) -> Lesson {
        let trigger = Trigger {
            tool: self.tool.clone(),
            pattern: Some(self.pattern.clone()),
            field: self.field,
            meaning: None,
            threshold: DEFAULT_THRESHOLD,
        };
        let trigger = trigger.checked().unwrap_or_else(|error| panic!("{}: {error}", self.name));
        Lesson {
            id: LessonId(id as i64),
            project: None,
            project_name: None,
            person: None,
            title: self.name.clone(),
            rule: self.name.clone(),
            why: None,
            severity: Severity::Critical,
            trigger: Some(trigger),
            author: Author::Person,
            status: Status::Active,
            enforced_by: None,
            may_stop: true,
            asks_person: false,
            evidence: Vec::new(),
            created_at: chrono::DateTime::UNIX_EPOCH,
            updated_at: chrono::DateTime::UNIX_EPOCH,
        }
    }
}

#[test]
fn fires_on_what_it_should_and_on_nothing_else() {
    let lessons: Lessons = toml::from_str(include_str!("lessons.toml")).expect("lessons.toml is read");
    let actions: Actions = toml::from_str(include_str!("actions.toml")).expect("actions.toml is read");
    let set = LessonSet::new(lessons.lesson.iter().enumerate().map(|(id, named)| (named.lesson(id), None)));
    let names: Vec<_> = lessons.lesson.iter().map(|named| named.name.as_str()).collect();
    let (mut right, mut false_alarms, mut missed) = (0, Vec::new(), Vec::new());
    for called in &actions.action {
        let action = called.action();
        let fired: Vec<_> = set.matching(&action).iter().map(|found| found.lesson.title.clone()).collect();
        let wanted = called.fires.as_deref();
        assert!(wanted.is_none_or(|wanted| names.contains(&wanted)), "no lesson is called {wanted:?}");
        match wanted {
            Some(wanted) if fired.iter().any(|name| name == wanted) => right += 1,
            Some(wanted) => missed.push(format!("{wanted}: {}", called.told())),
            None if fired.is_empty() => {}
            None => false_alarms.push(format!("{}: {}", fired.join(", "), called.told())),
        }
    }
    let should_fire = actions.action.iter().filter(|called| called.fires.is_some()).count();
    let precision = f64::from(right) / (f64::from(right) + false_alarms.len() as f64);
    let recall = f64::from(right) / should_fire as f64;
    let mut told = format!(
        "{} lessons; {should_fire} calls that should fire one, {} that should not\nprecision {precision:.3}, recall {recall:.3}\n",
        names.len(),
        actions.action.len() - should_fire
    );
    for (what, calls) in [("false alarms", &false_alarms), ("missed", &missed)] {
        let _ = writeln!(told, "{what}:");
        for call in calls {
            let _ = writeln!(told, "  {}", call.replace('\n', "\\n"));
        }
    }
    assert!(precision >= 0.97 && recall >= 0.90, "{told}");
    insta::assert_snapshot!(told);
}
