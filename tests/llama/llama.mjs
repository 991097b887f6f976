// Asks llama.cpp, through node-llama-cpp, what a GGUF says. The question comes on stdin and the answer goes to stdout, both as JSON.
import { text } from "node:stream/consumers";
import { getLlama } from "node-llama-cpp";

const question = JSON.parse(await text(process.stdin));
// Nothing is built or downloaded: the program comes from npm, or there is none.
const llama = await getLlama({
  gpu: false,
  build: "never",
  skipDownload: true,
  // Its threads wait for each other without sleep: beside a busy compiler two take minutes for what one does in seconds.
  maxThreads: 1,
  logger: (level, message) => process.stderr.write(`${level}: ${message}\n`),
});
const model = await llama.loadModel({ modelPath: question.gguf });

async function sequenceFor(tokens) {
  const context = await model.createContext({ contextSize: tokens + 1 });
  return context.getSequence();
}

/** Continues a text by the most likely token each time. */
async function generate({ prompt, max_tokens }) {
  const prompt_ids = model.tokenize(prompt, true);
  const sequence = await sequenceFor(prompt_ids.length + max_tokens);
  const ids = [];
  let stopped = false;
  for await (const id of sequence.evaluate(prompt_ids, { temperature: 0, yieldEogToken: true })) {
    stopped = model.isEogToken(id);
    if (stopped) break;
    ids.push(id);
    if (ids.length === max_tokens) break;
  }
  return { text: model.detokenize(ids, true), stopped, prompt_ids, ids };
}

/** The most likely tokens after each token, with their probabilities. */
async function probabilities({ ids, most }) {
  const sequence = await sequenceFor(ids.length);
  const next = { generateNext: { probabilities: true, options: { temperature: 0 } } };
  const positions = await sequence.controlledEvaluate(ids.map((id) => [id, next]));
  return positions.map((position) => [...position.next.probabilities].slice(0, most));
}

const answer = await (question.prompt === undefined ? probabilities(question) : generate(question));
// Freeing the model would take longer than ending.
process.stdout.write(JSON.stringify(answer), () => process.exit(0));
