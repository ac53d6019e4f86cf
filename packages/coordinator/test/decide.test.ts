/**
 * Why a step is rejected where no store in this process can cause it: odd servers, keys of other programs, damaged records,
 * and each limit from both sides. apply*.test.ts compare what each store writes.
 * Guarantees: G1, G3, G5, G6 (docs/guarantees.md).
 */

import { ledgerIdOf } from "@callnumber/protocol/api";
import { RUN_MAX } from "@callnumber/protocol/codec";
import { describe, expect, test } from "vitest";
import { BURST_RUNS, ceilingAt, whenCeilingReaches } from "../src/guard/ceiling.js";
import type { ObservedKeys, ObservedServer, StepContext } from "../src/guard/checks.js";
import { DEFAULT_BOUNDS, GAP_MS, RELEASED_AT_MS, SILENCE_MAX_MS } from "../src/guard/clocks.js";
import type { StepCommand } from "../src/guard/commands.js";
import { decide, type Written } from "../src/guard/decide.js";
import {
  checksumOf,
  FORKED_SEAL,
  GENERATION_MAX,
  type NamespaceState,
  type ObservedFields,
  PHASES,
  readRecord,
  storedFields,
} from "../src/guard/record.js";
import { isRefusal } from "../src/guard/refusals.js";
import { movedSeal, newStoreId, parseStoreId, type StoreIdFields } from "../src/guard/store-id.js";
import { commandsFor, NAMESPACE, PROOF_KEY, storeIdFrom } from "./commands-for-test.js";

const NOW_MS = RELEASED_AT_MS + 1_000_000_000;
const { epsMs } = DEFAULT_BOUNDS;
const storeId = storeIdFrom(1, { initializedAtMs: NOW_MS, rate: 16 });
const id = parseStoreId(storeId) as StoreIdFields;
const commands = commandsFor(storeId);
const EPOCH = "process:replication:0";
const record: NamespaceState = {
  namespace: NAMESPACE,
  storeId,
  id,
  version: 0,
  highWaterMark: 7,
  changedAtMs: NOW_MS,
  epoch: EPOCH,
  generation: 3,
  phase: PHASES.open,
  nodeCount: 1,
  proofKey: PROOF_KEY,
  seal: "-",
};

interface Odd {
  readonly record?: Partial<NamespaceState>;
  readonly keys?: Partial<ObservedKeys>;
  readonly server?: Partial<ObservedServer>;
  readonly nowMs?: number;
}

function situationOf(odd: Odd): StepContext {
  const { nowMs = NOW_MS } = odd;
  const fields = storedFields({ ...record, ...odd.record });
  const keys = { record: "hash", fields, expires: false, ledger: "stream", ledgerMark: 0, holders: "hash" } as const;
  const server = { timeMs: nowMs, role: "master", epoch: EPOCH, connectedReplicas: 0 };
  return {
    namespace: NAMESPACE,
    keys: { ...keys, ...odd.keys },
    server: { ...server, ...odd.server },
    nowMs,
    bounds: DEFAULT_BOUNDS,
  };
}

/** `WORD detail`, or what is written. */
function decided(step: StepCommand, odd: Odd = {}): string | Written {
  const answer = decide(situationOf(odd), step);
  return isRefusal(answer) ? `${answer.code} ${answer.detail}` : answer;
}

function written(step: StepCommand, odd: Odd = {}): NamespaceState {
  const answer = decided(step, odd);
  if (typeof answer === "string") expect.fail(answer);
  return answer.record;
}

const OF_ALL: readonly [string, Odd, string][] = [
  ["no record", { keys: { record: "none" } }, "EMPTY no record"],
  ["a record of another type", { keys: { record: "other" } }, "CORRUPT the record is not a hash"],
  ["a record with a time to live", { keys: { expires: true } }, "CORRUPT the record has a time to live"],
  ["a ledger of another type", { keys: { ledger: "other" } }, "CORRUPT the ledger is not a stream"],
  ["holders of another type", { keys: { holders: "other" } }, "CORRUPT the holders are not a hash"],
  ["an unknown epoch", { server: { epoch: undefined } }, "NOEPOCH "],
  ["a replica", { server: { role: "slave" } }, "REPLICA slave"],
  ["more replicas than the record counts", { server: { connectedReplicas: 1 } }, "NODES 1"],
  ["a server's clock ahead", { server: { timeMs: NOW_MS + epsMs + 1 } }, `CLOCK ${epsMs + 1}`],
  ["a server's clock behind", { server: { timeMs: NOW_MS - epsMs - 1 } }, `CLOCK ${-epsMs - 1}`],
  ["a time before the release", { nowMs: RELEASED_AT_MS - 1 }, "CLOCK 0"],
  ["a write from the future", { record: { changedAtMs: NOW_MS + epsMs + 1 } }, "CLOCKBACK 1"],
  ["a long silence", { record: { changedAtMs: NOW_MS - SILENCE_MAX_MS - 1 } }, "OPERATOR silence"],
  ["two copies", { record: { phase: PHASES.sealed, seal: FORKED_SEAL } }, "FORKED 0"],
  ["a move", { record: { phase: PHASES.sealed, seal: movedSeal({ storeId, place: "x" }) } }, `MOVED ${storeId}@x`],
];

const OF_MEMORY: readonly [string, Odd, string][] = [
  ["a generation below the one that was seen", { record: { generation: 1 } }, "STALEGEN 1"],
  ["another process", { server: { epoch: "other:replication:0" } }, "EPOCH 3"],
  [
    "another epoch of several nodes",
    { record: { nodeCount: 3 }, server: { epoch: "process:other:0", connectedReplicas: 1 } },
    "EPOCH 3",
  ],
  ["a replica that came and went", { server: { epoch: "process:other:1" } }, "OPERATOR replica"],
  ["another replication of one process", { server: { epoch: "process:other:0" } }, "OPERATOR epoch"],
  ["a claim", { record: { phase: PHASES.claimed } }, "PENDING 3"],
  ["a gap", { record: { changedAtMs: NOW_MS - GAP_MS - 1 } }, "GAP 3"],
  ["a mark below the one that was seen", { record: { highWaterMark: 4 } }, "ROLLBACK 3"],
  ["a mark below its ledger", { keys: { ledgerMark: 8 } }, "ROLLBACK 3"],
];

const seen = { floor: 5, generationMin: 2 };

test.each(OF_ALL)("a step is rejected for %s", (_, odd, refusal) => {
  for (const step of [
    commands.lease(),
    commands.heartbeat(),
    commands.claim(3),
    commands.confirm(3),
    commands.advance(0),
  ]) {
    expect(decided(step, odd), step.step).toBe(refusal);
  }
  expect(decided(commands.seal(FORKED_SEAL), odd)).toBe(refusal);
});

test.each(OF_MEMORY)("a step that relies on the store's memory is rejected for %s", (_, odd, refusal) => {
  for (const step of [commands.lease(seen), commands.heartbeat(seen), commands.seal(FORKED_SEAL, seen)]) {
    expect(decided(step, odd), step.step).toBe(refusal);
  }
});

test("a step is not rejected at the very limits", () => {
  const limits: readonly Odd[] = [
    { server: { timeMs: NOW_MS + epsMs } },
    { server: { timeMs: NOW_MS - epsMs } },
    { record: { changedAtMs: NOW_MS + epsMs } },
    { record: { changedAtMs: NOW_MS - GAP_MS } },
    { record: { generation: 2 } },
    { record: { highWaterMark: 5 } },
    { keys: { ledgerMark: 7 } },
    { record: { nodeCount: 2 }, server: { connectedReplicas: 1 } },
  ];
  for (const odd of limits) expect(decided(commands.heartbeat(seen), odd), JSON.stringify(odd)).toBeTypeOf("object");
  const early = { nowMs: RELEASED_AT_MS, record: { changedAtMs: RELEASED_AT_MS } };
  expect(decided(commands.heartbeat(), early)).toBeTypeOf("object");
  const silent = { record: { changedAtMs: NOW_MS - SILENCE_MAX_MS } };
  expect(decided(commands.claim(3), silent)).toBeTypeOf("object");
  const silence = { record: { changedAtMs: NOW_MS - SILENCE_MAX_MS - 1 } };
  expect(decided(commands.claim(3, { isSilenceAccepted: true }), silence)).toBeTypeOf("object");
});

describe("a lease", () => {
  const nearEnd = (highWaterMark: number): Odd => ({
    record: { highWaterMark, changedAtMs: NOW_MS + 1e12 },
    nowMs: NOW_MS + 1e12,
  });

  test("a lease takes the runs above the mark, at most the share of the headroom, and writes the later clock", () => {
    const answer = decided(commands.lease({ runCount: 5_000 }), { server: { timeMs: NOW_MS + 9 } });
    const runCount = Math.floor((1 + BURST_RUNS - 7) / 64);
    expect(answer).toEqual({ record: { ...record, highWaterMark: 7 + runCount, changedAtMs: NOW_MS + 9 }, runCount });
  });

  test("a lease gets one run where the share is less, and none at the run ceiling, with the time to wait", () => {
    const line = ceilingAt(id, 0, NOW_MS);
    expect(decided(commands.lease({ runCount: 3 }), { record: { highWaterMark: line - 1 } })).toMatchObject({
      runCount: 1,
    });
    expect(decided(commands.lease(), { record: { highWaterMark: line } })).toBe("AHEAD 63");
    expect(decided(commands.lease(), { record: { highWaterMark: line }, server: { timeMs: NOW_MS - 5 } })).toBe(
      "AHEAD 68",
    );
  });

  test("a lease ends at the last run", () => {
    expect(decided(commands.lease({ runCount: 9 }), nearEnd(RUN_MAX - 2))).toMatchObject({
      record: { highWaterMark: RUN_MAX },
      runCount: 2,
    });
    expect(decided(commands.lease(), nearEnd(RUN_MAX))).toBe("EXHAUSTED 0");
  });

  test("a lease reports a fork when the holder has a run above the mark, and only then", () => {
    expect(decided(commands.lease({ provenRun: 8 }))).toBe("FORKED 8");
    expect(decided(commands.lease({ provenRun: 7 }))).toMatchObject({ runCount: 1 });
  });
});

describe("a node that is not counted", () => {
  const attached = { server: { connectedReplicas: 1 } };
  const suspect = { epoch: "-:-:attached" };

  test("a node that is attached to the only one is kept in the record, and ends leasing and recoveries once it is gone", () => {
    for (const server of [attached.server, { connectedReplicas: 1, epoch: undefined }])
      expect(written(commands.suspect(3), { server })).toEqual({ ...record, ...suspect });
    expect(written(commands.suspect(4))).toEqual({ ...record, ...suspect });
    expect(written(commands.suspect(0), { record: suspect })).toEqual({ ...record, ...suspect });
    const wasAttached = { server: { epoch: "process:replication:1" } };
    expect(written(commands.suspect(0), wasAttached)).toEqual({ ...record, ...suspect });
    for (const step of [commands.lease(seen), commands.heartbeat(), commands.claim(3), commands.advance(0)])
      expect(decided(step, { record: suspect, nowMs: NOW_MS + 1e12 }), step.step).toMatch(/^OPERATOR/);
    const soon = { record: { ...suspect, changedAtMs: NOW_MS + 1e12 }, nowMs: NOW_MS + 1e12 };
    expect(decided(commands.advance(0, { generationMin: 9 }), soon)).toBe("OPERATOR replica");
    expect(decided(commands.lease(), { record: suspect })).toBe("OPERATOR replica");
    expect(decided(commands.claim(3), { record: suspect })).toBe("OPERATOR replica");
    expect(written(commands.recover(), { record: suspect }).epoch).toBe(EPOCH);
    expect(decided(commands.lease(), { record: suspect, server: { epoch: "next:r:0" } })).toBe("OPERATOR replica");
  });

  test("what the caller has seen counts like what is kept, until recover has written the record", () => {
    const steps = (recoveredMin: number) => [
      commands.lease({ ...seen, recoveredMin }),
      commands.heartbeat({ recoveredMin }),
      commands.claim(3, { recoveredMin }),
      commands.seal(FORKED_SEAL, { recoveredMin }),
    ];
    for (const step of steps(4)) {
      expect(decided(step), step.step).toBe("OPERATOR replica");
      // Nothing that a recovery would end hides it.
      expect(decided({ ...step, generationMin: 9 } as StepCommand), step.step).toBe("OPERATOR replica");
    }
    const claimed = { record: { phase: PHASES.claimed } };
    expect(decided(commands.confirm(3, { recoveredMin: 4 }), claimed)).toBe("OPERATOR replica");
    for (const step of [...steps(3), ...steps(0)]) expect(decided(step), step.step).toBeTypeOf("object");
    const counted = { record: { nodeCount: 2 } };
    expect(decided(commands.lease({ recoveredMin: 4 }), counted)).toBeTypeOf("object");
    expect(written(commands.recover({ generationMin: 3 })).generation).toBeGreaterThanOrEqual(NOW_MS);
  });

  test.each<[string, Odd, number?]>([
    ["before the last recover", {}, 3],
    ["by a server that followed another one", { server: { epoch: "process:other:0" } }, 0],
    ["of several", { ...attached, record: { nodeCount: 2 } }],
    ["of a replica", { server: { connectedReplicas: 1, role: "slave" } }],
    ["of a sealed store", { ...attached, record: { phase: PHASES.sealed, seal: FORKED_SEAL } }],
  ])("a node %s is not noted", (_, odd, recoveredMin = 4) => {
    expect(decided(commands.suspect(recoveredMin), odd)).toBe("RACED 3");
  });

  test("a record of another store is left alone", () => {
    expect(decided({ ...commands.suspect(4), storeId: storeIdFrom(2) }, attached)).toMatch(/^FOREIGN/);
  });
});

describe("a skip", () => {
  const target = ceilingAt(id, 0, NOW_MS + 2 * epsMs);
  const claimed = { phase: PHASES.claimed };

  test("a claim needs the generation that was seen, and raises it above all known, in the server's epoch", () => {
    expect(decided(commands.claim(2))).toBe("RACED 3");
    const { generation, phase, highWaterMark, epoch } = written(commands.claim(3, { generationMin: 9 }), {
      server: { epoch: "next:r:0" },
    });
    expect([generation, phase, highWaterMark, epoch]).toEqual([10, PHASES.claimed, 7, "next:r:0"]);
    expect(written(commands.claim(3, { generationMin: GENERATION_MAX - 1 })).generation).toBe(GENERATION_MAX);
    expect(decided(commands.claim(3, { generationMin: GENERATION_MAX }))).toBe(
      "CORRUPT the generation has reached its end",
    );
  });

  test("a confirmation raises the mark to the run ceiling, for the claim of this generation and epoch only", () => {
    expect(written(commands.confirm(3), { record: claimed })).toEqual({
      ...record,
      highWaterMark: target,
      phase: PHASES.open,
    });
    expect(decided(commands.confirm(3))).toBe("RACED 3");
    expect(decided(commands.confirm(2), { record: claimed })).toBe("RACED 3");
    expect(decided(commands.confirm(3), { record: claimed, server: { epoch: "other:r:0" } })).toBe("RACED 3");
  });

  test("a confirmation is rejected when it would reach the last run", () => {
    const endMs = whenCeilingReaches(id, 0, RUN_MAX) - 2 * epsMs;
    const at = (nowMs: number): Odd => ({ record: { ...claimed, changedAtMs: nowMs }, nowMs });
    expect(decided(commands.confirm(3), at(endMs))).toBe("EXHAUSTED 0");
    expect(written(commands.confirm(3), at(endMs - 1)).highWaterMark).toBe(RUN_MAX - 1);
  });

  test("a confirmation needs an operator when a source knows of a run above the ceiling", () => {
    expect(written(commands.confirm(3, { floor: target }), { record: claimed }).highWaterMark).toBe(target);
    expect(decided(commands.confirm(3, { floor: target + 1 }), { record: claimed })).toBe("OPERATOR line");
    expect(decided(commands.confirm(3), { record: claimed, keys: { ledgerMark: target + 1 } })).toBe("OPERATOR line");
    expect(decided(commands.confirm(3), { record: { ...claimed, highWaterMark: target + 1 } })).toBe("OPERATOR line");
  });
});

describe("a move", () => {
  const sealTo = (firstVersion: number) => {
    const next = newStoreId({ firstVersion, firstRun: 1, initializedAtMs: NOW_MS, rate: 2 });
    return movedSeal({ storeId: next, place: "x" });
  };

  test("a move seals for a store that begins above every version that this one has reached, and for no other", () => {
    const seal = sealTo(1);
    expect(written(commands.seal(seal))).toEqual({ ...record, phase: PHASES.sealed, seal });
    expect(decided(commands.seal(sealTo(0)))).toBe("RACED 3");
    const reached = { keys: { ledgerMark: ledgerIdOf(1, 1) } };
    expect(decided(commands.seal(seal), reached)).toBe("RACED 3");
    expect(decided(commands.seal(seal, { floor: ledgerIdOf(1, 0) }))).toBe("RACED 3");
    const above = sealTo(2);
    expect(written(commands.seal(above), reached)).toMatchObject({ phase: PHASES.sealed, seal: above });
  });

  test("a move is refused where too few of the nodes are connected to acknowledge a seal, first and again", () => {
    const seal = sealTo(1);
    const sealed = { phase: PHASES.sealed, seal, nodeCount: 2 };
    expect(decided(commands.seal(seal), { record: { nodeCount: 2 } })).toBe("QUORUM 0 of 1");
    expect(decided(commands.seal(seal), { record: sealed })).toBe("QUORUM 0 of 1");
    expect(written(commands.seal(seal), { record: sealed, server: { connectedReplicas: 1 } }).seal).toBe(seal);
  });

  test("a recovery counts the nodes of a moved store again, which stays moved", () => {
    const sealed = { phase: PHASES.sealed, seal: sealTo(1), nodeCount: 2 };
    const one = { ...record, ...sealed, nodeCount: 1 };
    expect(written(commands.recover({ nodeCount: 1 }), { record: sealed })).toEqual(one);
    expect(decided(commands.recover({ nodeCount: 2 }), { record: sealed })).toMatch(/^MOVED /);
    expect(decided(commands.recover({ nodeCount: 3 }), { record: sealed })).toBe("QUORUM 0 of 1");
    const attached = { connectedReplicas: 2 };
    expect(decided(commands.recover({ nodeCount: 2 }), { record: sealed, server: attached })).toBe("NODES 2");
    expect(written(commands.recover({ nodeCount: 3 }), { record: sealed, server: attached }).nodeCount).toBe(3);
  });

  test("a store says once that its move is done, and only while it is sealed for that move", () => {
    const [seal, other] = [sealTo(1), sealTo(2)];
    const done = `${seal} done`;
    const sealed = { phase: PHASES.sealed, seal };
    const making = { ...commands.seal(done), makesStore: true } as const;
    expect(decided(making)).toBe("RACED 3");
    expect(decided(making, { record: { ...sealed, epoch: "another:0" } })).toBe("RACED 3");
    expect(written(making, { record: sealed })).toMatchObject({ phase: PHASES.sealed, seal: done });
    expect(decided(making, { record: { ...sealed, seal: other } })).toMatch(/^MOVED /);
    expect(decided(making, { record: { ...sealed, seal: done } })).toMatch(/^MOVED /);
    // Who has found the new store says so in any case.
    for (const record of [{}, sealed, { ...sealed, seal: done }]) {
      expect(written(commands.seal(done), { record })).toMatchObject({ phase: PHASES.sealed, seal: done });
    }
    expect(written(commands.seal(seal), { record: { ...sealed, seal: done } })).toMatchObject({ seal: done });
  });

  test.each<[string, Odd]>([
    ...OF_MEMORY.map(([name, odd]): [string, Odd] => [name, odd]),
    ["a write from the future", { record: { changedAtMs: NOW_MS + 1e12 } }],
    ["a long silence", { record: { changedAtMs: NOW_MS - SILENCE_MAX_MS - 1 } }],
    ["a server's clock ahead", { server: { timeMs: NOW_MS + 1e12 } }],
    ["a server's clock before the release", { nowMs: RELEASED_AT_MS, server: { timeMs: RELEASED_AT_MS - 1 } }],
  ])("a move seals a store with %s: nothing of it is in the next version", (_, odd) => {
    const { epoch = EPOCH } = odd.server ?? {};
    const seal = sealTo(1);
    expect(written(commands.seal(seal, seen), odd)).toMatchObject({ phase: PHASES.sealed, seal, epoch });
  });

  test.each(OF_ALL.filter(([, , refusal]) => !/^(CLOCK \d|CLOCKBACK|OPERATOR)/.test(refusal)))(
    "a move is rejected for %s",
    (_, odd, refusal) => {
      expect(decided(commands.seal(sealTo(1)), odd)).toBe(refusal);
    },
  );

  test("a move is rejected when its own clock is ahead of the store's, or before the release", () => {
    const seal = commands.seal(sealTo(1));
    expect(decided(seal, { server: { timeMs: NOW_MS - epsMs } })).toBeTypeOf("object");
    expect(decided(seal, { server: { timeMs: NOW_MS - epsMs - 1 } })).toBe(`CLOCK ${-epsMs - 1}`);
    expect(decided(seal, { nowMs: RELEASED_AT_MS - 1, server: { timeMs: NOW_MS } })).toBe("CLOCK 0");
  });
});

describe("a recovery", () => {
  const target = ceilingAt(id, 0, NOW_MS + 2 * epsMs);

  /** A thousand for each ten milliseconds. */
  const RECOVERED = 1_000 * Math.ceil(NOW_MS / 10);

  test("a recovery keeps the store's record, at the run ceiling, claimed, in a generation above all known", () => {
    const recovered = { ...record, highWaterMark: target, generation: RECOVERED, phase: PHASES.claimed };
    expect(written(commands.recover())).toEqual(recovered);
    const generationMin = RECOVERED - 1;
    expect(written(commands.recover({ generationMin })).generation).toBe(RECOVERED);
    expect(written(commands.recover({ generationMin: RECOVERED })).generation).toBe(RECOVERED + 1_000);
    const before = { record: { generation: RECOVERED } };
    expect(written(commands.recover(), before).generation).toBe(RECOVERED + 1_000);
    // Of two recoveries of one state that was put back, the later one has the later generation.
    expect(written(commands.recover(), { nowMs: NOW_MS + 10, server: { timeMs: NOW_MS + 10 } }).generation).toBe(
      RECOVERED + 1_000,
    );
    expect(decided(commands.recover({ generationMin: GENERATION_MAX }))).toMatch(/^CORRUPT the generation/);
    const last = GENERATION_MAX - 999;
    expect(written(commands.recover({ generationMin: last - 1 })).generation).toBe(last);
    expect(decided(commands.recover({ generationMin: last }))).toMatch(/^CORRUPT the generation/);
    expect(decided(commands.recover(), { record: { highWaterMark: target + 1 } })).toBe("OPERATOR line");
    expect(written(commands.recover(), { record: { phase: PHASES.sealed, seal: FORKED_SEAL } }).seal).toBe("-");
  });

  test("a recovery makes a new record where there is none, or another program's", () => {
    const made = { ...record, highWaterMark: target, generation: RECOVERED, phase: PHASES.claimed };
    for (const keys of [{ record: "none" }, { record: "other" }, { fields: { v: "2", a: "b" } }] as const) {
      expect(written(commands.recover(), { keys }), JSON.stringify(keys)).toEqual(made);
    }
    const server = { connectedReplicas: 1 };
    expect(written(commands.recover({ nodeCount: 2 }), { keys: { record: "none" }, server }).nodeCount).toBe(2);
  });

  test("a recovery counts more nodes only where a majority of them is connected, and as many as before in any case", () => {
    const raised = commands.recover({ nodeCount: 3 });
    expect(decided(raised)).toBe("QUORUM 0 of 1");
    expect(decided(raised, { keys: { record: "none" } })).toBe("QUORUM 0 of 1");
    expect(decided(raised, { keys: { record: "none" }, server: { connectedReplicas: 3 } })).toBe("UNCOUNTED 3");
    expect(decided(raised, { record: { nodeCount: 2 } })).toBe("QUORUM 0 of 1");
    expect(written(raised, { record: { nodeCount: 3 } }).nodeCount).toBe(3);
    expect(written(raised, { server: { connectedReplicas: 1 } }).nodeCount).toBe(3);
  });

  test("a recovery moves fields aside that name no store, and keys of another type", () => {
    const asideOf = (keys: Partial<ObservedKeys>) => (decided(commands.recover(), { keys }) as Written).movesAside;
    for (const fields of [{}, { sid: "x" }, { v: "2", sid: "x" }]) expect(asideOf({ fields })).toEqual(["record"]);
    expect(asideOf({ fields: { v: "2", sid: storeId } })).toEqual([]);
    expect(asideOf({ record: "none", fields: {}, ledger: "other", holders: "other" })).toEqual(["ledger", "holders"]);
    expect(asideOf({ record: "other", fields: {} })).toEqual(["record"]);
  });

  test("a recovery is rejected for another store or schema, an unfit server, or a gap that no operator accepts", () => {
    const other = storeIdFrom(2);
    expect(decided(commands.recover({ storeId: "none" }))).toBe("MISUSE not a store id");
    expect(decided(commandsFor(other).recover())).toBe(`FOREIGN ${storeId}`);
    const damaged = { ...storedFields(record), k: "0" };
    expect(decided(commandsFor(other).recover(), { keys: { fields: damaged } })).toBe(`FOREIGN ${storeId}`);
    expect(decided(commands.recover(), { keys: { fields: damaged } })).toBeTypeOf("object");
    expect(decided(commands.recover(), { keys: { fields: { ...damaged, v: "3" } } })).toBe("VERSION 3");
    expect(decided(commands.recover(), { server: { connectedReplicas: 1 } })).toBe("NODES 1");
    expect(decided(commands.recover({ nodeCount: 2 }), { server: { connectedReplicas: 1 } })).toBeTypeOf("object");
    expect(decided(commands.recover(), { server: { timeMs: NOW_MS + epsMs + 1 } })).toMatch(/^CLOCK /);
    const silence = { record: { changedAtMs: NOW_MS - SILENCE_MAX_MS - 1 } };
    expect(decided(commands.recover(), silence)).toBe("OPERATOR silence");
    expect(decided(commands.recover({ isSilenceAccepted: true }), silence)).toBeTypeOf("object");
  });

  test("a recovery of a moved store is rejected, except to remove its time to live", () => {
    const moved = { record: { phase: PHASES.sealed, seal: movedSeal({ storeId, place: "x" }) } };
    expect(decided(commands.recover(), moved)).toBe(`MOVED ${storeId}@x`);
    expect(decided(commands.recover(), { ...moved, keys: { expires: true } })).toEqual({
      record: { ...record, ...moved.record },
      runCount: 0,
      movesAside: [],
      persists: true,
      acceptsCopy: true,
    });
    // In another life of the store it may have forgotten that the new store was made.
    const restarted = { ...moved, keys: { expires: true }, server: { epoch: "another:0" } } as const;
    const { epoch, seal } = written(commands.recover(), restarted);
    expect([epoch, seal]).toEqual(["another:0", `${moved.record.seal} done`]);
  });

  test("a recovery of a moved store with more nodes counts them: the store compares its replicas with the record", () => {
    const moved = { record: { phase: PHASES.sealed, seal: movedSeal({ storeId, place: "x" }) } };
    const found = { ...moved, keys: { expires: true }, server: { connectedReplicas: 1 } } as const;
    expect(written(commands.recover({ nodeCount: 2 }), found).nodeCount).toBe(2);
  });

  test("a recovery continues in the greatest known version, and not beyond the last", () => {
    const later = { nowMs: NOW_MS + 1e11 };
    const floor = ledgerIdOf(1, 5);
    const line = ceilingAt(id, 1, later.nowMs + 2 * epsMs);
    const changed = { record: { changedAtMs: later.nowMs } };
    expect(written(commands.recover({ floor }), { ...later, ...changed })).toMatchObject({
      version: 1,
      highWaterMark: line,
    });
    const gone = { ...later, keys: { record: "none", ledgerMark: floor } } as const;
    expect(written(commands.recover(), gone)).toMatchObject({ version: 1, highWaterMark: line });
    const inVersion8 = { nowMs: NOW_MS + (8.5 * 2 ** 30 * 1_000) / 16, keys: { record: "none" } } as const;
    expect(decided(commands.recover({ floor: ledgerIdOf(8, 0) }), inVersion8)).toBe("OPERATOR line");
    expect(
      written(commands.recover({ floor: ledgerIdOf(7, 5) }), {
        ...inVersion8,
        nowMs: NOW_MS + (7.5 * 2 ** 30 * 1_000) / 16,
      }),
    ).toMatchObject({ version: 7 });
  });

  test("a recovery of a store that began with its last runs continues in the next version, at its run ceiling", () => {
    const late = storeIdFrom(RUN_MAX, { initializedAtMs: NOW_MS, rate: 16 });
    const gone = { keys: { record: "none" } } as const;
    expect(written(commandsFor(late).recover({ floor: ledgerIdOf(1, 5) }), gone)).toMatchObject({
      version: 1,
      highWaterMark: ceilingAt(parseStoreId(late) as StoreIdFields, 1, NOW_MS + 2 * epsMs),
    });
  });
});

describe("a first record", () => {
  const none = { record: "none", ledger: "none" } as const;

  test("a first record is right below the first run, open, in the server's epoch", () => {
    const server = { timeMs: NOW_MS + 3, connectedReplicas: 1 };
    expect(decided(commands.init({ nodeCount: 2 }), { keys: none, server })).toEqual({
      record: { ...record, highWaterMark: 0, generation: 0, nodeCount: 2, changedAtMs: NOW_MS + 3 },
      runCount: 0,
    });
  });

  test.each([
    [1, 0, 0],
    [2, 1, 1],
    [3, 1, 2],
    [4, 2, 3],
    [5, 2, 4],
  ])("a first record of %i nodes needs %i replicas and takes %i", (nodeCount, least, most) => {
    const answer = (connectedReplicas: number) =>
      decided(commands.init({ nodeCount }), { keys: none, server: { connectedReplicas } });
    expect(answer(least)).toBeTypeOf("object");
    expect(answer(most)).toBeTypeOf("object");
    if (least > 0) expect(answer(least - 1)).toBe(`QUORUM ${least - 1} of ${least}`);
    expect(answer(most + 1)).toBe(`UNCOUNTED ${most + 1}`);
  });

  test("a first record is rejected over a record or a ledger, on an unfit server, or with an invalid store id", () => {
    expect(decided(commands.init())).toBe("ALREADY the record exists");
    expect(decided(commands.init(), { keys: { ...none, record: "other" } })).toBe("ALREADY the record exists");
    expect(decided(commands.init(), { keys: { ...none, ledger: "stream" } })).toMatch(/^CORRUPT there is a ledger/);
    expect(decided(commands.init({ storeId: "none" }), { keys: none })).toBe("MISUSE not a store id");
    expect(decided(commands.init(), { keys: none, server: { role: "slave" } })).toBe("REPLICA slave");
    expect(decided(commands.init(), { keys: none, nowMs: RELEASED_AT_MS - 1 })).toBe("CLOCK 0");
  });
});

describe("the next version", () => {
  /** The line of version 0 has passed its end. */
  const END_MS = NOW_MS + Math.ceil(((RUN_MAX - 1 - BURST_RUNS) * 1_000) / 16);
  const ended: Odd = { nowMs: END_MS, record: { changedAtMs: END_MS } };

  test("the next version begins at the instant when the run ceiling ends, and not before, by the earlier clock", () => {
    expect(decided(commands.advance(0), { ...ended, nowMs: END_MS - 1 })).toBe("EARLY 1");
    expect(decided(commands.advance(0), { ...ended, server: { timeMs: END_MS - 2 } })).toBe("EARLY 2");
    const advanced = { ...record, version: 1, highWaterMark: 0, generation: 4, changedAtMs: END_MS };
    expect(written(commands.advance(0), ended)).toEqual(advanced);
    expect(written(commands.advance(0, { generationMin: 6 }), ended)).toEqual({
      ...advanced,
      generation: 7,
      phase: PHASES.claimed,
    });
  });

  test("an advance leaves the record claimed when the store may have rolled back, unless an operator must decide", () => {
    const phaseOf = (odd: Odd) => written(commands.advance(0), { ...ended, ...odd }).phase;
    expect(phaseOf({ server: { epoch: "other:r:0" } })).toBe(PHASES.claimed);
    expect(decided(commands.advance(0), { ...ended, server: { epoch: "process:other:0" } })).toBe("OPERATOR epoch");
    expect(decided(commands.advance(0, { generationMin: GENERATION_MAX }), ended)).toMatch(/^CORRUPT the generation/);
    const last = written(commands.advance(0, { generationMin: GENERATION_MAX - 1 }), ended);
    expect(last.generation).toBe(GENERATION_MAX);
  });

  test("an advance is rejected from another version than the current one, and from the last one", () => {
    expect(decided(commands.advance(1), ended)).toBe("RACED 3");
    expect(decided(commands.advance(7), { record: { version: 7 } })).toBe("EXHAUSTED 7");
  });
});

describe("a record", () => {
  const good = storedFields(record);
  const wordOf = (fields: ObservedFields, namespace = NAMESPACE) => {
    const read = readRecord(fields, namespace);
    return isRefusal(read) ? `${read.code} ${read.detail}` : read;
  };
  const changed = (own: ObservedFields) => {
    const { k: _, ...fields } = { ...good, ...own };
    return wordOf({ ...fields, k: checksumOf(fields) });
  };

  test("a record is read as it was stored", () => expect(wordOf(good)).toEqual(record));

  test.each<[keyof typeof good, readonly string[], readonly string[]]>([
    ["sid", [], ["", "none"]],
    ["ver", ["7"], ["", "8", "-1", "1.5", "a"]],
    ["c", ["0", String(RUN_MAX)], ["", String(RUN_MAX + 1)]],
    ["t", ["0", "9".repeat(15)], ["", "1".repeat(16)]],
    ["g", ["9".repeat(15)], ["", " 1"]],
    ["p", ["0", "1", "2"], ["", "3"]],
    ["n", ["1", "99"], ["", "0", "100", "1 "]],
    ["ep", ["a", "x".repeat(128)], ["", "x".repeat(129), "a b", " a", "a "]],
    ["rk", ["0".repeat(64)], ["", "0".repeat(63), "0".repeat(65), "G".repeat(64)]],
    ["ph", ["-", "forked", "moved"], ["", "other"]],
  ])("a record takes what its field %s can be, and nothing else", (name, goods, bads) => {
    for (const text of goods) expect(changed({ [name]: text }), text).toBeTypeOf("object");
    for (const text of bads) {
      expect(changed({ [name]: text }), text).toBe("CORRUPT a field of the record is missing or can't be");
    }
    const { [name]: _, ...missing } = good;
    expect(wordOf(missing)).toBe("CORRUPT a field of the record is missing or can't be");
  });

  test("a record is rejected without its checksum, schema or namespace, and below its first run", () => {
    expect(wordOf({ ...good, k: "0" })).toBe("CORRUPT the checksum of the record is wrong");
    expect(wordOf({ ...good, c: "8" })).toBe("CORRUPT the checksum of the record is wrong");
    expect(changed({ v: "3" })).toBe("VERSION 3");
    expect(wordOf({})).toBe("CORRUPT the record has no schema version");
    expect(wordOf(good, "other")).toBe(`FOREIGN ${storeId}`);
    const late = storeIdFrom(9);
    expect(changed({ sid: late, c: "7" })).toBe("CORRUPT the mark is below the first run");
    expect(changed({ sid: late, c: "8" })).toBeTypeOf("object");
  });
});
