//! What is wrong with the queue: jobs that were given up, that nobody takes, that wait too long, that fail again and again.

use chrono::{DateTime, TimeDelta, Utc};
use memory::queue::{DeadJobs, KindState};

use super::{Finding, ago};
use crate::health::Health;

const LOGS: &str = "cargo xtask logs server";
const UP: &str = "cargo xtask up";

/// A job that is due is taken in milliseconds by a worker that is not busy; after so long none will come.
const STUCK_AFTER: TimeDelta = TimeDelta::minutes(10);
/// From the third failure on it is no accident.
const FAILING_ATTEMPTS: i32 = 3;

/// One finding for each thing that is wrong, or one that says what waits.
pub(super) fn queue(
    kinds: &[KindState],
    dead: &[DeadJobs],
    health: Option<&Health>,
    now: DateTime<Utc>,
) -> Vec<Finding> {
    let mut findings: Vec<_> = dead.iter().map(|jobs| given_up(jobs, now)).collect();
    findings.extend(kinds.iter().filter_map(|kind| of_kind(kind, health, now)));
    if findings.is_empty() {
        findings.push(Finding::ok("queue", waiting(kinds)));
    }
    findings
}

fn given_up(dead: &DeadJobs, now: DateTime<Utc>) -> Finding {
    let DeadJobs { kind, reason, jobs, attempts, oldest_at } = dead;
    let message =
        format!("{jobs} jobs `{kind}` were given up after {attempts} attempts, the oldest of {}", ago(*oldest_at, now));
    Finding::fail("queue", message, format!("cargo xtask queue retry --kind {kind}")).coded("queue.dead").why(format!(
        "{reason}. When that is mended, have them tried again; `cargo xtask queue drop --kind {kind}` forgets them"
    ))
}

fn of_kind(kind: &KindState, health: Option<&Health>, now: DateTime<Utc>) -> Option<Finding> {
    let name = &kind.kind;
    let since = kind.due_since.unwrap_or(now);
    let handles = health.and_then(|health| health.queue.handles.as_ref());
    if kind.pending > 0
        && let Some(handles) = handles
        && !handles.contains(name)
    {
        let message = format!("{} jobs `{name}` wait, the longest since {}", kind.pending, ago(since, now));
        let finding = Finding::fail("queue", message, UP).coded("queue.unhandled");
        return Some(finding.why(format!(
            "the server that runs has no worker for this kind: it is of another version than what enqueued them; \
             `cargo xtask queue drop --all --kind {name}` forgets them"
        )));
    }
    if kind.expired > 0 {
        let message = format!("{} jobs `{name}` were taken and never finished", kind.expired);
        let finding = Finding::fail("queue", message, UP).coded("queue.expired_lease");
        return Some(
            finding.why("the lease of the worker that held them has run out, and no other worker has come for them"),
        );
    }
    if kind.due > 0 && now - since > STUCK_AFTER {
        let message =
            format!("{} jobs `{name}` wait, the longest since {}{}", kind.due, ago(since, now), holders(kind, now));
        let mend = if health.is_none() { UP } else { LOGS };
        return Some(Finding::fail("queue", message, mend).coded("queue.stuck").why(why_stuck(kind, health)));
    }
    if kind.attempts >= FAILING_ATTEMPTS {
        let message = format!("jobs `{name}` fail, one for the {}th time", kind.attempts);
        let reason = kind.last_error.clone().unwrap_or_else(|| "their worker did not come back".to_owned());
        return Some(Finding::warn("queue", message, LOGS).coded("queue.failing").why(reason));
    }
    None
}

fn why_stuck(kind: &KindState, health: Option<&Health>) -> String {
    let Some(health) = health else { return "the server does not answer, and its workers run in it".to_owned() };
    let embedding = &health.embedding;
    match (&kind.last_error, &embedding.message) {
        (Some(error), _) => error.clone(),
        (None, Some(message)) if embedding.state == "unavailable" && kind.kind.contains("embed") => message.clone(),
        _ => "its worker runs and does not take them: the log may say why".to_owned(),
    }
}

fn waiting(kinds: &[KindState]) -> String {
    let pending: i64 = kinds.iter().map(|kind| kind.pending).sum();
    let held: i64 = kinds.iter().map(|kind| kind.held).sum();
    let backing_off: i64 = kinds.iter().map(|kind| kind.backing_off).sum();
    format!("{pending} jobs wait, {held} of them in work, {backing_off} for their next attempt; none was given up")
}

fn holders(kind: &KindState, now: DateTime<Utc>) -> String {
    match (kind.held, kind.held_until) {
        (held @ 1.., Some(until)) => {
            let seconds = (until - now).num_seconds().max(0);
            format!("; {held} more are held by {} for another {seconds} s", kind.holders.join(", "))
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::doctor::Verdict;
    use crate::health::tests::healthy;

    fn kind() -> KindState {
        KindState {
            kind: "embed_document".into(),
            pending: 5,
            due: 0,
            due_since: None,
            backing_off: 0,
            held: 0,
            held_until: None,
            holders: Vec::new(),
            expired: 0,
            dead: 0,
            attempts: 0,
            last_error: None,
        }
    }

    fn check(kind: KindState, health: Option<&Health>, code: &str, told: &str) {
        let findings = queue(&[kind], &[], health, Utc::now());
        let text = findings[0].to_string();
        assert_eq!((findings.len(), findings[0].code), (1, code), "{text}");
        assert!(text.contains(told), "{text}");
    }

    #[test]
    fn is_content_with_jobs_that_are_being_worked_on() {
        check(
            KindState { held: 3, due: 2, due_since: Some(Utc::now()), ..kind() },
            Some(&healthy()),
            "queue",
            "3 of them in work",
        );
    }

    #[test]
    fn finds_a_kind_that_nobody_handles() {
        check(
            KindState { kind: "brew_tea".into(), ..kind() },
            Some(&healthy()),
            "queue.unhandled",
            "no worker for this kind",
        );
    }

    #[test]
    fn finds_jobs_that_nobody_takes_and_says_who_holds_the_others() {
        let since = Some(Utc::now() - TimeDelta::minutes(30));
        let stuck = KindState { due: 4, due_since: since, ..kind() };
        check(stuck.clone(), None, "queue.stuck", "the server does not answer");
        let until = Some(Utc::now() + TimeDelta::seconds(90));
        let held = KindState { held: 1, held_until: until, holders: vec!["worker-7".into()], ..stuck };
        check(held, Some(&healthy()), "queue.stuck", "1 more are held by worker-7");
        let mut unavailable = healthy();
        unavailable.embedding.state = "unavailable".into();
        unavailable.embedding.message = Some("no model".into());
        check(KindState { due: 4, due_since: since, ..kind() }, Some(&unavailable), "queue.stuck", "why: no model");
    }

    #[test]
    fn finds_leases_that_ran_out_and_jobs_that_fail() {
        check(KindState { expired: 2, ..kind() }, Some(&healthy()), "queue.expired_lease", "has run out");
        let failing = KindState { attempts: 5, last_error: Some("the model choked".into()), ..kind() };
        check(failing, Some(&healthy()), "queue.failing", "the model choked");
    }

    #[test]
    fn tells_why_jobs_were_given_up_and_how_to_try_them_again() {
        let dead = DeadJobs {
            kind: "embed_document".into(),
            reason: "the model choked".into(),
            jobs: 2,
            attempts: 8,
            oldest_at: Utc::now() - TimeDelta::days(3),
        };
        let findings = queue(&[], &[dead], Some(&healthy()), Utc::now());
        assert_eq!((findings[0].code, findings[0].verdict), ("queue.dead", Verdict::Fail));
        let text = findings[0].to_string();
        assert!(text.contains("8 attempts") && text.contains("3 days") && text.contains("the model choked"), "{text}");
        assert!(text.contains("mend: cargo xtask queue retry --kind embed_document"), "{text}");
    }
}
