//! Questions about sessions of coding agents, and how many of them a search answers: sessions and questions lie in `tests/recall-set`.
//!
//! A question is answered when one of the events that answer it is among the first hits; where nothing answers it, any hit is a
//! false alarm.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use chrono::{TimeDelta, Utc};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::stack::Stack;

/// The sessions and what is asked about them.
#[derive(Debug)]
pub struct RecallSet {
    sessions: Vec<Session>,
    questions: Vec<Question>,
}

#[derive(Debug, Deserialize)]
struct Session {
    id: String,
    project: String,
    /// Days ago.
    day: i64,
    event: Vec<Event>,
}

/// What happened: one of these members, with what goes with it.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Event {
    prompt: Option<String>,
    answer: Option<String>,
    bash: Option<String>,
    edit: Option<String>,
    write: Option<String>,
    read: Option<String>,
    grep: Option<String>,
    note: Option<String>,
    path: Option<String>,
    output: Option<String>,
    error: Option<String>,
    old: Option<String>,
    new: Option<String>,
    content: Option<String>,
    title: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Question {
    text: String,
    project: Option<String>,
    kind: String,
    language: String,
    /// Session and number of the event, as in `s01.4`.
    answers: Vec<String>,
}

/// How many questions were answered, of those of a kind and of those in a language.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Figures {
    pub groups: BTreeMap<String, Group>,
    /// The questions that were not answered among the first five, or should not have been.
    pub missed: Vec<String>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    pub questions: usize,
    pub hit_at_1: usize,
    pub hit_at_5: usize,
    pub false_alarms: usize,
}

impl RecallSet {
    pub fn read(folder: &Path) -> Result<Self> {
        #[derive(Deserialize)]
        struct Sessions {
            session: Vec<Session>,
        }
        let read = |name: &str| {
            std::fs::read_to_string(folder.join(name)).with_context(|| format!("reading {name} of the recall set"))
        };
        let sessions: Sessions = toml::from_str(&read("sessions.toml")?).context("reading the sessions")?;
        Ok(Self { sessions: sessions.session, ..Self::about_transcripts(&folder.join("questions.toml"))? })
    }

    /// Questions about sessions that are not part of the set.
    pub fn about_transcripts(questions: &Path) -> Result<Self> {
        #[derive(Deserialize)]
        struct Questions {
            question: Vec<Question>,
        }
        let text = std::fs::read_to_string(questions).with_context(|| format!("reading `{}`", questions.display()))?;
        let questions: Questions = toml::from_str(&text).context("reading the questions")?;
        Ok(Self { sessions: Vec::new(), questions: questions.question })
    }

    /// Stores all sessions as their hooks would; returns the document of each event.
    pub async fn store(&self, stack: &Stack) -> Result<HashMap<String, String>> {
        let mut documents = HashMap::new();
        for session in &self.sessions {
            session.store(stack, &mut documents).await?;
        }
        documents.extend(Self::documents(stack).await?);
        Ok(documents)
    }

    /// The documents of prompts and calls by the ids that their agents gave them.
    pub async fn documents(stack: &Stack) -> Result<HashMap<String, String>> {
        let mut documents = HashMap::new();
        let journal = stack.journal();
        for prompt in journal.prompts().await? {
            let document = format!("prompt-{}", prompt.id);
            for name in prompt.prompt_id.split('+') {
                documents.insert(name.to_owned(), document.clone());
            }
        }
        for call in journal.tool_calls().await? {
            documents.insert(call.tool_use_id.clone(), format!("call-{}", call.id));
        }
        Ok(documents)
    }

    /// Asks every question.
    pub async fn ask(&self, stack: &Stack, documents: &HashMap<String, String>) -> Result<Figures> {
        let mut figures = Figures::default();
        for question in &self.questions {
            let mut search = json!({ "query": question.text, "limit": 5 });
            if let Some(project) = &question.project {
                search["project"] = json!(project);
            }
            let answer = stack.post("/api/observations/search").json(&search).send().await?;
            ensure!(
                answer.status().is_success(),
                "the search for {:?} failed: {}",
                question.text,
                answer.text().await?
            );
            let found: Value = answer.json().await?;
            let hits: Vec<_> =
                found["hits"].as_array().into_iter().flatten().filter_map(|hit| hit["id"].as_str()).collect();
            let wanted = question.answers.iter().map(|name| {
                documents.get(name).map(String::as_str).with_context(|| format!("no event is called {name}"))
            });
            let wanted = wanted.collect::<Result<Vec<_>>>()?;
            figures.count(question, &hits, &wanted);
        }
        Ok(figures)
    }
}

impl Figures {
    /// The groups in which fewer questions are answered, or more falsely, than in figures that were written down before, by more than
    /// `slack` questions.
    pub fn worse_than(&self, recorded: &str, slack: usize) -> Vec<String> {
        let mut worse = Vec::new();
        for line in recorded.lines().skip(1) {
            let columns: Vec<_> = line.split_whitespace().collect();
            let [name, _, hit_at_1, hit_at_5, false_alarms] = columns[..] else { continue };
            let [hit_at_1, hit_at_5, false_alarms] =
                [hit_at_1, hit_at_5, false_alarms].map(|figure| figure.parse::<usize>().unwrap_or(usize::MAX / 2));
            let now = self.groups.get(name).copied().unwrap_or_default();
            if now.hit_at_1 + slack < hit_at_1
                || now.hit_at_5 + slack < hit_at_5
                || now.false_alarms > false_alarms + slack
            {
                worse.push(line.to_owned());
            }
        }
        worse
    }

    fn count(&mut self, question: &Question, hits: &[&str], wanted: &[&str]) {
        let rank = hits.iter().position(|hit| wanted.contains(hit));
        let is_missed = if wanted.is_empty() { !hits.is_empty() } else { rank.is_none() };
        for name in ["all", &question.kind, &question.language] {
            let group = self.groups.entry(name.to_owned()).or_default();
            group.questions += 1;
            group.hit_at_1 += usize::from(rank == Some(0));
            group.hit_at_5 += usize::from(rank.is_some());
            group.false_alarms += usize::from(wanted.is_empty() && !hits.is_empty());
        }
        if is_missed {
            self.missed.push(format!("{} ({})", question.text, question.answers.join(", ")));
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "group      questions   hit@1   hit@5   false alarms")?;
        for (name, group) in &self.groups {
            let Group { questions, hit_at_1, hit_at_5, false_alarms } = group;
            writeln!(formatter, "{name:<10} {questions:>9} {hit_at_1:>7} {hit_at_5:>7} {false_alarms:>14}")?;
        }
        Ok(())
    }
}

impl Session {
    async fn store(&self, stack: &Stack, documents: &mut HashMap<String, String>) -> Result<()> {
        let start = Utc::now() - TimeDelta::days(self.day);
        let mut prompt_id = String::new();
        for (number, event) in self.event.iter().enumerate() {
            let name = format!("{}.{number}", self.id);
            if let Some(note) = &event.note {
                let note = json!({ "text": note, "title": event.title, "project": self.project });
                let answer = stack.post("/api/observations").json(&note).send().await?;
                let saved: Value = answer.error_for_status().context("saving a note")?.json().await?;
                documents.insert(name, saved["id"].as_str().context("a note has an id")?.to_owned());
                continue;
            }
            if event.prompt.is_some() {
                // Its answer is found with it.
                let answer =
                    self.event[number + 1..].iter().position(|later| later.prompt.is_some() || later.answer.is_some());
                let answer = answer.map(|after| number + 1 + after).filter(|at| self.event[*at].answer.is_some());
                prompt_id = answer.map_or(name.clone(), |at| format!("{name}+{}.{at}", self.id));
            }
            let payload =
                self.payload(event, &name, &prompt_id).with_context(|| format!("reading the event {name}"))?;
            let envelope = json!({
                "envelope": 1,
                "event_id": Uuid::new_v4(),
                "agent": "claude-code",
                "event": payload["hook_event_name"],
                "occurred_at_us": (start + TimeDelta::seconds(20 * number as i64)).timestamp_micros(),
                "cwd": payload["cwd"],
                "git": null,
                "payload": payload,
            });
            let answer = stack.post("/api/hooks/claude-code").body(envelope.to_string()).send().await?;
            ensure!(answer.status().is_success(), "the event {name} was answered {}", answer.status());
        }
        Ok(())
    }

    /// The event as Claude Code sends it.
    fn payload(&self, event: &Event, name: &str, prompt_id: &str) -> Result<Value> {
        let mut payload = json!({
            "session_id": self.id, "cwd": format!("/home/dev/{}", self.project), "prompt_id": prompt_id,
            "hook_event_name": "PostToolUse", "tool_use_id": name, "duration_ms": 900,
        });
        let output = json!(event.output.clone().unwrap_or_default());
        let (tool, input) = match event {
            Event { prompt: Some(prompt), .. } => {
                payload["hook_event_name"] = json!("UserPromptSubmit");
                payload["prompt"] = json!(prompt);
                return Ok(payload);
            }
            Event { answer: Some(answer), .. } => {
                payload["hook_event_name"] = json!("Stop");
                payload["last_assistant_message"] = json!(answer);
                return Ok(payload);
            }
            Event { bash: Some(command), .. } => ("Bash", json!({ "command": command })),
            Event { edit: Some(path), old, new, .. } => {
                ("Edit", json!({ "file_path": path, "old_string": old, "new_string": new }))
            }
            Event { write: Some(path), content, .. } => ("Write", json!({ "file_path": path, "content": content })),
            Event { read: Some(path), .. } => ("Read", json!({ "file_path": path })),
            Event { grep: Some(pattern), path, .. } => ("Grep", json!({ "pattern": pattern, "path": path })),
            _ => anyhow::bail!("the event is none of the known ones"),
        };
        payload["tool_name"] = json!(tool);
        payload["tool_input"] = input;
        match &event.error {
            Some(error) => {
                payload["hook_event_name"] = json!("PostToolUseFailure");
                payload["error"] = json!(error);
                payload["is_interrupt"] = json!(false);
            }
            None if tool == "Bash" => payload["tool_response"] = json!({ "stdout": output, "stderr": "" }),
            None => payload["tool_response"] = output,
        }
        Ok(payload)
    }
}
