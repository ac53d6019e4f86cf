/**
 * The soak: at least so many millions of call numbers, made by processes through crashes, restores and kills, on Redis and on the
 * embedded store, each of them checked: `npm run soak -- --millions 100`.
 * Guarantees: G9 (docs/guarantees.md).
 */
import { env } from "node:process";
import { encodeCallNumber, SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import { expect, inject, test } from "vitest";
import { noPython } from "../python/python.js";
import { ownServerUnavailable } from "../redis/test-redis.js";
import { CallNumberCheck } from "./call-number-check.js";
import { COORDINATORS, TWO_CLONES } from "./kinds/coordinators.js";
import { CRASHES } from "./kinds/crashes.js";
import { EMBEDDED } from "./kinds/embedded.js";
import type { Load, Workplace } from "./load.js";
import { ProcessImporter } from "./process-importer.js";
import { availableFaults, lineOf } from "./run-fault.js";
import { seededRandom } from "./seeded-random.js";

const MILLIONS = Number(env["CALLNUMBER_MILLIONS"] ?? 100);
const IMPORTER_COUNT = 3;
/** Between two kills of an importer, numbers at most. */
const KILL_EVERY = 2_000_000;
/** A clone needs importers that change between coordinators: that fault is the fault suite's. */
const ALL_FAULTS = [...CRASHES, ...COORDINATORS.filter((fault) => fault !== TWO_CLONES), ...EMBEDDED];
/** A fault takes some ten seconds, however few the numbers. A run of less than ten millions takes every second one; the fault suite has them all. */
const FAULTS = ALL_FAULTS.filter((_, index) => MILLIONS >= 10 || index % 2 === 0);
/** Enough that the channel costs little. */
const TAKE_COUNT = SEQUENCE_COUNT;

test(`no call number is made twice among ${MILLIONS} millions, and the control repeats`, async ({ skip }) => {
  const { binary } = inject("redis");
  if (binary === undefined) return skip(ownServerUnavailable());
  const seed = inject("seed");
  const [check, controlCheck] = [new CallNumberCheck(), new CallNumberCheck()];
  const failures: string[] = [];
  let killCount = 0;
  const faults = availableFaults(FAULTS);

  for (const [index, fault] of faults.entries()) {
    const random = seededRandom(seed + index);
    const load = new ProcessLoad(check, controlCheck);
    // Each fault in a store of its own: after a recovery there is no room left for millions.
    const target = Math.ceil((MILLIONS * 1_000_000 * (index + 1)) / faults.length);
    const workBefore = async (world: { until(what: string, isSo: () => boolean): Promise<void> }) => {
      do {
        const next = check.count + Math.ceil(random() * KILL_EVERY);
        await world.until(`${next} call numbers`, () => check.count >= next);
        await load.killOne(random);
        killCount++;
      } while (check.count < target);
    };
    try {
      const result = await fault.run({ binary, postgres: undefined, random, load, injectionCount: 1, workBefore });
      console.log(lineOf(result));
      for (const problem of result.problems) failures.push(`${fault.name}: ${problem}`);
    } catch (error) {
      failures.push(`${fault.name}: ${(error as Error).message}`);
    }
  }

  console.log(
    [
      `call numbers made and checked one by one: ${check.count} (of ${check.runCount} runs), seed ${seed}`,
      `made more than once: ${check.repeatCount}; malformed: ${check.malformedCount}`,
      `importer processes killed while they generated: ${killCount}`,
      `the control, a plain counter through the same check: ${controlCheck.count} call numbers, ${controlCheck.repeatCount} repeats`,
    ].join("\n"),
  );
  failures.push(...check.findings);
  if (check.count < MILLIONS * 1_000_000) failures.push(`only ${check.count} call numbers were made`);
  if (controlCheck.repeatCount === 0) failures.push("INVALID: the control repeated nothing, so nothing was proved");
  expect(failures).toEqual([]);
});

/**
 * Importers that are processes of their own and generate as fast as they can, the last one in Python, where there is one, with a fork; every call
 * number of theirs is checked.
 */
class ProcessLoad implements Load {
  #importers: readonly ProcessImporter[] = [];
  #checkControl: (piece: Buffer) => void = () => {};
  readonly #countBefore: number;

  constructor(
    readonly check: CallNumberCheck,
    /** Checks the numbers of the control in the same way. */
    readonly controlCheck: CallNumberCheck,
  ) {
    this.#countBefore = check.count;
  }

  get callNumberCount(): number {
    return this.check.count - this.#countBefore;
  }

  get problems(): readonly string[] {
    return this.#importers.flatMap(({ failures }) => failures);
  }

  get leaseCounts(): readonly number[] {
    return this.#importers.map(({ leaseCount }) => leaseCount);
  }

  start(workplace: Workplace, storeId: string): void {
    this.#checkControl = this.controlCheck.reader(storeId, "the control");
    const readerFor = (name: string) => this.check.reader(storeId, name);
    const newImporter = (_: unknown, index: number) => {
      const isInPython = !noPython && index === IMPORTER_COUNT - 1;
      return new ProcessImporter(workplace, { index, readerFor, isInPython, takeCount: TAKE_COUNT, pauseMs: 0 });
    };
    this.#importers = Array.from({ length: IMPORTER_COUNT }, newImporter);
  }

  /** As call numbers of a plain counter: the first run's, then the next one's. */
  noteControl(number: number): void {
    const parts = { version: 0, run: Math.floor(number / SEQUENCE_COUNT), sequence: number % SEQUENCE_COUNT };
    this.#checkControl(Buffer.from(encodeCallNumber(parts), "latin1"));
  }

  /** kill -9 of one of the importers while it generates; another process takes its place. */
  async killOne(random: () => number): Promise<void> {
    await this.#importers[Math.floor(random() * this.#importers.length)]?.replace();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#importers.map((importer) => importer.stop()));
  }
}
