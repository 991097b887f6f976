// agent-memory: written by `cargo xtask register`, taken away by `cargo xtask unregister`.
//
// Hands what happens in OpenCode to agent-memory-hook, in the form in which Claude Code's hooks get it. It changes nothing,
// never throws, and never holds OpenCode up for longer than WAIT_MS.

import { spawn } from "node:child_process";

const HOOK = "@HOOK@";

// The hook ends by itself within 0.3 s. Past this it goes on alone.
const WAIT_MS = 1000;

const prompts = new Map(); // session id -> id of its last prompt
const answers = new Map(); // session id -> the text that came last
const failed = new Set(); // calls whose failure was told
const open = new Set(); // sessions whose end was not
const subagents = new Set(); // sessions that another one has started

function tell(event, payload) {
  return new Promise((resolve) => {
    try {
      const child = spawn(HOOK, ["opencode", event], { stdio: ["pipe", "ignore", "ignore"], windowsHide: true });
      const timer = setTimeout(resolve, WAIT_MS);
      const end = () => {
        clearTimeout(timer);
        resolve();
      };
      child.on("error", end);
      child.on("close", end);
      child.stdin.on("error", () => {});
      child.stdin.end(JSON.stringify({ hook_event_name: event, ...payload }));
    } catch {
      resolve();
    }
  });
}

export const AgentMemory = async ({ directory }) => {
  const about = (session) => ({ session_id: session, prompt_id: prompts.get(session), cwd: directory });

  const end = (session, reason) => {
    open.delete(session);
    return tell("SessionEnd", { session_id: session, cwd: directory, reason });
  };

  const happened = {
    "session.created": ({ info }) => {
      open.add(info.id);
      if (info.parentID) subagents.add(info.id);
      return tell("SessionStart", {
        session_id: info.id,
        cwd: info.directory ?? directory,
        source: "startup",
        parent_session_id: info.parentID,
      });
    },
    "session.idle": ({ sessionID }) => {
      const answer = answers.get(sessionID);
      answers.delete(sessionID);
      return answer === undefined
        ? undefined
        : tell("Stop", { ...about(sessionID), last_assistant_message: answer });
    },
    "session.error": ({ sessionID, error }) =>
      sessionID &&
      tell("StopFailure", { ...about(sessionID), error: error?.name, error_details: error?.data?.message }),
    "session.deleted": ({ info }) => end(info.id, "deleted"),
    // A tool that throws has no `tool.execute.after`.
    "message.part.updated": ({ part }) => {
      if (part.type !== "tool" || part.state.status !== "error" || failed.has(part.callID)) return undefined;
      failed.add(part.callID);
      return tell("PostToolUseFailure", {
        ...about(part.sessionID),
        tool_name: part.tool,
        tool_input: part.state.input,
        tool_use_id: part.callID,
        error: part.state.error,
      });
    },
  };

  const quietly = (work) => async (...given) => {
    try {
      await work(...given);
    } catch {
      // What could not be told is not worth an agent's error.
    }
  };

  return {
    "chat.message": quietly((input, { message, parts }) => {
      const words = parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text);
      if (words.length === 0) return undefined;
      open.add(input.sessionID);
      prompts.set(input.sessionID, message.id);
      const model = input.model && `${input.model.providerID}/${input.model.modelID}`;
      const source = subagents.has(input.sessionID) ? "subagent" : undefined;
      return tell("UserPromptSubmit", { ...about(input.sessionID), prompt: words.join("\n"), source, model });
    }),
    "tool.execute.after": quietly((input, output) =>
      tell("PostToolUse", {
        ...about(input.sessionID),
        tool_name: input.tool,
        tool_input: input.args,
        tool_use_id: input.callID,
        tool_response: { title: output.title, output: output.output, metadata: output.metadata },
      }),
    ),
    "experimental.text.complete": quietly((input, output) => {
      answers.set(input.sessionID, output.text);
    }),
    dispose: quietly(() => Promise.all([...open].map((session) => end(session, "exit")))),
    event: quietly(({ event }) => happened[event.type]?.(event.properties)),
  };
};
