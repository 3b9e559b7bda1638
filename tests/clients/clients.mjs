// Lets the official JavaScript clients read the event streams of a server, and prints what they saw.
//
//   node clients.mjs BASE_URL
//
// One line of JSON for each client, API, way of reading and scenario. What a stream does to a client,
// throwing included, is a result and stands in its line: only a crash of this script ends it non-zero.

import { readFileSync } from "node:fs";

import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import Anthropic from "@anthropic-ai/sdk";
import { jsonSchema, streamText, tool } from "ai";
import OpenAI from "openai";

const SCENARIOS = ["text", "reasoning", "tools", "keepalive", "error", "interrupted"];
const MODEL = "any-model";
const PROMPT = "Go on.";
const API_KEY = "none";
// A retry would ask for the same broken stream again and hide how the client met it.
const MAX_RETRIES = 0;
// `ai` takes a call of a tool that it was not told of for an invalid call: these may be called.
const TOOL_NAMES = ["get_weather", "get_time"];

// `ai` would print its advice between our lines.
globalThis.AI_SDK_LOG_WARNINGS = false;

// ---------------------------------------------------------------------------------- what is seen

/** What a client shows. It is filled while reading, so that it outlives an error. */
const newSight = () => ({
  text: "",
  reasoning: "",
  tools: [],
  usage: null,
  finish: null,
  final: null,
  error: null,
});

const textOrNull = (value) => (value === undefined || value === null ? null : String(value));

/** An error as it came: thrown by the client, or handed over as a value. */
function describe(error) {
  return {
    class: error?.constructor?.name ?? typeof error,
    message: String(error?.message ?? error),
    type: textOrNull(error?.type),
    code: textOrNull(error?.code),
  };
}

const toolCall = (id, name, args) => ({ id, name, arguments: JSON.parse(args) });

const usageOf = (input, output) =>
  input === undefined && output === undefined ? null : { input, output };

/** The final object as the JSON that it would be sent as. */
const plain = (value) => JSON.parse(JSON.stringify(value));

// ------------------------------------------------------------------------------- OpenAI: Chat API

const openai = (url) => new OpenAI({ apiKey: API_KEY, baseURL: url, maxRetries: MAX_RETRIES });

const CHAT_REQUEST = {
  model: MODEL,
  messages: [{ role: "user", content: PROMPT }],
  stream_options: { include_usage: true },
};

const chatUsage = (usage) => (usage ? usageOf(usage.prompt_tokens, usage.completion_tokens) : null);

const chatTool = ({ id, function: { name, arguments: args } }) => toolCall(id, name, args);

/** Joins the pieces of the calls, which the raw stream leaves to its reader. */
function addChatPieces(calls, pieces) {
  for (const { index, id, function: piece } of pieces) {
    const call = (calls[index] ??= { id, function: { name: piece.name, arguments: "" } });
    call.function.arguments += piece.arguments ?? "";
  }
}

function seeChatChunk(chunk, sight) {
  const delta = chunk.choices[0]?.delta;
  sight.text += delta?.content ?? "";
  // Not in the SDK's types, but it keeps the members that it does not know.
  sight.reasoning += delta?.reasoning_content ?? "";
  sight.finish = chunk.choices[0]?.finish_reason ?? sight.finish;
  sight.usage = chatUsage(chunk.usage) ?? sight.usage;
}

async function openaiChatRaw(url, sight) {
  const calls = [];
  const stream = await openai(url).chat.completions.create({ ...CHAT_REQUEST, stream: true });
  for await (const chunk of stream) {
    seeChatChunk(chunk, sight);
    addChatPieces(calls, chunk.choices[0]?.delta?.tool_calls ?? []);
  }
  sight.tools = calls.map(chatTool);
}

async function openaiChatHelper(url, sight) {
  const stream = openai(url).chat.completions.stream(CHAT_REQUEST);
  stream.on("content", (delta) => (sight.text += delta));
  // The helper has no event for reasoning, and its final message keeps the last piece only.
  stream.on("chunk", (chunk) => (sight.reasoning += chunk.choices[0]?.delta?.reasoning_content ?? ""));
  const final = await stream.finalChatCompletion();
  const [choice] = final.choices;
  sight.tools = (choice.message.tool_calls ?? []).map(chatTool);
  sight.usage = chatUsage(final.usage);
  sight.finish = choice.finish_reason;
  sight.final = plain(final);
}

// -------------------------------------------------------------------------- OpenAI: Responses API

const RESPONSES_REQUEST = { model: MODEL, input: PROMPT };

const RESPONSE_ENDS = ["response.completed", "response.incomplete", "response.failed"];

function seeResponse({ status, usage, error }, sight) {
  sight.finish = status;
  sight.usage = usage ? usageOf(usage.input_tokens, usage.output_tokens) : null;
  sight.error = error ? describe(error) : null;
}

const responseTools = (items) =>
  items
    .filter((item) => item.type === "function_call")
    .map((item) => toolCall(item.call_id, item.name, item.arguments));

function seeResponseEvent(event, sight) {
  if (event.type === "response.output_text.delta") sight.text += event.delta;
  if (event.type === "response.reasoning_summary_text.delta") sight.reasoning += event.delta;
  if (event.type === "response.output_item.done") sight.tools.push(...responseTools([event.item]));
  if (RESPONSE_ENDS.includes(event.type)) seeResponse(event.response, sight);
  if (event.type === "error") sight.error = describe(event);
}

async function openaiResponsesRaw(url, sight) {
  const stream = await openai(url).responses.create({ ...RESPONSES_REQUEST, stream: true });
  for await (const event of stream) seeResponseEvent(event, sight);
}

async function openaiResponsesHelper(url, sight) {
  const stream = openai(url).responses.stream(RESPONSES_REQUEST);
  stream.on("response.output_text.delta", ({ delta }) => (sight.text += delta));
  stream.on("response.reasoning_summary_text.delta", ({ delta }) => (sight.reasoning += delta));
  const final = await stream.finalResponse();
  seeResponse(final, sight);
  sight.tools = responseTools(final.output);
  sight.final = plain(final);
}

// ----------------------------------------------------------------------- Anthropic: Messages API

/** The SDK writes the `/v1` of the path itself. */
const anthropic = (url) =>
  new Anthropic({ apiKey: API_KEY, baseURL: url.replace(/\/v1$/, ""), maxRetries: MAX_RETRIES });

const MESSAGES_REQUEST = {
  model: MODEL,
  max_tokens: 1024,
  messages: [{ role: "user", content: PROMPT }],
};

/** The last counts are the total; a count that does not stand there is that of the start. */
const messagesUsage = (usage, start) =>
  usageOf(usage.input_tokens ?? start?.input, usage.output_tokens ?? start?.output);

function seeMessagesDelta(delta, call, sight) {
  if (delta.type === "text_delta") sight.text += delta.text;
  if (delta.type === "thinking_delta") sight.reasoning += delta.thinking;
  if (delta.type === "input_json_delta") call.json += delta.partial_json;
}

function seeMessagesEvent(event, calls, sight) {
  switch (event.type) {
    case "message_start":
      sight.usage = messagesUsage(event.message.usage);
      break;
    case "content_block_start":
      if (event.content_block.type === "tool_use") {
        calls.set(event.index, { ...event.content_block, json: "" });
      }
      break;
    case "content_block_delta":
      seeMessagesDelta(event.delta, calls.get(event.index), sight);
      break;
    case "message_delta":
      sight.finish = event.delta.stop_reason;
      sight.usage = messagesUsage(event.usage, sight.usage);
      break;
  }
}

async function anthropicRaw(url, sight) {
  const calls = new Map();
  const stream = await anthropic(url).messages.create({ ...MESSAGES_REQUEST, stream: true });
  for await (const event of stream) seeMessagesEvent(event, calls, sight);
  sight.tools = [...calls.values()].map(({ id, name, json }) => toolCall(id, name, json || "{}"));
}

async function anthropicHelper(url, sight) {
  const stream = anthropic(url).messages.stream(MESSAGES_REQUEST);
  stream.on("text", (delta) => (sight.text += delta));
  stream.on("thinking", (delta) => (sight.reasoning += delta));
  const final = await stream.finalMessage();
  sight.tools = final.content
    .filter((block) => block.type === "tool_use")
    .map(({ id, name, input }) => ({ id, name, arguments: input }));
  sight.usage = messagesUsage(final.usage);
  sight.finish = final.stop_reason;
  sight.final = plain(final);
}

// ------------------------------------------------------------------------------------ Vercel's ai

const anyTool = tool({ inputSchema: jsonSchema({ type: "object" }) });
const TOOLS = Object.fromEntries(TOOL_NAMES.map((name) => [name, anyTool]));

function seePart(part, sight) {
  switch (part.type) {
    case "text-delta":
      sight.text += part.text;
      break;
    case "reasoning-delta":
      sight.reasoning += part.text;
      break;
    case "tool-call":
      sight.tools.push({ id: part.toolCallId, name: part.toolName, arguments: part.input });
      if (part.invalid) sight.error ??= describe(part.error);
      break;
    case "finish":
      sight.finish = part.finishReason;
      sight.usage = usageOf(part.totalUsage.inputTokens, part.totalUsage.outputTokens);
      break;
    case "error":
      // What follows the first one follows from it.
      sight.error ??= describe(part.error);
      break;
  }
}

/** Reads with `streamText` what the model of a provider makes of the stream. */
const streamedBy = (modelAt) => async (url, sight) => {
  const { fullStream } = streamText({
    model: modelAt(url),
    prompt: PROMPT,
    tools: TOOLS,
    maxRetries: MAX_RETRIES,
    // It would print the error, which also is a part of the stream.
    onError: () => {},
  });
  for await (const part of fullStream) seePart(part, sight);
};

const settings = (url) => ({ apiKey: API_KEY, baseURL: url });

const aiOpenaiChat = streamedBy((url) => createOpenAI(settings(url)).chat(MODEL));
const aiOpenaiResponses = streamedBy((url) => createOpenAI(settings(url)).responses(MODEL));
const aiAnthropic = streamedBy((url) => createAnthropic(settings(url))(MODEL));
const aiCompatible = streamedBy((url) =>
  createOpenAICompatible({ ...settings(url), name: "any", includeUsage: true })(MODEL),
);

// --------------------------------------------------------------------------------------- the runs

const RUNS = [
  ["openai", "chat", "raw", openaiChatRaw],
  ["openai", "chat", "helper", openaiChatHelper],
  ["openai", "responses", "raw", openaiResponsesRaw],
  ["openai", "responses", "helper", openaiResponsesHelper],
  ["@anthropic-ai/sdk", "messages", "raw", anthropicRaw],
  ["@anthropic-ai/sdk", "messages", "helper", anthropicHelper],
  ["@ai-sdk/openai", "chat", "streamText", aiOpenaiChat],
  ["@ai-sdk/openai", "responses", "streamText", aiOpenaiResponses],
  ["@ai-sdk/openai-compatible", "chat", "streamText", aiCompatible],
  ["@ai-sdk/anthropic", "messages", "streamText", aiAnthropic],
];

/** Read from the file, as not every package exports its package.json. */
function installedVersion(name) {
  const file = new URL(`node_modules/${name}/package.json`, import.meta.url);
  return JSON.parse(readFileSync(file, "utf8")).version;
}

async function look(read, url) {
  const sight = newSight();
  try {
    await read(url, sight);
  } catch (error) {
    sight.error = describe(error);
  }
  return sight;
}

async function main(base) {
  for (const scenario of SCENARIOS) {
    for (const [client, api, mode, read] of RUNS) {
      const version = installedVersion(client);
      const sight = await look(read, `${base}/${scenario}/v1`);
      console.log(JSON.stringify({ client, version, api, mode, scenario, ...sight }));
    }
  }
}

const [base] = process.argv.slice(2);
if (base === undefined) throw new Error("usage: node clients.mjs BASE_URL");
await main(base.replace(/\/$/, ""));
