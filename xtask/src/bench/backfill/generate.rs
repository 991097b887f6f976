//! Transcripts to measure with: the lines that the agents write, in the mix and the sizes of real ones, always the same.
//!
//! Most of a real transcript is not prompts and calls but what surrounds them: usage figures, signatures, snapshots, whole files
//! before and after an edit. The sizes are those of transcripts of Claude Code 2.1 and Codex 0.171: lines of 0.5 to 60 kB.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};

/// What share of the bytes each agent's transcripts make up, in percent.
const CLAUDE_PERCENT: u64 = 70;
const CODEX_PERCENT: u64 = 25;
/// A usual file of each.
const FILE_BYTES: u64 = 4_000_000;

/// Many files of all agents, in folders like theirs below `folder`.
pub(super) fn many(folder: &Path, bytes: u64) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for (agent, percent) in
        [("claude", CLAUDE_PERCENT), ("codex", CODEX_PERCENT), ("gemini", 100 - CLAUDE_PERCENT - CODEX_PERCENT)]
    {
        let mut left = bytes * percent / 100;
        while left > 0 {
            let seed = files.len() as u64 + 1;
            let name = match agent {
                "claude" => format!("claude/projects/-w-{}/{}.jsonl", seed % 7, session(seed)),
                "codex" => format!("codex/sessions/2026/11/{:02}/rollout-{}.jsonl", seed % 28 + 1, session(seed)),
                _ => format!("gemini/tmp/project/chats/session-{}.jsonl", session(seed)),
            };
            let path = folder.join(name);
            left = left.saturating_sub(one(&path, agent, seed, left.min(FILE_BYTES))?);
            files.push(path);
        }
    }
    Ok(files)
}

/// One file of that size; gives the size that it got.
pub(super) fn one(path: &Path, agent: &str, seed: u64, bytes: u64) -> Result<u64> {
    let parent = path.parent().context("a transcript lies in a folder")?;
    std::fs::create_dir_all(parent).with_context(|| format!("cannot make `{}`", parent.display()))?;
    let file = File::create(path).with_context(|| format!("cannot make `{}`", path.display()))?;
    let mut writer =
        Writer { out: BufWriter::with_capacity(1 << 20, file), written: 0, chance: Chance::of(seed), turn: 0 };
    writer.begin(agent, seed)?;
    while writer.written < bytes {
        match agent {
            "claude" => writer.claude_turn(seed)?,
            "codex" => writer.codex_turn()?,
            _ => writer.gemini_turn()?,
        }
    }
    writer.out.flush().context("cannot write a transcript")?;
    Ok(writer.written)
}

fn session(seed: u64) -> String {
    format!("{seed:08x}-0000-4000-8000-{:012x}", seed * 7919)
}

struct Writer {
    out: BufWriter<File>,
    written: u64,
    chance: Chance,
    turn: u64,
}

impl Writer {
    fn line(&mut self, line: &Value) -> Result<()> {
        let text = line.to_string();
        writeln!(self.out, "{text}").context("cannot write a transcript")?;
        self.written += text.len() as u64 + 1;
        Ok(())
    }

    fn at(&mut self) -> String {
        self.turn += 1;
        let begin = DateTime::<Utc>::from_timestamp(1_790_000_000, 0).unwrap_or_default();
        (begin + TimeDelta::milliseconds(self.turn as i64 * 731)).to_rfc3339()
    }

    fn begin(&mut self, agent: &str, seed: u64) -> Result<()> {
        let at = self.at();
        match agent {
            "codex" => {
                let instructions = self.chance.prose(12_000);
                self.line(&json!({ "timestamp": at, "type": "session_meta", "payload": {
                    "id": session(seed), "cwd": format!("/w/{}", seed % 5), "cli_version": "0.171.0",
                    "base_instructions": instructions } }))
            }
            "gemini" => {
                self.line(&json!({ "sessionId": session(seed), "projectHash": "h", "startTime": at, "kind": "main" }))
            }
            _ => Ok(()),
        }
    }

    fn claude(&mut self, seed: u64, kind: &str, members: Value) -> Result<()> {
        let at = self.at();
        let mut line = json!({ "parentUuid": self.chance.id(), "isSidechain": false, "type": kind, "uuid": self.chance.id(),
            "timestamp": at, "userType": "external", "entrypoint": "cli", "cwd": format!("/w/{}", seed % 5),
            "sessionId": session(seed), "version": "2.1.332", "gitBranch": "main" });
        if let (Some(line), Value::Object(members)) = (line.as_object_mut(), members) {
            line.extend(members);
        }
        self.line(&line)
    }

    fn claude_turn(&mut self, seed: u64) -> Result<()> {
        let prompt_id = self.chance.id();
        let asked = self.chance.prose_between(40, 1_500);
        self.claude(seed, "user", json!({ "promptId": prompt_id, "message": { "role": "user", "content": asked } }))?;
        for _ in 0..=self.chance.below(8) {
            let message = format!("msg_{}", self.chance.id());
            let thought = json!({ "type": "thinking", "thinking": self.chance.prose_between(200, 3_000), "signature": self.chance.base64(700) });
            self.claude_says(seed, &message, &thought)?;
            let id = format!("toolu_{}", self.chance.id());
            let (call, result, structured) = self.claude_call(&id);
            self.claude_says(seed, &message, &call)?;
            let note = json!({ "type": "hook_success", "hookName": "PreToolUse", "stdout": self.chance.prose(300), "durationMs": 20 });
            self.claude(seed, "attachment", json!({ "attachment": note }))?;
            self.claude(
                seed,
                "user",
                json!({ "promptId": prompt_id, "toolUseResult": structured,
                "message": { "role": "user", "content": [result] } }),
            )?;
        }
        let message = format!("msg_{}", self.chance.id());
        let answer = json!({ "type": "text", "text": self.chance.prose_between(100, 2_500) });
        self.claude_says(seed, &message, &answer)?;
        let leaf = self.chance.id();
        self.line(&json!({ "type": "last-prompt", "lastPrompt": asked, "leafUuid": leaf, "sessionId": session(seed) }))
    }

    fn claude_says(&mut self, seed: u64, message: &str, block: &Value) -> Result<()> {
        let message = json!({ "id": message, "type": "message", "role": "assistant", "model": "claude-opus-5-5",
            "content": [block], "stop_reason": "tool_use", "usage": { "input_tokens": 10, "cache_creation_input_tokens": 812,
            "cache_read_input_tokens": 44_021, "output_tokens": 231, "service_tier": "standard",
            "cache_creation": { "ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 812 } } });
        let request = self.chance.id();
        self.claude(seed, "assistant", json!({ "requestId": request, "message": message }))
    }

    fn claude_call(&mut self, id: &str) -> (Value, Value, Value) {
        let path = self.chance.path();
        let (name, input, said, structured) = match self.chance.below(10) {
            0..4 => {
                let output = self.chance.code_between(60, 9_000);
                let input = json!({ "command": format!("cargo test -p {path} 2>&1 | tail -40"), "description": self.chance.prose(40) });
                (
                    "Bash",
                    input,
                    output.clone(),
                    json!({ "stdout": output, "stderr": "", "interrupted": false, "isImage": false }),
                )
            }
            4..7 => {
                let content = self.chance.code_between(800, 24_000);
                let file =
                    json!({ "filePath": path, "content": content, "numLines": 300, "startLine": 1, "totalLines": 300 });
                ("Read", json!({ "file_path": path }), content, json!({ "type": "text", "file": file }))
            }
            7..9 => {
                let (old, new) = (self.chance.code_between(60, 900), self.chance.code_between(60, 1_200));
                let original = self.chance.code_between(2_000, 30_000);
                let input = json!({ "file_path": path, "old_string": old, "new_string": new });
                let hunk = json!({ "oldStart": 1, "oldLines": 9, "newStart": 1, "newLines": 12, "lines": new.lines().collect::<Vec<_>>() });
                let structured = json!({ "filePath": path, "oldString": old, "newString": new, "originalFile": original,
                    "structuredPatch": [hunk], "userModified": false });
                ("Edit", input, format!("The file {path} has been updated."), structured)
            }
            _ => {
                let content = self.chance.code_between(500, 12_000);
                let input = json!({ "file_path": path, "content": content });
                let structured =
                    json!({ "type": "create", "filePath": path, "content": content, "structuredPatch": [] });
                ("Write", input, format!("File created successfully at: {path}"), structured)
            }
        };
        let call = json!({ "type": "tool_use", "id": id, "name": name, "input": input });
        let has_failed = self.chance.below(12) == 0;
        let said = if has_failed { format!("Exit code 1\n{said}") } else { said };
        let result = json!({ "type": "tool_result", "tool_use_id": id, "content": said, "is_error": has_failed });
        let structured = if has_failed { Value::String(format!("Error: {said}")) } else { structured };
        (call, result, structured)
    }

    fn codex(&mut self, kind: &str, payload: &Value) -> Result<()> {
        let at = self.at();
        self.line(&json!({ "timestamp": at, "ordinal": self.turn, "type": kind, "payload": payload }))
    }

    fn codex_turn(&mut self) -> Result<()> {
        let turn = self.chance.id();
        let asked = self.chance.prose_between(40, 1_500);
        self.codex(
            "turn_context",
            &json!({ "turn_id": turn, "cwd": "/w/1", "model": "gpt-5.5", "approval_policy": "never" }),
        )?;
        let message =
            json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": asked }] });
        self.codex("response_item", &message)?;
        let item =
            json!({ "type": "UserMessage", "id": self.chance.id(), "content": [{ "type": "text", "text": asked }] });
        self.codex("event_msg", &json!({ "type": "item_completed", "turn_id": turn, "item": item }))?;
        for _ in 0..=self.chance.below(8) {
            let secret = self.chance.base64(2_400);
            self.codex("response_item", &json!({ "type": "reasoning", "summary": [], "encrypted_content": secret }))?;
            let id = format!("call_{}", self.chance.id());
            let command = format!("rg -n '{}' {}", self.chance.word(), self.chance.path());
            let arguments = json!({ "cmd": command }).to_string();
            let call =
                json!({ "type": "function_call", "name": "exec_command", "arguments": arguments, "call_id": id });
            self.codex("response_item", &call)?;
            let output = self.chance.code_between(60, 9_000);
            let code = i64::from(self.chance.below(12) == 0);
            let ended = json!({ "type": "CommandExecution", "id": id, "command": ["/bin/bash", "-lc", command], "status": "completed",
                "aggregated_output": output, "exit_code": code, "duration": { "secs": 0, "nanos": 13_370 } });
            self.codex("event_msg", &json!({ "type": "item_completed", "turn_id": turn, "item": ended }))?;
            let told =
                format!("Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code {code}\nOutput:\n{output}");
            self.codex("response_item", &json!({ "type": "function_call_output", "call_id": id, "output": told }))?;
            let usage = json!({ "input_tokens": 12_000, "cached_input_tokens": 0, "output_tokens": 147, "total_tokens": 12_147 });
            self.codex("event_msg", &json!({ "type": "token_count", "info": { "total_token_usage": usage } }))?;
        }
        let answer = self.chance.prose_between(100, 2_500);
        self.codex("event_msg", &json!({ "type": "task_complete", "turn_id": turn, "last_agent_message": answer }))
    }

    fn gemini_turn(&mut self) -> Result<()> {
        let asked = self.chance.prose_between(40, 1_500);
        let (id, at) = (self.chance.id(), self.at());
        self.line(&json!({ "id": id, "timestamp": at, "type": "user", "content": [{ "text": asked }] }))?;
        for _ in 0..=self.chance.below(6) {
            let (message, at) = (self.chance.id(), self.at());
            let said = self.chance.prose(200);
            let begun =
                json!({ "id": message, "timestamp": at, "type": "gemini", "content": said, "model": "gemini-3.1-pro" });
            self.line(&begun)?;
            let id = format!("run_shell_command_{}", self.chance.id());
            let output = self.chance.code_between(60, 9_000);
            let response =
                json!({ "functionResponse": { "id": id, "response": { "output": format!("Output: {output}") } } });
            let call = json!({ "id": id, "name": "run_shell_command", "args": { "command": "make" }, "result": [response],
                "status": "success", "timestamp": at, "resultDisplay": output });
            let mut ended = begun;
            ended["toolCalls"] = json!([call]);
            self.line(&ended)?;
        }
        Ok(())
    }
}

/// A generator that gives the same for the same seed.
struct Chance(u64);

const WORDS: [&str; 48] = [
    "the", "a", "of", "to", "and", "reader", "writer", "session", "prompt", "journal", "index", "vector", "error",
    "retry", "queue", "lease", "token", "budget", "parse", "render", "commit", "branch", "merge", "fails", "when",
    "because", "after", "before", "test", "should", "never", "always", "value", "buffer", "line", "file", "folder",
    "path", "cache", "please", "fix", "explain", "rename", "move", "delete", "add", "check", "größer",
];

impl Chance {
    fn of(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Xorshift (Marsaglia 2003).
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    fn word(&mut self) -> &'static str {
        WORDS[self.below(WORDS.len() as u64) as usize]
    }

    fn id(&mut self) -> String {
        let (high, low) = (self.next(), self.next());
        format!(
            "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
            high >> 32,
            high & 0xffff,
            low >> 52,
            low >> 40 & 0xfff,
            low & 0xffff_ffff_ffff
        )
    }

    fn path(&mut self) -> String {
        format!("/w/src/{}/{}_{}.rs", self.word(), self.word(), self.word())
    }

    fn base64(&mut self, length: usize) -> String {
        const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        (0..length).map(|_| char::from(SIGNS[self.below(64) as usize])).collect()
    }

    fn prose_between(&mut self, least: usize, most: usize) -> String {
        let length = least + self.below((most - least) as u64) as usize;
        self.prose(length)
    }

    fn prose(&mut self, length: usize) -> String {
        let mut text = String::with_capacity(length + 12);
        while text.len() < length {
            text.push_str(self.word());
            text.push_str(if self.below(14) == 0 { ".\n" } else { " " });
        }
        text
    }

    fn code_between(&mut self, least: usize, most: usize) -> String {
        let length = least + self.below((most - least) as u64) as usize;
        let mut text = String::with_capacity(length + 90);
        while text.len() < length {
            let line = match self.below(6) {
                0 => format!("    // {} {} {}\n", self.word(), self.word(), self.word()),
                1 => format!("{:016x}  {}\n", self.next(), self.path()),
                2 => format!("\tif self.{}[{}] > \"{}\" {{\n", self.word(), self.below(900), self.word()),
                _ => format!("    let {} = {}({}, {})?;\n", self.word(), self.word(), self.word(), self.below(99)),
            };
            text.push_str(&line);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use memory::event::Agent;

    use super::*;

    #[test]
    fn writes_transcripts_that_are_read_without_a_line_that_is_not_understood() {
        let folder = tempfile::tempdir().unwrap();
        for path in many(folder.path(), 600_000).unwrap() {
            let agent = memory::transcripts::written_by(&path).unwrap().unwrap();
            let places = memory::transcripts::Places::new(|_| memory::project::Checkout::default(), |_| Ok(()));
            let mut context = memory::transcripts::Context::new(agent, places);
            let file = memory::transcripts::of_path(agent, &path).unwrap();
            let report =
                memory::transcripts::read(&file, &mut context, &mut |_| std::ops::ControlFlow::Continue(())).unwrap();
            assert!(report.prompts > 0 && report.calls > 0, "{agent}: {report:?}");
            assert_eq!(report.joined_calls, report.calls, "{agent}");
            let known = ["the client's own notes", "told by an event"];
            assert!(report.skipped.keys().all(|reason| known.contains(&reason.as_str())), "{agent}: {report:?}");
            assert!([Agent::ClaudeCode, Agent::Codex, Agent::GeminiCli].contains(&agent));
        }
    }
}
