/**
 * What importers do that they should not, or may: evidence made up, threads, a new client for each few numbers, sequences at their end.
 * Guarantees: G9 (docs/guarantees.md).
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { httpSource } from "@callnumber/client";
import { RUN_MAX, SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import { expectRejection } from "../commands.js";
import { redisFault } from "../redis-world.js";
import type { Fault } from "../run-fault.js";
import { NAMESPACE } from "../world.js";

const PROGRAM = join(import.meta.dirname, "../generating-thread.mjs");
const THREAD_COUNT = 3;
/** Past the end of a sequence, more than once. */
const COUNT = 2 * SEQUENCE_COUNT + 2;

export const IMPORTERS: readonly Fault[] = [
  redisFault("a run made up, without a lease proof", { expected: ["run_above_high_water_mark"] }, async (world) => {
    const source = httpSource({ coordinator: world.coordinators[0]?.url ?? "" });
    const request = {
      runCount: 1,
      nonce: randomBytes(12).toString("base64url"),
      holder: { name: "liar", host: "fault-test", pid: process.pid, labels: {} },
      lastRun: RUN_MAX,
      proof: null,
      sentAtMs: Date.now(),
    };
    const leased = source.lease(NAMESPACE, request, { signal: AbortSignal.timeout(60_000) });
    await expectRejection(world, "run_above_high_water_mark", "a run made up", leased);
  }),
  redisFault("threads of one process, past the ends of their sequences", { isShort: true }, async (world) => {
    const coordinators = world.coordinators.map(({ url }) => url);
    const made = await Promise.all(
      Array.from({ length: THREAD_COUNT }, (_, index) =>
        generatedInThread(coordinators[index % coordinators.length] ?? ""),
      ),
    );
    const all = made.flat();
    const distinct = new Set(all);
    if (all.length < THREAD_COUNT * COUNT) throw new Error(`only ${all.length} call numbers were made`);
    if (distinct.size < all.length) throw new Error(`${all.length - distinct.size} call numbers came twice`);
  }),
];

async function generatedInThread(coordinator: string): Promise<readonly string[]> {
  const thread = new Worker(PROGRAM, { workerData: { coordinator, namespace: NAMESPACE, count: COUNT } });
  try {
    const [made] = (await once(thread, "message")) as [readonly string[]];
    return made;
  } finally {
    await thread.terminate();
  }
}
