/**
 * Histories as plain data: a setting and a list of steps. Drawn from a seed, shrunk by fast-check to a short one that still fails, and
 * written down as JSON they are the same again.
 */

import fc from "fast-check";
import { CLOCK_FAULTS, HOST_FAULTS, NETWORK_FAULTS, STALE_FAULTS } from "./faults/coordinator-faults.js";
import { COURSE, OPERATOR_DEEDS } from "./faults/course.js";
import { RECORD_FAULTS, SERVER_FAULTS } from "./faults/server-faults.js";
import { BURST_RUNS, RUN_MAX } from "./product.js";

export const KINDS = {
  ...COURSE,
  ...NETWORK_FAULTS,
  ...HOST_FAULTS,
  ...STALE_FAULTS,
  ...SERVER_FAULTS,
  ...RECORD_FAULTS,
  ...CLOCK_FAULTS,
  ...OPERATOR_DEEDS,
};

type KindName = keyof typeof KINDS;

const GROUPS = [...new Set(Object.values(KINDS).map(({ group }) => group))];

export interface Step {
  readonly kind: KindName;
  readonly a: number;
  readonly b: number;
  /** How many of the messages in flight arrive before the next step: 0 to 4 everything, else little or nothing. */
  readonly flow: number;
}

export interface Setting {
  /** Data nodes; `init --nodes` says as many. */
  readonly serverCount: number;
  readonly hostCount: number;
  readonly importerCount: number;
  readonly rate: number;
  readonly firstRun: number;
  /** How long ago the store was made, ms: the line lies higher above an old store's mark. */
  readonly ageMs: number;
  /** Whether a recovery completed just before the history begins: the mark then lies on the line, and every later skip lands near it. */
  readonly isOnLine: boolean;
  /** Where coordinators remember: nowhere, each on its own machine, all on one machine. */
  readonly checkpoint: "none" | "own" | "shared";
  /** Seed of fast-check's scheduler: in which order messages arrive. */
  readonly order: number;
}

export interface History {
  readonly setting: Setting;
  readonly steps: readonly Step[];
}

/** A part of all histories, where one fault is more frequent than elsewhere. */
export interface Focus {
  /** Faults of these groups, and no others. */
  readonly groups?: readonly string[];
  /** Steps of these kinds, and no others. */
  readonly kinds?: readonly KindName[];
  readonly setting?: Partial<Setting>;
}

const PARAMETER_MAX = 2 ** 30 - 1;
const FLOW_MAX = 7;
const AGE_MAX_MS = 25 * 24 * 3_600_000;
const KIND_NAMES = Object.keys(KINDS) as KindName[];

/** Histories of exactly so many steps, which shrink to any shorter ones. */
export function histories(stepCount: number, focus: Focus = {}): fc.Arbitrary<History> {
  return new HistoryArbitrary(stepCount, focus);
}

/** fast-check's own commands come in any number; here a number is promised. */
class HistoryArbitrary extends fc.Arbitrary<History> {
  readonly #stepCount: number;
  readonly #focus: Focus;

  constructor(stepCount: number, focus: Focus) {
    super();
    this.#stepCount = stepCount;
    this.#focus = focus;
  }

  generate(mrng: fc.Random): fc.Value<History> {
    const draw: Draw = (min, max) => mrng.nextInt(min, max);
    return new fc.Value(drawn(draw, this.#stepCount, this.#focus), undefined);
  }

  canShrinkWithoutContext(_value: unknown): _value is History {
    return true;
  }

  shrink(value: History): fc.Stream<fc.Value<History>> {
    return fc.stream(shorter(value));
  }
}

/** Yields the same history without some of its steps in a row: half of them, a quarter, down to each single one. */
function* shorter({ setting, steps }: History): IterableIterator<fc.Value<History>> {
  for (let size = Math.ceil(steps.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let end = steps.length; end > 0; end -= size) {
      const kept = [...steps.slice(0, Math.max(0, end - size)), ...steps.slice(end)];
      yield new fc.Value({ setting, steps: kept }, undefined);
    }
  }
}

/** Faults that belong together; undefined stands for any. */
const THEMES: readonly (readonly string[] | undefined)[] = [
  undefined,
  undefined,
  undefined,
  ["failover", "crashes", "routes"],
  ["failover", "crashes"],
  ["failover", "cuts", "lag", "routes"],
  ["failover", "edits", "routes"],
  ["crashes", "edits", "hosts"],
  ["backups", "crashes", "hosts"],
  ["rollbacks", "hosts", "silences"],
  ["stale", "rollbacks", "hosts"],
  ["stale", "failover", "crashes", "messages"],
  ["operator", "failover", "backups"],
  ["moves", "backups", "crashes", "flushes", "hosts"],
];

const ONES: readonly number[] = Array.from({ length: 18 }, () => 1);

type Draw = (min: number, max: number) => number;

function drawn(draw: Draw, stepCount: number, focus: Focus): History {
  const pick = <T>(choices: readonly T[]): T => choices[draw(0, choices.length - 1)] as T;
  const setting: Setting = {
    serverCount: pick([1, 1, 2, 3, 3, 3]),
    hostCount: pick([1, 2, 2, 3]),
    importerCount: pick([2, 3, 4]),
    rate: pick([1, 1, 1, 2, 16]),
    firstRun: pick([...ONES, draw(1, RUN_MAX), RUN_MAX - draw(0, 400), RUN_MAX - BURST_RUNS - draw(0, 4_000)]),
    ageMs: pick([0, draw(0, 100_000), draw(0, AGE_MAX_MS)]),
    isOnLine: pick([true, true, false]),
    checkpoint: pick(["none", "own", "shared"]),
    order: draw(0, PARAMETER_MAX),
    ...focus.setting,
  };
  // A history knows some groups of faults only: deep combinations of few find more than a little of everything.
  const theme = focus.groups ?? pick(THEMES) ?? GROUPS.filter(() => draw(0, 2) === 0);
  const groups = new Set<string>(["course", ...theme]);
  const kinds = (focus.kinds ?? KIND_NAMES.filter((kind) => groups.has(KINDS[kind].group))).flatMap((kind) =>
    Array.from({ length: KINDS[kind].weight }, () => kind),
  );
  const steps = Array.from({ length: stepCount }, () => ({
    kind: pick(kinds),
    a: draw(0, PARAMETER_MAX),
    b: draw(0, PARAMETER_MAX),
    flow: draw(0, FLOW_MAX),
  }));
  return { setting, steps };
}
