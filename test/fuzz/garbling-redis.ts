/**
 * A server that speaks as Redis does and holds one namespace, so far as a coordinator asks for it; and whose answers are garbled as
 * the draws say: in their words, in their types, in their bytes, or in which question they stand behind; or are a refusal that repeats
 * the question.
 */
import {
  SCRIPTS_SENT_BY_SUM,
  type ScriptName,
  scriptNamed,
} from "../../packages/coordinator/src/stores/redis-scripts.js";
import { type Echo, echoOfProxy, echoOfRedis } from "../redis/echoing-redis.js";
import { type RespServer, startRespServer } from "../redis/resp-server.js";
import type { Draw } from "./draw.js";
import { mutated } from "./mutation.js";

type Answer = string | number | null | readonly Answer[] | { readonly refusal: string };

export interface GarblingRedis extends RespServer {
  /** All bytes that it sent: what was granted must stand in them. */
  sent(): Buffer;
}

export interface Garbling {
  readonly draw: Draw;
  readonly storeId: string;
  /** Data nodes, as the record has it. */
  readonly nodeCount: number;
  /** Nothing is garbled but how many nodes acknowledged a step: it is never a number above 0. */
  readonly isNeverAcknowledged: boolean;
}

/** How long what is left of a garbled answer may take: then the connection ends, as those to a broken server do. */
const END_AFTER_GARBLED_MS = 15;
/** Most of all what scripts answer. */
const ONCE_IN_SCRIPTS = 3;
const ONCE_IN_LOG_INS = 8;
const ONCE_IN_OTHERS = 40;
const LOG_IN = /^(?:hello|auth)$/i;
const EPOCH = "e:r:0:0";
const RECEIPT_KEY = "5a".repeat(32);
/** The steps of the guard, as the store itself lists them, and what is read and noted beside them. */
const SCRIPTS: readonly ScriptName[] = [...SCRIPTS_SENT_BY_SUM, "read", "report"];
const nameOfSum = new Map(SCRIPTS.map((name) => [scriptNamed(name).sha1, name]));

const WORDS = [
  ..."$-1\r\n|*-1\r\n|*0\r\n|$5\r\nhello\r\n|:1\r\n|-ERR x\r\n|+OK\r\n|_\r\n|*1\r\n|$999999999\r\n|*99999999\r\n|%1\r\n|>2\r\n|$*\r\n|=1\r\n|!*\r\n".split(
    "|",
  ),
  ..."-FORKED x y\r\n|-EMPTY \r\n|-CORRUPT - x\r\n|-MOVED 1 127.0.0.1:1\r\n|-NOSCRIPT x\r\n|-LOADING x\r\n|NaN|-1|1e9".split(
    "|",
  ),
  ..."Infinity|0x10|1073741823|1073741824|9007199254740993| |\n|0|65|-0|__proto__|EXHAUSTED|AHEAD|STALEGEN|CLAIMED".split(
    "|",
  ),
].map((word) => Buffer.from(word));

export async function startGarblingRedis({
  draw,
  storeId,
  nodeCount,
  isNeverAcknowledged,
}: Garbling): Promise<GarblingRedis> {
  const sent: Buffer[] = [];
  const earlier: Buffer[] = [];
  const state = { mark: 0, generation: 0, phase: 0, changedAtMs: Date.now(), nodeCount };
  const server = await startRespServer((words, socket) => {
    const answer = answerTo(words, state, storeId);
    const whole = Buffer.from(respOf(answer));
    const isWait = words[0]?.toLowerCase() === "wait";
    if (isNeverAcknowledged) {
      socket.write(isWait ? respOf(draw.oneOf(NOT_ACKNOWLEDGED)) : whole);
      return;
    }
    const isGarbled = draw.onceIn(onceIn(words[0]));
    const bytes = isGarbled ? garbled(words, answer, draw, earlier) : whole;
    earlier.push(whole);
    sent.push(bytes);
    if (!socket.destroyed) socket.write(bytes);
    if (isGarbled) setTimeout(() => socket.destroy(), END_AFTER_GARBLED_MS);
  });
  return { ...server, sent: () => Buffer.concat(sent) };
}

function onceIn(command = ""): number {
  if (/^evalsha$/i.test(command)) return ONCE_IN_SCRIPTS;
  return LOG_IN.test(command) ? ONCE_IN_LOG_INS : ONCE_IN_OTHERS;
}

interface State {
  mark: number;
  generation: number;
  phase: number;
  changedAtMs: number;
  readonly nodeCount: number;
}

function answerTo(words: readonly string[], state: State, storeId: string): Answer {
  const [command = "", first = ""] = words;
  const answer = COMMANDS[command.toLowerCase()];
  if (answer !== undefined) return answer(first);
  const name = nameOfSum.get(first);
  if (name === undefined) return { refusal: "NOSCRIPT No matching script" };
  const parameters = words.slice(3 + Number(words[2]));
  return scriptAnswer(name, parameters, state, storeId);
}

const COMMANDS: Readonly<Record<string, (first: string) => Answer>> = {
  hello: () => [
    "server",
    "redis",
    "version",
    "7.0.0",
    "proto",
    3,
    "mode",
    "standalone",
    "role",
    "master",
    "modules",
    [],
  ],
  ping: (word) => (word === "" ? "PONG" : word),
  script: () => "OK",
  wait: () => 1,
  hsetnx: () => 1,
  hkeys: () => ["main"],
  info: () => "role:master\r\nconnected_slaves:0\r\nmaxmemory:0\r\n",
};

function scriptAnswer(name: ScriptName, parameters: readonly string[], state: State, storeId: string): Answer {
  if (name === "check") return [parameters[0] ?? "", "master", EPOCH, `${state.generation}`];
  if (name === "report") return "OK";
  if (name === "read") {
    const { mark, changedAtMs, generation, phase } = state;
    return [
      storeId,
      "0",
      `${mark}`,
      `${changedAtMs}`,
      `${generation}`,
      `${phase}`,
      `${state.nodeCount}`,
      RECEIPT_KEY,
      "-",
    ];
  }
  const [, nonce = "", , , , , , ...own] = parameters;
  state.changedAtMs = Date.now();
  if (name === "claim") state.generation++;
  const rest = [`${state.changedAtMs}`, EPOCH, `${state.generation}`, `${state.nodeCount}`];
  if (name !== "lease") return [nonce, storeId, "0", `${state.mark}`, ...rest, "0"];
  const told = own.map((word) => {
    const [ownNonce = "", , , runCount = ""] = word.split(" ");
    state.mark += Number(runCount);
    return `${ownNonce} ${state.mark} ${runCount}`;
  });
  return [storeId, "0", ...rest, ...told];
}

function respOf(answer: Answer): string {
  if (answer === null) return "$-1\r\n";
  if (typeof answer === "number") return `:${answer}\r\n`;
  if (typeof answer === "string") return `$${Buffer.byteLength(answer)}\r\n${answer}\r\n`;
  if (Array.isArray(answer)) return `*${answer.length}\r\n${answer.map(respOf).join("")}`;
  return `-${(answer as { refusal: string }).refusal}\r\n`;
}

function garbled(words: readonly string[], answer: Answer, draw: Draw, earlier: readonly Buffer[]): Buffer {
  const whole = Buffer.from(respOf(answer));
  if (LOG_IN.test(words[0] ?? "") && draw.onceIn(2)) return echoed(words, draw);
  switch (draw.below(9)) {
    case 0:
      return mutated(whole, draw, { words: WORDS });
    case 1:
      return whole.subarray(0, draw.below(whole.length));
    case 2:
      return earlier.length === 0 ? whole : draw.oneOf(earlier);
    case 3:
      return Buffer.concat([whole, whole]);
    case 4:
      return Buffer.from(respOf(draw.oneOf(ODD_ANSWERS)));
    case 5:
      return echoed(words, draw);
    default:
      return Buffer.from(respOf(changed(answer, draw)));
  }
}

function echoed(words: readonly string[], draw: Draw): Buffer {
  return Buffer.from(respOf({ refusal: draw.oneOf(ECHOES)(words) }));
}

/** One of its words is another; or one more, or one less. */
function changed(answer: Answer, draw: Draw): Answer {
  if (!Array.isArray(answer) || answer.length === 0) return draw.oneOf(ODD_ANSWERS);
  // What is granted stands last.
  const at = draw.onceIn(2) ? answer.length - 1 : draw.below(answer.length);
  const word = answer[at] as Answer;
  const others = answer.toSpliced(at, 1, typeof word === "string" ? changedWord(word, draw) : draw.oneOf(ODD_ANSWERS));
  if (draw.onceIn(8)) return draw.onceIn(2) ? answer.toSpliced(at, 1) : [...answer, word];
  return draw.onceIn(3) ? changed(others, draw) : others;
}

/** Some of its fields are others, and most stay: above all the nonce. */
function changedWord(word: string, draw: Draw): Answer {
  if (draw.onceIn(6)) return draw.oneOf(ODD_ANSWERS);
  const fields = word.split(" ");
  const at = fields.length === 1 ? 0 : 1 + draw.below(fields.length - 1);
  const isSmall = draw.onceIn(2);
  const others = fields.map((field, index) => {
    if (index !== at && (index === 0 || draw.onceIn(2))) return field;
    return isSmall ? String(draw.below(9)) : draw.oneOf(ODD_WORDS);
  });
  return others.join(" ");
}

const ECHOES: readonly Echo[] = [
  echoOfRedis,
  echoOfProxy,
  (words) => words.map(encodeURIComponent).join("/"),
  (words) => `CORRUPT nonce ${JSON.stringify(words)}`,
  (words) => `OPERATOR ${words.slice(1).reverse().join(" ")}`,
];

const ODD_WORDS = [
  ..."| |-|0|-0|-1|1|2|3|5|63|64|65|1.5|1e1|1e9|NaN|Infinity|-Infinity|0x3|٣|null|true|[object Object]".split("|"),
  ..."1073741822|1073741823|1073741824|9007199254740992|99999999999999999999|00003|3\n|+3".split("|"),
  ..."FORKED|EMPTY|CORRUPT|EXHAUSTED|AHEAD|STALEGEN|CLAIMED|SEALED|MOVED|master|slave|__proto__|toString".split("|"),
];
const NOT_ACKNOWLEDGED: readonly Answer[] = [
  null,
  0,
  -1,
  "",
  "OK",
  "x",
  "1",
  [],
  ["1"],
  [1],
  ["x", "y"],
  { refusal: "ERR x" },
];
const ODD_ANSWERS: readonly Answer[] = [
  null,
  0,
  -1,
  "",
  "OK",
  [],
  [null],
  [[], [[]]],
  Array.from({ length: 2_000 }, () => "x"),
  "x".repeat(200_000),
  ...[
    "ERR",
    "ERR x",
    "NOSCRIPT x",
    "FORKED",
    "FORKED x",
    "FORKED x y z",
    "CORRUPT - -",
    "EMPTY nonce",
    "AHEAD x NaN",
  ].map((refusal) => {
    return { refusal };
  }),
  ...[
    "READONLY x",
    "NOAUTH x",
    "LOADING x",
    "BUSY x",
    "MISCONF x",
    "MOVED 1 a:1",
    "constructor x",
    "toString a b",
    "",
  ].map((refusal) => {
    return { refusal };
  }),
];
