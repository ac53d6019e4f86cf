/**
 * Random states of a namespace, and random steps on them: drawn as recipes, and cooked when the server's clock and epoch are
 * known, so that times lie right at the thresholds. Half of the records are sound, half are broken in some way.
 */

import { ledgerIdOf } from "@callnumber/protocol/api";
import { RUN_COUNT, RUN_MAX, VERSION_COUNT } from "@callnumber/protocol/codec";
import fc from "fast-check";
import { BURST_RUNS, ceilingAt, whenCeilingReaches } from "../src/guard/ceiling.js";
import type { ObservedServer } from "../src/guard/checks.js";
import { type Bounds, SILENCE_MAX_MS } from "../src/guard/clocks.js";
import type { StepCommand } from "../src/guard/commands.js";
import { checksumOf, GENERATION_MAX, SCHEMA } from "../src/guard/record.js";
import { MOVED_TEXT_LENGTH_MAX, movedSeal, newStoreId, type StoreIdFields } from "../src/guard/store-id.js";
import { commandsFor, holder, NAMESPACE, PROOF_KEY } from "./commands-for-test.js";
import type { KeptState } from "./kept-state.js";

/** A situation to play: the state, the step, and the coordinator's clock. */
interface Play {
  readonly state: KeptState;
  readonly command: StepCommand;
  readonly nowMs: number;
}

export type Recipe = (server: ObservedServer, bounds: Bounds) => Play;

/** All but the one for a server to which another is attached, which none of these stores has. */
type StepName = Exclude<StepCommand["step"], "suspect">;

const UUID = "0189c0de-0000-4000-8000-000000000000";
const OTHER_UUID = "0189c0de-ffff-4000-8000-000000000000";
/** To a store that begins in version 3: a record that has reached it can't be moved there. */
const MOVED_THERE = movedSeal({ storeId: `${OTHER_UUID}.${ledgerIdOf(3, 1)}.1.2`, place: "redis://10.0.0.7:6379/0" });
const MOVED_ELSEWHERE = movedSeal({ storeId: `${OTHER_UUID}.${ledgerIdOf(7, 1)}.1.2`, place: "elsewhere" });
const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;

/** Numbers that `tonumber` takes, or JavaScript does, and that no field may hold; and some that it may. */
export const BAD_WORDS = [..."|x|NaN|nan|inf|1e3|-1|+1|0x10| 1|1 |1.0|٣|007|0000000000000007".split("|"), "1\n"];
export const BIG_WORDS = "9007199254740993 1000000000000000 999999999999999 1073741823 1073741824 8 3 100".split(" ");
const ODD_TEXTS = [
  ..."moved|moved |moved to there|forked|-|a:b|a:b:c|é|x y|\n".split("|"),
  `moved ${"a".repeat(MOVED_TEXT_LENGTH_MAX)}`,
  `moved ${"a".repeat(MOVED_TEXT_LENGTH_MAX + 1)}`,
  "f".repeat(40),
  "F".repeat(64),
  "a".repeat(129),
];
export const FIELDS = ["v", "ns", "sid", "ver", "c", "t", "ep", "g", "p", "n", "rk", "ph", "k"] as const;

/** Near a threshold, far from it, or on it. The server's clock runs on while a step is played: hence the spread. */
const offset = fc.oneof(
  { weight: 4, arbitrary: fc.integer({ min: -4, max: 4 }) },
  { weight: 2, arbitrary: fc.constantFrom(0, -1000, 1000) },
  { weight: 1, arbitrary: fc.integer({ min: -100_000, max: 100_000 }) },
);

type Threshold = "none" | "eps" | "gap" | "silence" | "hour" | "year";
const THRESHOLDS_MS: Readonly<Record<Threshold, (bounds: Bounds) => number>> = {
  none: () => 0,
  eps: ({ epsMs }) => epsMs,
  gap: ({ gapMs }) => gapMs,
  silence: () => SILENCE_MAX_MS,
  hour: () => HOUR_MS,
  year: () => YEAR_MS,
};

/** An instant by its distance from now: right now, or some part of eps from it, or around a threshold. */
function instant(...thresholds: readonly Threshold[]) {
  return fc.record({
    threshold: fc.oneof(
      { weight: 3, arbitrary: fc.constant("none" as const) },
      { weight: 1, arbitrary: fc.constantFrom(...thresholds) },
    ),
    sign: fc.constantFrom(1, -1),
    offsetMs: offset,
    partOfEps: fc.constantFrom(0, 0.3, 0.9),
  });
}
type Instant = {
  readonly threshold: Threshold;
  readonly sign: number;
  readonly offsetMs: number;
  readonly partOfEps: number;
};
function distanceMs({ threshold, sign, offsetMs, partOfEps }: Instant, bounds: Bounds): number {
  if (threshold === "none") return Math.round(sign * partOfEps * bounds.epsMs);
  return sign * (THRESHOLDS_MS[threshold](bounds) + offsetMs);
}

/** Mostly `usual`. */
function seldom<T>(usual: T, ...others: readonly T[]): fc.Arbitrary<T> {
  return fc.oneof({ weight: 25, arbitrary: fc.constant(usual) }, { weight: 1, arbitrary: fc.constantFrom(...others) });
}

const identity = fc.record({
  /** How many versions the store has behind it: its first one lies so far below. */
  advances: fc.constantFrom(0, 0, 1, -1, VERSION_COUNT - 1, VERSION_COUNT - 1, VERSION_COUNT - 1),
  version: fc.oneof(
    { weight: 3, arbitrary: fc.constant(0) },
    { weight: 2, arbitrary: fc.integer({ min: 1, max: VERSION_COUNT - 1 }) },
  ),
  rate: fc.constantFrom(1, 2, 16),
  firstRun: fc.constantFrom(1, 2, 1000, RUN_MAX - BURST_RUNS, RUN_MAX - 200, RUN_MAX),
  /** How long ago the version's line began. */
  ageMs: fc.constantFrom(0, 0, HOUR_MS, 24 * HOUR_MS, YEAR_MS, 2.1 * YEAR_MS, -HOUR_MS, "end" as const, "end" as const),
});

const mark = fc.record({
  from: fc.constantFrom("first", "first", "line", "line", "skip", "end", "anywhere"),
  mayBeBelowFirst: seldom(false, true),
  delta: fc.oneof(
    fc.constantFrom(0, -1, 1, -2, 2, -64, -65, 63, 64, -BURST_RUNS),
    fc.integer({ min: -5000, max: 200 }),
    fc.integer({ min: 0, max: RUN_MAX }),
  ),
});

const fault = fc.record({
  field: fc.constantFrom(...FIELDS),
  /** Undefined: the field is missing. */
  text: fc.option(fc.constantFrom(...BAD_WORDS, ...BIG_WORDS, ...ODD_TEXTS), { nil: undefined }),
  isChecksumRight: fc.boolean(),
});

const recordRecipe = fc.record({
  identity,
  mark,
  writtenAt: instant("eps", "gap", "silence", "hour", "year"),
  epoch: fc.oneof(
    { weight: 5, arbitrary: fc.constant("now" as const) },
    { weight: 1, arbitrary: fc.constantFrom("other", "other history", "other syncs", "no colon", "longer process") },
  ),
  generation: fc.constantFrom(0, 0, 1, 7, 7, 1_800_000_000_000, 1_800_000_000_000, GENERATION_MAX - 1, GENERATION_MAX),
  phase: fc.constantFrom(0, 0, 0, 0, 1, 1, 2),
  seal: fc.constantFrom("-", "moved", MOVED_THERE, MOVED_THERE, "forked", "forked"),
  nodeCount: fc.constantFrom(1, 1, 1, 2, 3, 99),
  faults: fc.oneof(
    { weight: 5, arbitrary: fc.constant([]) },
    { weight: 1, arbitrary: fc.array(fault, { minLength: 1, maxLength: 2 }) },
  ),
  namespace: seldom(NAMESPACE, "other"),
  expires: seldom(false, true),
  kind: seldom<"hash" | "none" | "string">("hash", "none", "string"),
  ledger: seldom<"marks" | "string">("marks", "string"),
  /** Of the newest entries, below and above the mark. */
  ledgerDeltas: fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom<readonly number[]>([], [0], [-1], [-7, -3]) },
    { weight: 1, arbitrary: fc.constantFrom<readonly number[]>([1], [0, 5], [RUN_COUNT]) },
  ),
  holders: seldom<KeptState["holders"]>("hash", "none", "none", "list"),
});
type RecordRecipe = typeof recordRecipe extends fc.Arbitrary<infer T> ? T : never;

/** From the mark: far below, a little below, above. */
const ledgerDelta = fc.oneof(
  { weight: 4, arbitrary: fc.constant(-RUN_COUNT * VERSION_COUNT) },
  { weight: 3, arbitrary: fc.constantFrom(0, -1, -64) },
  { weight: 1, arbitrary: fc.constantFrom(1, 2, 200, RUN_COUNT, RUN_COUNT * VERSION_COUNT) },
);

const stepRecipe = fc.record({
  /** The state is one that the step is made for: claimed for `confirm`, nothing at all for `init`. */
  isSuited: fc.boolean(),
  storeId: seldom<"own" | "other" | "none">("own", "other", "none"),
  clock: instant("eps", "eps", "hour", "year"),
  isSilenceAccepted: fc.boolean(),
  floorDelta: ledgerDelta,
  provenRunDelta: ledgerDelta,
  generationDelta: seldom(0, 1, -1, 5),
  generationMinDelta: fc.oneof(
    { weight: 6, arbitrary: fc.constantFrom(-1, 0) },
    { weight: 1, arbitrary: fc.constantFrom(1, 2, GENERATION_MAX) },
  ),
  versionDelta: seldom(0, 1, -1),
  runCount: fc.constantFrom(1, 2, 63, 64, 200, RUN_MAX),
  seal: fc.constantFrom("moved", MOVED_THERE, MOVED_THERE, MOVED_ELSEWHERE, "moved 1@2", "forked"),
  nodeCount: fc.oneof(
    { weight: 3, arbitrary: fc.constant(undefined) },
    { weight: 1, arbitrary: fc.constantFrom(1, 2, 3, 99) },
  ),
});
type StepRecipe = typeof stepRecipe extends fc.Arbitrary<infer T> ? T : never;
type NamedStepRecipe = readonly [StepName, StepRecipe];

/** Each step, and the state that it is made for. */
const SUITED: Readonly<Record<StepName, Partial<RecordRecipe>>> = {
  lease: { phase: 0, epoch: "now" },
  heartbeat: { phase: 0, epoch: "now" },
  claim: { phase: 1 },
  confirm: { phase: 1, epoch: "now" },
  seal: { phase: 0, epoch: "now" },
  recover: { kind: "none" },
  init: { kind: "none", ledgerDeltas: [] },
  advance: { epoch: "now" },
};
export const STEPS = Object.keys(SUITED) as readonly StepName[];

/** A state, and every step, each to be played on that same state. */
export const randomPlays: fc.Arbitrary<readonly Recipe[]> = fc
  .tuple(recordRecipe, fc.tuple(...STEPS.map((name) => fc.tuple(fc.constant(name), stepRecipe))))
  .map(([record, steps]) => steps.map((step) => (server, bounds) => cooked(record, step, server, bounds)));

function cooked(drawn: RecordRecipe, [name, step]: NamedStepRecipe, server: ObservedServer, bounds: Bounds): Play {
  const recipe = step.isSuited ? { ...drawn, ...SUITED[name] } : drawn;
  const { version, ...rest } = recipe.identity;
  const id = idOf(rest, version, server.timeMs);
  const run = runOf(recipe.mark, id, version, server.timeMs, bounds);
  const fields = fieldsOf(recipe, id, run, server, bounds);
  const markId = ledgerIdOf(version, run);
  const ledger = [...new Set(recipe.ledgerDeltas.map((delta) => Math.max(markId + delta, 1)))];
  const state: KeptState = {
    record: recipe.kind === "hash" ? { fields, expires: recipe.expires } : recipe.kind,
    ledger: recipe.ledger === "string" ? "string" : ledger.length === 0 ? "none" : ledger,
    holders: recipe.holders,
  };
  const command = commandOf([name, step], { storeId: storeIdOf(id), markId, version, generation: recipe.generation });
  return { state, command, nowMs: server.timeMs + distanceMs(step.clock, bounds) };
}

/** An id whose line of the version began `ageMs` ago; or as long ago as can be, for versions that no store can have reached. */
function idOf(
  { rate, firstRun, ageMs, advances }: { rate: number; firstRun: number; ageMs: number | "end"; advances: number },
  version: number,
  timeMs: number,
): StoreIdFields {
  const firstVersion = Math.min(Math.max(version - advances, 0), VERSION_COUNT - 1);
  const atZero = { firstVersion, firstRun, rate, initializedAtMs: 0 };
  const beginMs = version <= firstVersion ? 0 : whenCeilingReaches(atZero, version - 1, RUN_MAX);
  const lastsMs = whenCeilingReaches(atZero, version, RUN_MAX) - beginMs;
  return {
    ...atZero,
    initializedAtMs: Math.max(Math.round(timeMs - beginMs - (ageMs === "end" ? lastsMs : ageMs)), 0),
  };
}

function runOf(
  { from, mayBeBelowFirst, delta }: RecordRecipe["mark"],
  id: StoreIdFields,
  version: number,
  timeMs: number,
  { epsMs }: Bounds,
): number {
  const bases: Readonly<Record<string, number>> = {
    first: version === id.firstVersion ? id.firstRun - 1 : 0,
    line: ceilingAt(id, version, timeMs),
    skip: ceilingAt(id, version, timeMs + 2 * epsMs),
    end: RUN_MAX,
    anywhere: 0,
  };
  const min = version === id.firstVersion && !mayBeBelowFirst ? id.firstRun - 1 : 0;
  return Math.min(Math.max((bases[from] ?? 0) + delta, min), RUN_MAX);
}

function fieldsOf(
  recipe: RecordRecipe,
  id: StoreIdFields,
  run: number,
  server: ObservedServer,
  bounds: Bounds,
): Record<string, string> {
  const fields: Record<string, string> = {
    v: SCHEMA,
    ns: recipe.namespace,
    sid: storeIdOf(id),
    ver: String(recipe.identity.version),
    c: String(run),
    t: String(Math.max(server.timeMs + distanceMs(recipe.writtenAt, bounds), 0)),
    ep: epochOf(recipe.epoch, server.epoch ?? "a:b:c"),
    g: String(recipe.generation),
    p: String(recipe.phase),
    n: String(recipe.nodeCount),
    rk: PROOF_KEY,
    ph: recipe.seal,
  };
  fields["k"] = checksumOf(fields);
  for (const { field, text, isChecksumRight } of recipe.faults) {
    if (text === undefined) delete fields[field];
    else fields[field] = text;
    if (isChecksumRight && field !== "k") fields["k"] = checksumOf(fields);
  }
  return fields;
}

function epochOf(kind: RecordRecipe["epoch"], epoch: string): string {
  const [process = "", , ...syncs] = epoch.split(":");
  const epochs: Readonly<Record<RecordRecipe["epoch"], string>> = {
    now: epoch,
    other: `${"0".repeat(40)}:${"1".repeat(40)}:0`,
    "other history": [process, "1".repeat(40), ...syncs].join(":"),
    "other syncs": `${process}:${"1".repeat(40)}:7`,
    "no colon": process,
    "longer process": `${process}0`,
  };
  return epochs[kind];
}

function storeIdOf(id: StoreIdFields): string {
  return newStoreId(id, UUID);
}

function commandOf(
  [name, recipe]: NamedStepRecipe,
  known: { readonly storeId: string; readonly markId: number; readonly version: number; readonly generation: number },
): StepCommand {
  const { isSilenceAccepted, runCount, nodeCount, seal } = recipe;
  const storeIds = { own: known.storeId, other: known.storeId.replace(UUID, OTHER_UUID), none: "no-store-id" };
  const ledgerId = (delta: number) => Math.min(Math.max(known.markId + delta, 0), RUN_COUNT * VERSION_COUNT);
  const generationOf = (delta: number) => Math.min(Math.max(known.generation + delta, 0), GENERATION_MAX);
  const [floor, provenRun] = [recipe.floorDelta, recipe.provenRunDelta].map(ledgerId) as [number, number];
  const generation = generationOf(recipe.generationDelta);
  const generationMin = generationOf(recipe.generationMinDelta);
  const commands = commandsFor(storeIds[recipe.storeId]);
  const base = { isSilenceAccepted };
  const made: { readonly [S in StepCommand as Extract<S["step"], StepName>]: S } = {
    lease: commands.lease({ ...base, floor, generationMin, provenRun, runCount, holder }),
    heartbeat: commands.heartbeat({ ...base, floor, generationMin }),
    claim: commands.claim(generation, { ...base, generationMin }),
    confirm: commands.confirm(generation, { ...base, floor }),
    seal: commands.seal(seal, { ...base, floor, generationMin }),
    recover: commands.recover({ ...base, floor, generationMin, nodeCount, proofKey: "0f".repeat(32) }),
    init: commands.init({ ...base, nodeCount: nodeCount ?? 1 }),
    advance: commands.advance(Math.min(Math.max(known.version + recipe.versionDelta, 0), VERSION_COUNT - 1), {
      ...base,
      floor,
      generationMin,
    }),
  };
  return made[name];
}
