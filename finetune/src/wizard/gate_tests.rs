//! The gates: what they show, and what opens them.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use finetune::eval::{Chains, Evaluation, METRICS, Measured, MultiTurn, Side, Thresholds, Verdict};
use finetune::stages::{Estimate, Question, Watch as _};

use super::scripted::{Say, ScriptedAsker};
use super::told;
use super::watch::{Declined, Watching};

#[test]
fn gates_open_at_a_yes_only() {
    for (say, agrees) in [(Say::Enter, true), (Say::Yes, true), (Say::No, false), (Say::Leave, false)] {
        let (mut watch, declined) = watching(say.clone());
        assert_eq!(watch.agrees(&Question::Train(&estimate())), agrees);
        assert_eq!(declined.get(), (!agrees).then_some(&Declined::Training));
        let (mut watch, declined) = watching(say);
        assert_eq!(watch.agrees(&Question::Install(&evaluation())), agrees);
        assert_eq!(declined.get(), (!agrees).then_some(&Declined::Installing));
    }
}

#[test]
fn gates_show_what_is_decided_by() {
    let shown = told::estimate(&estimate());
    for said in ["40, 40960 tokens in all", "4 of 90 samples", "about 14 min at 50.0 tokens/s", "3.00 GiB", "2.50 GiB"]
    {
        assert!(shown.contains(said), "{said} is not in\n{shown}");
    }
    let shown = told::evaluation(&evaluation());
    let accuracy =
        shown.lines().find(|line| line.contains("tool_name_accuracy")).expect("what is trained for is shown");
    assert!(accuracy.ends_with("base 0.500, tuned 0.700, difference +0.200 [+0.150, +0.250], n = 118"), "{accuracy}");
    for facts in METRICS.iter().filter(|facts| facts.is_safety) {
        assert!(shown.contains(facts.name), "{shown}");
    }
}

#[test]
fn says_how_what_was_installed_is_used() {
    let shown = told::ways(Path::new("/lm/agent-memory/run/run-q8_0.gguf"));
    for said in
        ["LM Studio", "agent-memory/run\n", "llama-server --model '/lm/agent-memory/run/run-q8_0.gguf'", "Ollama"]
    {
        assert!(shown.contains(said), "{said} is not in\n{shown}");
    }
}

fn watching(say: Say) -> (Watching, Arc<OnceLock<Declined>>) {
    let declined = Arc::new(OnceLock::new());
    let asker = Box::new(ScriptedAsker::new([say]));
    (Watching::new(asker, Arc::default(), Arc::clone(&declined)), declined)
}

fn estimate() -> Estimate {
    Estimate {
        train_samples: 90,
        validation_samples: 5,
        left_out: 4,
        steps: 40,
        tokens: 40_960,
        tokens_per_second: 50.0,
        seconds: 819.2,
        memory_bytes: 3 << 30,
        disk_bytes: 5 << 29,
    }
}

fn evaluation() -> Evaluation {
    let estimate = |mean| Some(finetune::eval::Estimate { mean, low: mean - 0.05, high: mean + 0.05 });
    let measured = |metric| Measured {
        metric,
        recorded_turns: 120,
        base: Side { turns: 120, estimate: estimate(0.5) },
        tuned: Side { turns: 118, estimate: estimate(0.7) },
        difference: estimate(0.2),
    };
    let metrics: Vec<_> = METRICS.iter().map(|facts| measured(facts.metric)).collect();
    let chains = Chains::default();
    Evaluation {
        base: "base".to_owned(),
        tuned: "tuned".to_owned(),
        rows: 100,
        turns: 250,
        resamples: 2000,
        seed: 7,
        metrics: metrics.clone(),
        multi_turn: MultiTurn { rows: 0, base: chains, tuned: chains, metrics },
        tools: Vec::new(),
        thresholds: Thresholds::default(),
        verdict: Verdict { passed: true, reasons: Vec::new() },
    }
}
