/**
 * One seeded script, run on two stores, and every outcome compared: this finds what the contract leaves out.
 * Guarantees: G1 (docs/guarantees.md).
 */
import { isDeepStrictEqual } from "node:util";
import { RUN_MAX } from "@callnumber/protocol/codec";
import fc from "fast-check";
import { describe, expect, inject, test } from "vitest";
import { sized } from "../../../test/size-of-run.js";
import type { CoordinatorError } from "../src/errors.js";
import type { Store } from "../src/stores/store.js";
import { commandsFor, storeIdFrom } from "./commands-for-test.js";
import { type Play, randomScript, type StoreIds, scriptOfRefusals } from "./random-scripts.js";
import { stepOn } from "./steps-for-test.js";
import { openMemory, STORES } from "./stores-for-test.js";

const SCRIPTS = sized(15, 50);
const STEPS = 60;
/** The ceiling rises once a second, first so long after a script began: until then two clocks see the same ceiling. */
const RATE = 1;
const RISE_AFTER_MS = 500;
const SAME_CEILING_MS = 350;

async function outcome(play: Play, store: Store, ids: StoreIds): Promise<unknown> {
  try {
    return withoutTimes(await play.on(store, ids));
  } catch (error) {
    const { code, reason, message, generation } = error as CoordinatorError;
    // Not a refusal: an expectation of the play itself, or a fault.
    if (code === undefined) throw error;
    return withoutTimes({ code, reason, message: message.replace(/-?\d+ ms/g, "some time"), generation });
  }
}

/** Clocks differ between the stores; everything else must not. A recovered store has a time for its generation. */
function withoutTimes(value: unknown): unknown {
  const isTime = (key: string, item: unknown) =>
    typeof item === "number" && (key.endsWith("AtMs") || (key === "generation" && item > 1e12));
  const text = JSON.stringify(value ?? null, (key, item) => (isTime(key, item) ? "a time" : item));
  return JSON.parse(text.replace(/generation \d{13}/g, "generation a time"));
}

describe.each(STORES.slice(1))("the %s store and the memory store", (_, open) => {
  test(`both stores return the same for ${SCRIPTS} scripts of ${STEPS} steps`, async () => {
    const rejections = new Set<string>();
    await fc.assert(
      fc.asyncProperty(randomScript(STEPS), async (script) => {
        const [reference, other] = [await openMemory(), await open()];
        try {
          const startMs = Date.now();
          const options = { initializedAtMs: startMs + RISE_AFTER_MS - 90_000_000_000, rate: RATE };
          const ids: StoreIds = {
            main: storeIdFrom(1, options),
            end: storeIdFrom(RUN_MAX - 200, options),
            none: storeIdFrom(9, options),
          };
          for (const name of ["main", "end"] as const) {
            await stepOn(reference.store, name, commandsFor(ids[name]).init());
            await stepOn(other.store, name, commandsFor(ids[name]).init());
          }
          const played: string[] = [];
          for (const play of script) {
            const expected = await outcome(play, reference.store, ids);
            const answer = await outcome(play, other.store, ids);
            played.push(play.name);
            // Only on a slow machine: the ceiling may have risen between the two.
            if (Date.now() - startMs > SAME_CEILING_MS && !isDeepStrictEqual(answer, expected)) break;
            expect(answer, played.join("\n")).toEqual(expected);
            if (typeof expected === "object" && expected !== null && "code" in expected)
              rejections.add(String(("reason" in expected && expected.reason) || expected.code));
          }
        } finally {
          await reference.remove();
          await other.remove();
        }
      }),
      { seed: inject("seed"), numRuns: SCRIPTS, endOnFailure: true, examples: [[scriptOfRefusals]] },
    );
    const expected =
      "claimed conflict generation_stale holder_mismatch manual_recovery_required namespace_exists namespace_moved " +
      "namespace_not_found rolled_back run_ceiling_reached run_not_leased run_space_exhausted store_forked store_id_mismatch " +
      "version_still_active";
    expect([...rejections].sort()).toEqual(expected.split(" "));
  });
});
