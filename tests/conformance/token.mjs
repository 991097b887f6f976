// Adds the server's token to every request: the conformance suite itself has no way to give one.
import { Agent, setGlobalDispatcher } from "undici";

const authorization = `Bearer ${process.env.MCP_TOKEN}`;

function withToken(headers) {
  if (Array.isArray(headers)) return [...headers, "authorization", authorization];
  if (typeof headers?.[Symbol.iterator] === "function") return { ...Object.fromEntries(headers), authorization };
  return { ...headers, authorization };
}

setGlobalDispatcher(
  new Agent().compose((dispatch) => (options, handler) => dispatch({ ...options, headers: withToken(options.headers) }, handler)),
);
