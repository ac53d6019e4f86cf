/**
 * How steps of one namespace come to the store: one change at a time, leases together, on the state that was seen last, and what each change
 * rests on. The store is the one in memory; what passes to it is noted.
 * Guarantees: G1 (docs/guarantees.md).
 */
import { RUN_MAX } from "@callnumber/protocol/codec";
import { expect, test } from "vitest";
import { ceilingAt } from "../src/guard/ceiling.js";
import type { StepContext } from "../src/guard/checks.js";
import { DEFAULT_BOUNDS } from "../src/guard/clocks.js";
import { decide } from "../src/guard/decide.js";
import { NamespaceSteps, refusalOfStep } from "../src/guard/namespace-steps.js";
import { GENERATION_MAX } from "../src/guard/record.js";
import { isRefusal } from "../src/guard/refusals.js";
import { type Applied, type Change, type Expected, isApplied, type Observed } from "../src/guard/step-store.js";
import { parseStoreId, type StoreIdFields } from "../src/guard/store-id.js";
import { MemoryStore } from "../src/stores/memory.js";
import { commandsFor, NAMESPACE, storeIdFrom } from "./commands-for-test.js";

type Answer = Applied | Observed;

/** A namespace in memory, and the steps of one coordinator; `answer` may replace what the store answers. */
async function notedSteps({ answer = (one: Answer) => one, decideWith = decide } = {}) {
  const store = new MemoryStore();
  const storeId = storeIdFrom(1);
  const commands = commandsFor(storeId);
  const sent: { readonly expected: Expected; readonly change: Change }[] = [];
  const contexts: StepContext[] = [];
  const counts = { reads: 0, atOnce: 0, atOnceMax: 0 };
  const noting = {
    isExclusive: false,
    read: (namespace: string) => {
      counts.reads++;
      return store.read(namespace);
    },
    async apply(namespace: string, expected: Expected, change: Change): Promise<Answer> {
      sent.push({ expected, change });
      counts.atOnceMax = Math.max(counts.atOnceMax, ++counts.atOnce);
      await new Promise((resolve) => setImmediate(resolve));
      counts.atOnce--;
      return answer(await store.apply(namespace, expected, change));
    },
  };
  const decideNoted: typeof decide = (context, step) => {
    contexts.push(context);
    return decideWith(context, step);
  };
  const bounds = { ...DEFAULT_BOUNDS, decide: decideNoted };
  const steps = new NamespaceSteps({ store: noting, namespace: NAMESPACE, now: Date.now, bounds });
  await new NamespaceSteps({ store, namespace: NAMESPACE, now: Date.now, bounds: DEFAULT_BOUNDS }).do(commands.init());
  return { store, storeId, commands, steps, sent, contexts, counts };
}

test.each([Number.NaN, -1, 1.5, 2 ** 53])(
  "a step with the number %d is refused, and nothing is sent",
  async (floor) => {
    const { steps, commands, sent } = await notedSteps();
    await expect(steps.do(commands.lease({ floor }))).rejects.toMatchObject({ code: "internal_error" });
    expect(sent).toEqual([]);
    expect((await steps.do(commands.lease())).after.highWaterMark).toBe(1);
  },
);

test("a step whose caller left while it waited is not sent, and those with it are", async () => {
  const { steps, commands, sent } = await notedSteps();
  const [gone, there, late] = [new AbortController(), new AbortController(), new AbortController()];
  const reason = new Error("the caller left");
  const first = steps.do(commands.lease(), late.signal);
  await expect.poll(() => sent.length).toBe(1);
  // Once it is sent, its signal has no effect.
  late.abort(reason);
  const others = [gone, there, gone].map(({ signal }) => steps.do(commands.lease({ runCount: 3 }), signal));
  gone.abort(reason);
  expect(await Promise.allSettled([first, ...others])).toMatchObject([
    { value: { after: { highWaterMark: 1 } } },
    { reason },
    { value: { after: { highWaterMark: 4 } } },
    { reason },
  ]);
  const alone = steps.do(commands.heartbeat(), gone.signal);
  await expect(alone).rejects.toBe(reason);
  expect(sent.map(({ change }) => change.leases.map(({ runCount }) => runCount))).toEqual([[1], [3]]);
});

test("each step is sent once, on the state that the ones before have left, which is read once", async () => {
  const { steps, commands, sent, counts } = await notedSteps();
  const { lease, heartbeat } = commands;
  for (const step of [heartbeat(), lease({ runCount: 3 }), heartbeat(), lease(), lease(), heartbeat(), lease()])
    await steps.do(step);
  expect(sent).toHaveLength(7);
  expect(counts.reads).toBe(1);
});

test("a lease on a state of before counts with the earliest clock that is possible, and one on a state just read with the store's", async () => {
  const { steps, commands, contexts } = await notedSteps();
  await steps.do(commands.lease());
  await steps.do(commands.lease());
  const [read, known] = contexts as [StepContext, StepContext];
  expect(Math.abs(read.server.timeMs - read.nowMs)).toBeLessThan(DEFAULT_BOUNDS.epsMs);
  expect(known.server.timeMs).toBe(known.nowMs - DEFAULT_BOUNDS.epsMs);
  expect(known).toMatchObject({ namespace: NAMESPACE, keys: { record: "hash", expires: false, ledgerMark: 1 } });
});

test("a refusal counts only on a state that was just read", async () => {
  const { store, steps, commands, counts } = await notedSteps();
  await steps.do(commands.lease());
  // Another coordinator leases: what this one knows is old, and would refuse.
  await new NamespaceSteps({ store, namespace: NAMESPACE, now: Date.now, bounds: DEFAULT_BOUNDS }).do(commands.lease());
  const { after } = await steps.do(commands.lease({ floor: 2, provenRun: 2 }));
  expect(after.highWaterMark).toBe(3);
  expect(counts.reads).toBe(2);
  await expect(steps.do(commands.lease({ floor: 9 }))).rejects.toMatchObject({ reason: "rolled_back" });
  expect(counts.reads).toBe(3);
});

test("leases and heartbeats that wait share a change of at most 256, and one change is in flight at a time", async () => {
  const { steps, commands, sent, counts } = await notedSteps();
  const outcomes = await Promise.all(
    Array.from({ length: 300 }, (_, index) => steps.do(index === 5 ? commands.heartbeat() : commands.lease())),
  );
  expect(sent.map(({ change }) => change.leases.length)).toEqual([255, 44]);
  expect(counts.atOnceMax).toBe(1);
  expect(outcomes.map(({ runCount }) => runCount).filter((runCount) => runCount === 1)).toHaveLength(299);
  expect(new Set(outcomes.map(({ after }) => after.highWaterMark)).size).toBe(299);
});

test("steps of other kinds, and leases that rest on something else, share no change", async () => {
  const { steps, commands, sent } = await notedSteps();
  const { lease, claim } = commands;
  await Promise.all([
    steps.do(lease()),
    steps.do(lease({ isSilenceAccepted: true })),
    steps.do(lease({ isSilenceAccepted: true })),
    steps.do(lease({ storeId: storeIdFrom(9) })).catch(() => {}),
    steps.do(lease()),
    steps.do(claim(0)),
    steps.do(claim(1)),
  ]);
  expect(sent.map(({ change }) => change.leases.length)).toEqual([1, 2, 1, 0, 0]);
});

test("a shared change rests on the greatest mark that one of its leases knows, and stays below the ceiling of all", async () => {
  const { steps, commands, sent, storeId } = await notedSteps();
  await steps.do(commands.lease({ runCount: 5 }));
  const { lease, heartbeat } = commands;
  await Promise.all([
    steps.do(heartbeat()),
    steps.do(lease({ floor: 1 })),
    steps.do(lease({ floor: 5 })),
    steps.do(lease()),
  ]);
  const { rising } = (sent[1] as (typeof sent)[number]).expected;
  // The third lease comes after one run of the second.
  expect(rising?.markIdMin).toBe(4);
  const ceiling = ceilingAt(parseStoreId(storeId) as StoreIdFields, 0, Date.now());
  expect(rising?.highWaterMarkMax).toBeLessThanOrEqual(ceiling);
  expect(rising?.highWaterMarkMax).toBeGreaterThan(ceiling - 1_000);
  expect(rising?.highWaterMarkMax).toBeLessThan(RUN_MAX);
});

test("a lease rests on the run that its holder has proven", async () => {
  const { steps, commands, sent } = await notedSteps();
  await steps.do(commands.lease({ runCount: 5 }));
  await steps.do(commands.lease({ floor: 3, provenRun: 5 }));
  await steps.do(commands.lease({ floor: 6, provenRun: 5 }));
  expect(sent.slice(1).map(({ expected }) => expected.rising?.markIdMin)).toEqual([5, 6]);
});

test("a change of a lease moves no key aside, keeps a time to live, accepts no copy and skips nothing", async () => {
  const { steps, commands, sent } = await notedSteps();
  const outcome = await steps.do(commands.lease());
  const [{ change } = { change: undefined }] = sent;
  expect(change).toMatchObject({ movesAside: [], persists: false, acceptsCopy: false, skipped: undefined });
  expect("movedAside" in outcome).toBe(false);
});

test("a step whose change moved keys aside returns their names", async () => {
  const answer = (one: Answer) => (isApplied(one) ? { ...one, movedAside: ["other"] } : one);
  const { steps, commands } = await notedSteps({ answer });
  expect(await steps.do(commands.lease())).toMatchObject({ movedAside: ["other"] });
});

test("a step is given up as conflict when the store was another one sixteen times", async () => {
  const other = await new MemoryStore().read(NAMESPACE);
  const found: Answer[] = [];
  const { store, steps, commands, sent } = await notedSteps({ answer: () => found[0] ?? other });
  found.push(await store.read(NAMESPACE));
  await expect(steps.do(commands.lease())).rejects.toMatchObject({ reason: "conflict", generation: 0 });
  expect(sent).toHaveLength(16);
});

test("a record that could never be read again is not sent", async () => {
  const decideWith: typeof decide = (context, step) => {
    const decided = decide(context, step);
    if (isRefusal(decided) || step.step !== "claim") return decided;
    return { ...decided, record: { ...decided.record, generation: GENERATION_MAX + 1 } };
  };
  const { steps, commands, sent } = await notedSteps({ decideWith });
  await expect(steps.do(commands.claim(0))).rejects.toMatchObject({ code: "internal_error" });
  expect(sent).toEqual([]);
});

test("why a step would be refused is answered without doing it", async () => {
  const { store, commands } = await notedSteps();
  const ask = (step: Parameters<typeof refusalOfStep>[2]) => refusalOfStep(store, NAMESPACE, step);
  expect(await ask(commands.lease())).toBeUndefined();
  expect(await ask(commands.lease({ floor: 5 }))).toMatchObject({ reason: "rolled_back" });
  expect((await store.readNamespace(NAMESPACE)).highWaterMark).toBe(0);
});
