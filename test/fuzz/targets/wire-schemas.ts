/**
 * The schemas of the wire: what is derived from a valid value by changing places of it passes only where the plain limits let it pass,
 * and what passed is plain JSON, the same after a round trip, with no key that was not asked for.
 */
import assert from "node:assert/strict";
import * as operator from "../../../packages/protocol/src/operator-schemas.js";
import * as wire from "../../../packages/protocol/src/schemas.js";
import type { Draw } from "../draw.js";
import { mutatedJson } from "../json-mutation.js";
import * as limits from "../plain-limits.js";
import { type FuzzTarget, NOTHING_TO_STOP } from "../target.js";

const NONCE = "nonce-0123456789";
const RECEIPT = "r".repeat(43);
const holder = { name: "importer", host: "mail-1", pid: 4711, labels: { archive: "lists", constructor: "x" } };
const entry = {
  version: 0,
  firstRun: 1,
  runCount: 2,
  leasedAtMs: 1_700_000_000_000,
  holder,
  coordinator: "c",
  nonce: NONCE,
};
const progress = { run: 2, lastSequence: 7, state: "burnt", reportedAtMs: 1_700_000_000_001 };
const guard = {
  state: "open",
  code: null,
  sinceMs: 1,
  explanation: "",
  generation: 0,
  roomRuns: 9,
  nodeCount: 1,
  lastRecovery: null,
};
const filter = { holder: "importer", host: "mail-1", label: ["a=b", "c=d=e"], state: "open", leasedFromMs: "1" };
const filterLimits = {
  holder: limits.optional(limits.printable(64)),
  host: limits.optional(limits.printable(253)),
  label: limits.optional(limits.labelsAsked),
  state: limits.optional(limits.oneOf("open", "exhausted", "closed", "burnt", "unreported")),
  leasedFromMs: limits.optional(limits.numberText(limits.timeMs)),
  leasedToMs: limits.optional(limits.numberText(limits.timeMs)),
  fromRun: limits.optional(limits.numberText(limits.ledgerId)),
  toRun: limits.optional(limits.numberText(limits.ledgerId)),
};

interface Shape {
  readonly schema: {
    safeParse(value: unknown): {
      readonly success: boolean;
      readonly data?: unknown;
      readonly error?: Error | undefined;
    };
    parse(value: unknown): unknown;
  };
  readonly valid: unknown;
  /** For what comes from strangers: all that may pass. Answers are read more freely: unknown keys are left out. */
  readonly limit?: limits.Limit;
}

const SHAPES: Readonly<Record<string, Shape>> = {
  lease: {
    schema: wire.leaseRequestSchema,
    valid: { runCount: 1, nonce: NONCE, holder, lastRun: 5, receipt: RECEIPT, sentAtMs: 1, spareRunCount: 2 },
    limit: limits.exactly({
      runCount: limits.whole(1, 64),
      nonce: limits.nonce,
      holder: limits.exactly({
        name: limits.printable(64),
        host: limits.printable(253),
        pid: limits.whole(0, 4_294_967_295),
        labels: limits.labels,
      }),
      lastRun: limits.orNull(limits.ledgerId),
      receipt: limits.orNull(limits.receipt),
      sentAtMs: limits.timeMs,
      spareRunCount: limits.optional(limits.whole(0)),
    }),
  },
  report: {
    schema: wire.reportRequestSchema,
    valid: { nonce: NONCE, lastSequence: 16_383, state: "exhausted" },
    limit: (value) => {
      const isExhausted = (value as { state?: unknown } | null)?.state === "exhausted";
      const lastSequence = limits.whole(isExhausted ? 16_383 : 0, 16_383);
      return limits.exactly({
        nonce: limits.nonce,
        lastSequence: isExhausted ? lastSequence : limits.orNull(lastSequence),
        state: limits.oneOf("open", "exhausted", "closed"),
      })(value);
    },
  },
  labels: {
    schema: operator.labelsRequestSchema,
    valid: { labels: { archive: "lists", constructor: "x" } },
    limit: limits.exactly({ labels: limits.labels }),
  },
  runs: {
    schema: wire.runsQuerySchema,
    valid: { ...filter, cursor: "12", limit: "50" },
    limit: limits.exactly({
      ...filterLimits,
      cursor: limits.optional(limits.letters("0123456789", 1, 10)),
      limit: limits.optional(limits.numberText(limits.whole(1, 500))),
    }),
  },
  export: {
    schema: operator.exportQuerySchema,
    valid: { ...filter, toRun: "9", format: "csv" },
    limit: limits.exactly({ ...filterLimits, format: limits.optional(limits.oneOf("csv", "ndjson")) }),
  },
  inspect: {
    schema: wire.inspectQuerySchema,
    valid: { neighbours: "no" },
    limit: limits.exactly({ neighbours: limits.optional(limits.oneOf("yes", "no")) }),
  },
  history: {
    schema: operator.historyQuerySchema,
    valid: { windowMs: "86400000" },
    limit: limits.exactly({
      windowMs: limits.optional(limits.numberText(limits.oneOf(3_600_000, 86_400_000, 604_800_000))),
    }),
  },
  namespace: {
    schema: wire.namespaceSchema,
    valid: "main",
    limit: limits.letters("abcdefghijklmnopqrstuvwxyz0123456789._-", 1, 63, "abcdefghijklmnopqrstuvwxyz0123456789"),
  },
  leaseAnswer: {
    schema: wire.leaseSchema,
    valid: { namespace: "main", storeId: "s", ...entry, receipt: RECEIPT },
  },
  runsAnswer: {
    schema: wire.runsAnswerSchema,
    valid: {
      namespace: "main",
      leases: [{ ...entry, progress }],
      nextCursor: "1",
      trimmed: { upToRun: 1, lastLeasedAtMs: 1 },
    },
  },
  inspectAnswer: {
    schema: wire.inspectAnswerSchema,
    valid: {
      namespace: "main",
      callNumber: "2VznWE2i",
      explanation: "",
      verdict: "reported",
      version: 0,
      run: 1,
      sequence: 3,
      state: "open",
      lastSequence: 3,
      lease: {
        ...entry,
        progress: null,
      },
      neighbours: null,
    },
  },
  namespacesAnswer: {
    schema: operator.namespacesAnswerSchema,
    valid: {
      store: "memory",
      coordinator: "c",
      release: "0",
      namespaces: [
        {
          namespace: "main",
          labels: { a: "b" },
          record: null,
          guard,
        },
      ],
    },
  },
  exportEnd: { schema: operator.exportEndSchema, valid: { end: true, leaseCount: 3, upToRun: null } },
  errorAnswer: { schema: wire.errorAnswerSchema, valid: { code: "not_found", message: "m", retryAfterMs: 3 } },
};
const NAMES = Object.keys(SHAPES);

export const wireSchemas: FuzzTarget = {
  name: "wire-schemas",
  shortCount: 10_000,
  start: async () => ({ input, check, stop: NOTHING_TO_STOP }),
};

/** The number of the shape, then a value as JSON. */
function input(draw: Draw): Buffer {
  // What moves the mark most of all.
  const at = draw.onceIn(3) ? NAMES.indexOf("lease") : draw.below(NAMES.length);
  return Buffer.concat([Buffer.of(at), mutatedJson(SHAPES[NAMES[at] as string]?.valid, draw)]);
}

function check(bytes: Buffer): void {
  const { schema, limit } = SHAPES[NAMES[(bytes[0] ?? 0) % NAMES.length] as string] as Shape;
  const value = jsonIn(bytes.subarray(1).toString("utf8"));
  if (value === undefined) return;
  const { success, data, error } = schema.safeParse(value);
  const verdict = limit?.(value);
  if (verdict !== undefined) assert.equal(success, verdict, `passed: ${success}; the plain limits say ${verdict}`);
  assert.equal(({} as { polluted?: unknown }).polluted, undefined, "the prototype of all objects was changed");
  if (!success) {
    assert.equal(error?.name, "ZodError");
    return;
  }
  mustBePlain(data);
  const written = JSON.parse(JSON.stringify(data));
  assert(isSame(written, data), "it is another value after a round trip");
  assert(isSame(schema.parse(written), data), "what passed does not pass again as it is");
}

/** As `===` has it: -0, which JSON can't keep, is 0 to everybody. */
function isSame(one: unknown, other: unknown): boolean {
  if (typeof one !== "object" || one === null || typeof other !== "object" || other === null) return one === other;
  const keys = Object.keys(one);
  if (keys.length !== Object.keys(other).length || Array.isArray(one) !== Array.isArray(other)) return false;
  return keys.every((key) => Object.hasOwn(other, key) && isSame(one[key as never], other[key as never]));
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Objects with their own members only: none whose prototype is what a stranger sent. */
function mustBePlain(value: unknown): void {
  if (typeof value !== "object" || value === null) return;
  const prototype = Object.getPrototypeOf(value);
  assert([Object.prototype, Array.prototype, null].includes(prototype), "an object has a prototype that was sent");
  for (const [key, member] of Object.entries(value)) {
    assert.notEqual(key, "__proto__");
    mustBePlain(member);
  }
}
