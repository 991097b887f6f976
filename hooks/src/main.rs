//! `agent-memory-hook <agent> <event>`: what a coding agent runs at each of its events.
//!
//! Reads the event from stdin, wraps it unread in an envelope, posts it to the server and prints the server's reply; where
//! the server does not take it, the envelope goes into the spool. It exits 0 whatever happens, says nothing of its own,
//! and has a deadline for everything it waits on. What an event means is the server's business.

mod envelope;
mod exclusion;
mod git;
mod home;
mod missed;
mod payload;
mod post;
mod spool;
mod start;

use std::io::Write;
use std::time::{Duration, Instant, SystemTime};

use crate::envelope::Envelope;
use crate::git::Repository;
use crate::home::Home;
use crate::missed::Missed;
use crate::post::{Answer, Outcome, Request};
use crate::spool::Stay;

/// The whole call for an event that only has to be kept.
const CAPTURE_DEADLINE: Duration = Duration::from_millis(50);
/// The whole call for an event whose reply the agent waits for: context, or leave to run a tool.
const REPLY_DEADLINE: Duration = Duration::from_millis(300);
/// One part in so many of it is kept for the spool: what the server has not taken by then must still be written down in time.
const SPOOL_SHARE: u32 = 5;

fn main() {
    // Unwinding is switched off in the profile this is shipped with: a panic must end here, silent and with 0.
    std::panic::set_hook(Box::new(|_| std::process::exit(0)));
    let occurred_at = SystemTime::now();
    if home::is_disabled() {
        return;
    }
    let mut arguments = std::env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned());
    if let (Some(agent), Some(event)) = (arguments.next(), arguments.next()) {
        capture(&agent, &event, occurred_at);
    }
}

/// Hands one event on. `None` where there is no event, none that may be recorded, or no place to bring it to.
fn capture(agent: &str, event: &str, occurred_at: SystemTime) -> Option<()> {
    let payload = payload::read_stdin()?;
    // The time that the agent took to write its event is not ours.
    let answer = answer_to(event);
    let deadline = Instant::now() + deadline_of(answer) * (SPOOL_SHARE - 1) / SPOOL_SHARE;
    let home = Home::locate()?;
    let cwd = home::working_folder();
    let repository = cwd.as_deref().and_then(Repository::around);
    if cwd.as_deref().is_some_and(|folder| exclusion::excludes(&home, folder, repository.as_ref())) {
        return None;
    }
    let envelope = Envelope::new(&envelope::Parts {
        agent,
        event,
        occurred_at,
        cwd: cwd.as_deref(),
        repository: repository.as_ref(),
        payload: &payload,
    });
    match post(&home, agent, answer, &envelope, deadline) {
        Outcome::Taken(reply) => print(&reply),
        Outcome::Refused => {}
        // A call is told when it has run: that it was about to is nothing to be kept.
        Outcome::Late | Outcome::Unanswered | Outcome::Away if is_about_a_call_to_come(event) => {}
        outcome @ (Outcome::Late | Outcome::Unanswered | Outcome::Away) => {
            let stay = if outcome == Outcome::Away { Stay::Long } else { Stay::Short };
            let kept = spool::keep(&home.spool(), &envelope, stay);
            // A server may be up and its database down: whoever starts leaves alone what is well.
            if event.eq_ignore_ascii_case("SessionStart") {
                start::start_services(&home);
            }
            kept.ok()?;
        }
    }
    Some(())
}

/// Only these events have a reply that the agent waits for.
fn answer_to(event: &str) -> Answer {
    match event {
        // The last two as Cursor and Gemini CLI call them; Cursor takes nothing with a prompt.
        "SessionStart" | "UserPromptSubmit" | "sessionStart" | "BeforeAgent" => Answer::WithReply,
        _ if is_about_a_call_to_come(event) => Answer::WithReply,
        _ => Answer::WhenSafe,
    }
}

/// Whether a tool is about to run, and may be kept from it; the second name is Gemini CLI's.
fn is_about_a_call_to_come(event: &str) -> bool {
    matches!(event, "PreToolUse" | "BeforeTool")
}

fn deadline_of(answer: Answer) -> Duration {
    match answer {
        Answer::WithReply => REPLY_DEADLINE,
        Answer::WhenSafe => CAPTURE_DEADLINE,
    }
}

fn post(home: &Home, agent: &str, answer: Answer, envelope: &Envelope, deadline: Instant) -> Outcome {
    let (Some(address), Some(token)) = (home.address(), home.token()) else {
        return Outcome::Unanswered;
    };
    let missed = Missed::claim(&home.missed_file());
    let request = Request {
        address,
        answer,
        token: &token,
        agent,
        missed_deadlines: missed.as_ref().map_or(0, Missed::count),
        body: envelope.as_bytes(),
    };
    let outcome = post::post(&request, deadline);
    match missed {
        Some(missed) if matches!(outcome, Outcome::Taken(_)) => missed.forget(),
        Some(missed) => missed.put_back(),
        None => {}
    }
    if outcome == Outcome::Late {
        missed::note(&home.missed_file());
    }
    outcome
}

/// An agent reads JSON or nothing; a reply that is neither is not passed on.
fn print(reply: &[u8]) {
    if reply.starts_with(b"{") {
        let mut stdout = std::io::stdout().lock();
        // An agent that has gone away is no reason to complain.
        let _ = stdout.write_all(reply).and_then(|()| stdout.flush());
    }
}
