/**
 * What the scripts of lua/ refuse before they look any further: words that no caller of ours sends, keys and records that no script of
 * ours wrote. Each answers with its own word, and changes nothing.
 */
import type { Redis } from "ioredis";
import { beforeEach, describe, expect, test } from "vitest";
import { sharedRedis } from "../../../test/redis/test-redis.js";
import { checksumOf } from "../src/guard/record.js";
import { keysOf, type NamespaceKeys, type ScriptName, scriptNamed } from "../src/stores/redis/scripts.js";
import { commandsFor, NAMESPACE, storeIdFrom } from "./commands-for-test.js";
import { clientAt, storeAt } from "./redis-for-test.js";
import { inHand } from "./store-in-hand.js";

const STORE_ID = storeIdFrom(1);
const RECEIPT_KEY = "b".repeat(64);
const NO_NUMBERS = ["", "x", " 1", "-1", "1.5", "1e3", "0x10", "NaN", "inf", "9".repeat(16)];

/** A parameter that is a number, or another text that the script must be able to read. */
type Parameter = number | { readonly free: string } | { readonly text: string; readonly wrong: string };
const free = (text: string): Parameter => ({ free: text });
const namespace = free(NAMESPACE);

const STEPS: Partial<Record<ScriptName, readonly Parameter[]>> = {
  heartbeat: [0, 0],
  claim: [0, 0],
  confirm: [0, 0],
  seal: [0, 0, { text: "forked", wrong: "sealed" }],
  recover: [0, 0, 1, { text: RECEIPT_KEY, wrong: "b" }],
  init: [1, { text: RECEIPT_KEY, wrong: "b" }],
  advance: [0, 0, 0],
  lease: [free("nonce-1 0 0 1 0 nonce-0123456789 {}")],
};
const READING: Partial<Record<ScriptName, readonly Parameter[]>> = {
  leases: [namespace, 1, { text: "newest_first", wrong: "newest" }, 10],
};
const WRITING: Partial<Record<ScriptName, readonly Parameter[]>> = {
  report: [namespace, 1, free("nonce"), 1, 0],
  trim: [namespace, 1, free(STORE_ID), 0, 5, 0, 5, 0],
  import: [namespace, 5, 5, 1, free("{}"), free("nonce"), 0, 1, 0, 1],
};
const OTHERS = { ...READING, ...WRITING };

let redis: Redis;
let keys: NamespaceKeys;

beforeEach(async () => {
  const url = sharedRedis().storeUrl;
  redis = clientAt(sharedRedis().url);
  keys = keysOf(new URL(url).searchParams.get("prefix") as string, NAMESPACE);
  const { store, lease } = inHand(await storeAt(url), { storeId: STORE_ID });
  await store.step(NAMESPACE, commandsFor(STORE_ID).init());
  await lease({ runCount: 5 });
  await lease();
});

async function call(name: ScriptName, words: readonly (string | number)[]): Promise<unknown> {
  return await redis.eval(scriptNamed(name).text, keysFor(name).length, ...keysFor(name), ...words);
}

function keysFor(name: ScriptName): readonly string[] {
  const { record, ledger, holders, reports, retention } = keys;
  if (name === "read") return [record];
  if (name === "report") return [record, ledger, reports];
  if (name === "trim") return [record, ledger, reports, retention];
  if (name in OTHERS) return [record, ledger, holders, reports];
  return [record, ledger, holders, "aside-1", "aside-2", "aside-3"];
}

function soundWords(name: ScriptName): readonly (string | number)[] {
  return [...commonWords(name), ...(STEPS[name] ?? OTHERS[name] ?? [namespace]).map(wordOf)];
}

function commonWords(name: ScriptName): readonly (string | number)[] {
  return name in STEPS ? [NAMESPACE, "nonce-1", STORE_ID, Date.now(), 2_000, 300_000, 0] : [];
}

function wordOf(parameter: Parameter): string | number {
  if (typeof parameter === "number") return parameter;
  return "free" in parameter ? parameter.free : parameter.text;
}

/** Everything under the keys of the namespace. */
async function contents(): Promise<unknown> {
  return await Promise.all(
    Object.values(keys).map(async (key) => [key, await redis.dump(key), (await redis.pttl(key)) > 0]),
  );
}

async function expectRefused(name: ScriptName, words: readonly (string | number)[], refusal: RegExp): Promise<void> {
  const before = await contents();
  await expect(call(name, words), JSON.stringify(words)).rejects.toThrow(refusal);
  expect(await contents()).toEqual(before);
}

describe("words that can't be read are a bug of the caller", () => {
  test.each(Object.entries({ ...STEPS, ...OTHERS }) as [ScriptName, readonly Parameter[]][])(
    "%s",
    async (name, parameters) => {
      const words = soundWords(name);
      const first = words.length - parameters.length;
      for (const [at, parameter] of parameters.entries()) {
        if (typeof parameter === "object" && "free" in parameter) continue;
        for (const word of typeof parameter === "number" ? NO_NUMBERS : [parameter.wrong])
          await expectRefused(name, words.with(first + at, word), /^MISUSE /);
      }
    },
  );

  test("what every step begins with", async () => {
    const words = soundWords("heartbeat");
    for (const at of [3, 4, 5, 6])
      for (const word of NO_NUMBERS)
        await expectRefused("heartbeat", words.with(at, word), /^MISUSE nonce-1 every step/);
    await expectRefused("heartbeat", words.with(6, 2), /^MISUSE nonce-1 every step/);
  });

  test("a copied lease that lacks a field", async () => {
    const unreported = [...soundWords("import").slice(0, -4), "-", "-", "-"];
    await expectRefused("import", unreported, /^MISUSE \S+ import takes nine fields/);
  });

  test("a store id", async () => {
    for (const name of ["init", "recover"] as const)
      await expectRefused(name, soundWords(name).with(2, "none"), /^MISUSE nonce-1 not a store id/);
  });

  test("a lease among others", async () => {
    const words = soundWords("lease");
    const sound = String(words.at(-1)).split(" ");
    const bad = [
      ...[1, 2, 3, 4].flatMap((at) => NO_NUMBERS.map((text) => sound.with(at, text).join(" "))),
      sound.with(3, "0").join(" "),
      sound.with(5, "two words").join(" "),
      sound.slice(0, 6).join(" "),
      "",
    ];
    for (const word of bad) await expectRefused("lease", [...words, word], /^MISUSE nonce-1 /);
  });
});

/** As a hand would that knows the checksum: what is wrong is the field alone. */
async function edit(name: string, text: string | undefined): Promise<void> {
  const { [name]: _, ...fields } = await redis.hgetall(keys.record);
  const edited = { ...fields, ...(text !== undefined && { [name]: text }) };
  await redis.del(keys.record);
  await redis.hset(keys.record, { ...edited, k: checksumOf(edited) });
}

/** Puts a string in the place of a key. */
async function putText(key: string): Promise<void> {
  await redis.set(key, "x");
}

const NAMES_OF_STEPS = ["lease", "heartbeat", "claim", "confirm", "seal", "advance"] as const;
const NAMES_OF_READING = ["leases"] as const;
const OF_A_NAMESPACE = [...NAMES_OF_STEPS, "read", "report", ...NAMES_OF_READING] as const;
const OF_A_RECORD = [...OF_A_NAMESPACE, "trim"] as const;

type Hand = readonly [what: string, refusal: RegExp, names: readonly ScriptName[], change: () => Promise<unknown>];

const HANDS: readonly Hand[] = [
  ["the record is gone", /^EMPTY /, OF_A_NAMESPACE, () => redis.del(keys.record)],
  ["the record has no schema", /^CORRUPT \S+ the record has no schema/, OF_A_RECORD, () => edit("v", undefined)],
  ["the record has another schema", /^VERSION \S+ 9/, OF_A_RECORD, () => edit("v", "9")],
  ["a field can't be", /^CORRUPT \S+ a field of the record/, OF_A_RECORD, () => edit("n", "0")],
  ["the checksum is wrong", /^CORRUPT \S+ the checksum/, OF_A_RECORD, () => redis.hset(keys.record, "c", "9")],
  ["the record is another namespace's", /^FOREIGN /, OF_A_RECORD, () => edit("ns", "other")],
  ["the record expires", /^CORRUPT \S+ the record has a time/, OF_A_RECORD, () => redis.expire(keys.record, 1_000)],
  ["the record is a text", /^CORRUPT /, [...OF_A_RECORD, ...NAMES_OF_READING, "import"], () => putText(keys.record)],
  [
    "the ledger is a text",
    /^CORRUPT /,
    [...NAMES_OF_STEPS, ...NAMES_OF_READING, "report", "trim", "import"],
    () => putText(keys.ledger),
  ],
  [
    "the holders are a text",
    /^CORRUPT /,
    [...NAMES_OF_STEPS, ...NAMES_OF_READING, "import"],
    () => putText(keys.holders),
  ],
  [
    "the reports are a text",
    /^CORRUPT /,
    [...NAMES_OF_READING, "report", "trim", "import"],
    () => putText(keys.reports),
  ],
  ["the retention is a text", /^CORRUPT /, ["trim"], () => putText(keys.retention)],
  [
    "where it was trimmed is no number",
    /^CORRUPT \S+ where it was trimmed/,
    ["trim"],
    () => redis.hset(keys.retention, "through", "x"),
  ],
  [
    "an entry of the ledger is none of ours",
    /^CORRUPT \S+ entry/,
    ["leases", "report"],
    async () => {
      await redis.del(keys.ledger);
      await redis.xadd(keys.ledger, "5-0", "a", "1", "t", String(Date.now()), "h", "1", "x", "nonce");
    },
  ],
  ["a holder is missing", /^CORRUPT \S+ holder 1/, NAMES_OF_READING, () => redis.del(keys.holders)],
  [
    "a report is cut short",
    /^CORRUPT \S+ a report/,
    [...NAMES_OF_READING, "trim"],
    () => redis.hset(keys.reports, "0", "short"),
  ],
  ["the store is another", /^FOREIGN /, [...NAMES_OF_STEPS, "trim"], () => edit("sid", storeIdFrom(2))],
  ["the store has moved", /^MOVED /, ["heartbeat", "lease", "trim"], () => seal("moved")],
  ["the store is one of two copies", /^FORKED /, ["heartbeat", "lease", "trim"], () => seal("forked")],
];

async function seal(text: string): Promise<void> {
  await edit("p", "2");
  await edit("ph", text);
}

describe("keys that another hand has changed", () => {
  test.each(HANDS)("%s", async (_, refusal, names, change) => {
    await change();
    for (const name of names) await expectRefused(name, soundWords(name), refusal);
  });
});

test("clocks that agree, both before the release, are refused", async () => {
  const releasedAt = /local RELEASED_AT_MS = \d+/;
  const { text } = scriptNamed("heartbeat");
  expect(text).toMatch(releasedAt);
  const later = text.replace(releasedAt, `local RELEASED_AT_MS = ${Date.now() + 3_600_000}`);
  await expect(redis.eval(later, 3, ...keysFor("heartbeat").slice(0, 3), ...soundWords("heartbeat"))).rejects.toThrow(
    /^CLOCK nonce-1 0$/,
  );
});
