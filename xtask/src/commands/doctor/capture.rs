//! Whether everything that agents do arrives: hooks that are registered and silent, calls without their prompt, calls of which
//! nobody has said whether they worked.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use chrono::{DateTime, TimeDelta, Utc};
use memory::store::AgentLinkage;

use super::{Finding, ago};

/// Below this share of joined tool calls something is wrong with the capture, not with the agent.
const LOW_LINKAGE_RATIO: f64 = 0.9;
/// Fewer calls say nothing: a hook that was registered in the middle of a turn knows no prompt of it.
const MIN_CALLS: i64 = 10;
/// An agent that has written its own record for so long after our last event has not run our hook.
const SILENT_AFTER: TimeDelta = TimeDelta::hours(1);

/// An agent with our hook in its settings, and the folders of its own records.
#[derive(Debug)]
pub(super) struct Watched {
    /// As the journal calls it.
    pub(super) agent: &'static str,
    pub(super) name: &'static str,
    pub(super) records: Vec<PathBuf>,
    pub(super) mend: String,
}

/// Agents that worked since the installation and of whom nothing came. `spooled_at` is when a hook last left an event in the spool:
/// then it is not the hook that is silent.
pub(super) fn silent(
    watched: &[Watched],
    agents: &[AgentLinkage],
    spooled_at: Option<SystemTime>,
    installed_at: DateTime<Utc>,
) -> Vec<Finding> {
    let silent = watched.iter().filter_map(|watched| {
        let worked_at: DateTime<Utc> = watched.records.iter().filter_map(|folder| newest(folder)).max()?.into();
        let known = agents.iter().find(|agent| agent.agent == watched.agent);
        let heard_at = known.and_then(|agent| agent.last_event_at).max(spooled_at.map(DateTime::from));
        if worked_at - heard_at.unwrap_or(installed_at) <= SILENT_AFTER {
            return None;
        }
        let heard = heard_at.map_or("nothing ever came from it".to_owned(), |heard_at| {
            format!("the last that came from it is of {}", ago(heard_at, worked_at).replace(" ago", " before"))
        });
        let message = format!("{} worked {} and {heard}", watched.name, ago(worked_at, Utc::now()));
        let why = "its hook is registered and does not run: sessions that began before it was registered, hooks that are \
                   turned off in its settings, or sessions that are left out on purpose (AGENT_MEMORY_DISABLE, an excluded project)";
        Some(Finding::fail("hooks", message, &*watched.mend).coded("hooks.silent").why(why))
    });
    let mut findings: Vec<_> = silent.collect();
    if findings.is_empty() && !watched.is_empty() {
        findings
            .push(Finding::ok("hooks", "what the agents wrote of themselves is not newer than what came from them"));
    }
    findings
}

/// The share of calls that are joined to their prompt, agent by agent, ever and of late.
pub(super) fn linkage(agents: &[AgentLinkage]) -> Vec<Finding> {
    let mut findings = Vec::new();
    for agent in agents {
        let spans =
            [("ever", agent.calls, agent.linked), ("in the last 7 days", agent.recent_calls, agent.recent_linked)];
        for (span, calls, linked) in spans {
            if calls >= MIN_CALLS && ratio(linked, calls) < LOW_LINKAGE_RATIO {
                let message = format!(
                    "only {:.1} % of {calls} calls of {} are joined to their prompt ({span})",
                    ratio(linked, calls) * 100.0,
                    agent.agent
                );
                let why = "events of prompts do not arrive, or carry no id that the calls have too";
                findings.push(
                    Finding::fail("linkage", message, "cargo xtask register, then start the agent anew")
                        .coded("linkage.low")
                        .why(why),
                );
            }
        }
    }
    if findings.is_empty() {
        let (calls, linked) =
            agents.iter().fold((0, 0), |(calls, linked), agent| (calls + agent.calls, linked + agent.linked));
        findings.push(Finding::ok(
            "linkage",
            if calls == 0 {
                "no tool calls yet".to_owned()
            } else {
                format!("{:.1} % of tool calls are joined to their prompt", ratio(linked, calls) * 100.0)
            },
        ));
    }
    findings
}

/// Calls whose agent's hook does not say whether they worked, and whose session's record nobody has read since.
pub(super) fn assumed(agents: &[AgentLinkage]) -> Vec<Finding> {
    let with_assumed = agents.iter().filter(|agent| agent.assumed > 0);
    with_assumed
        .map(|agent| {
            let message =
                format!("{} calls of {}, older than a day, are only taken for successes", agent.assumed, agent.agent);
            let short = agent.agent.split('-').next().unwrap_or_default();
            Finding::warn("outcomes", message, format!("cargo xtask backfill {short}"))
                .coded("outcomes.assumed")
                .why("its hook does not say how they ended, and its own record of the session was not read")
        })
        .collect()
}

fn ratio(part: i64, whole: i64) -> f64 {
    part as f64 / whole as f64
}

/// When a record below the folder was last written to.
fn newest(folder: &Path) -> Option<SystemTime> {
    const DEEPEST: usize = 5;
    let mut newest = None;
    let mut open = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = open.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().filter_map(Result::ok) {
            let path = entry.path();
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() && depth < DEEPEST {
                open.push((path, depth + 1));
            } else if path.extension().is_some_and(|extension| extension == "jsonl" || extension == "json") {
                newest = newest.max(metadata.modified().ok());
            }
        }
    }
    newest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::Verdict;

    fn agent(calls: i64, linked: i64) -> AgentLinkage {
        AgentLinkage {
            agent: "claude-code".into(),
            calls,
            linked,
            recent_calls: 0,
            recent_linked: 0,
            last_event_at: None,
            assumed: 0,
        }
    }

    #[test]
    fn finds_a_low_share_of_joined_calls_ever_and_of_late() {
        assert_eq!(linkage(&[agent(100, 91)])[0].verdict, Verdict::Ok);
        assert_eq!(linkage(&[agent(100, 89)])[0].code, "linkage.low");
        assert_eq!(linkage(&[agent(3, 0)])[0].verdict, Verdict::Ok, "three calls say nothing");
        let of_late = AgentLinkage { recent_calls: 20, recent_linked: 2, ..agent(1_000, 980) };
        assert!(linkage(&[of_late])[0].message.contains("last 7 days"));
    }

    #[test]
    fn finds_an_agent_that_works_and_is_not_heard() {
        let folder = tempfile::tempdir().unwrap();
        let project = folder.path().join("-home-dev-widgets");
        std::fs::create_dir(&project).unwrap();
        std::fs::write(project.join("s.jsonl"), "{}").unwrap();
        let watched = [Watched {
            agent: "claude-code",
            name: "Claude Code",
            records: vec![folder.path().to_owned()],
            mend: "cargo xtask register".into(),
        }];
        let now = Utc::now();
        let heard = |minutes| AgentLinkage { last_event_at: Some(now - TimeDelta::minutes(minutes)), ..agent(0, 0) };
        let find = |agents: &[AgentLinkage], spooled_at, installed_days| {
            silent(&watched, agents, spooled_at, now - TimeDelta::days(installed_days)).remove(0)
        };
        assert_eq!(find(&[heard(5)], None, 9).verdict, Verdict::Ok);
        assert_eq!(find(&[heard(90)], None, 9).code, "hooks.silent");
        assert!(find(&[], None, 9).message.contains("nothing ever came"));
        assert_eq!(find(&[], None, 0).verdict, Verdict::Ok, "it worked before anything was installed");
        assert_eq!(find(&[heard(90)], Some(SystemTime::now()), 9).verdict, Verdict::Ok, "the spool holds its events");
        assert!(silent(&[], &[heard(90)], None, now).is_empty());
    }

    #[test]
    fn finds_calls_whose_end_nobody_told() {
        let findings = assumed(&[AgentLinkage { agent: "codex".into(), assumed: 7, ..agent(9, 9) }, agent(1, 1)]);
        assert_eq!((findings.len(), findings[0].code), (1, "outcomes.assumed"));
        assert_eq!(findings[0].mend.as_deref(), Some("cargo xtask backfill codex"));
    }
}
