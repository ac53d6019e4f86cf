/**
 * What the embedded store gains by one commit for all callers of a turn: sixty-four at once beside the same callers one after the
 * other, in turns, on a real disk.
 */
import { randomBytes } from "node:crypto";
import { statfsSync } from "node:fs";
import { join } from "node:path";
import type { LeaseRequest } from "@callnumber/protocol/wire";
import { onTestFinished, test } from "vitest";
import { Coordinator } from "../packages/coordinator/src/coordinator.js";
import { openStore } from "../packages/coordinator/src/stores/open-store.js";
import { initBackdated } from "../test/backdated.js";
import { folderForTest } from "../test/processes/command.js";
import { HOLDER_COUNT, holderOf } from "./filled-ledgers.js";
import { machineInWords } from "./machine.js";
import { figure, quantile, spreadInWords } from "./quantiles.js";
import { publish } from "./report.js";

const CALLER_COUNT = 64;
/** What we aim at with so many callers: times as fast as one commit for each lease. */
const AIM_TIMES = 10;
const WARM_UP_ROUNDS = 100;
const ROUND_COUNT = 40;
/** Of statfs(2): there a sync costs nothing, and the comparison would say nothing. */
const TMPFS_TYPE = 0x0102_1994;

/** Of one lease, among those that all callers take. */
interface Cost {
  readonly us: number;
  readonly cpuUs: number;
}

test("leases of the embedded store, all callers in one commit and each in its own", async () => {
  const folder = await folderForTest();
  const { type } = statfsSync(folder);
  if (type === TMPFS_TYPE) throw new Error(`${folder} lies in memory: set TMPDIR to a folder on a disk`);
  const path = join(folder, "store.db");
  const { store } = await openStore({ kind: "sqlite", path }, { create: true });
  onTestFinished(() => store.close());
  await initBackdated(store, "bench");
  const coordinator = new Coordinator({ store, name: "bench" });
  const together: Lease = async (requests) => {
    await Promise.all(requests.map((request) => coordinator.lease("bench", request)));
  };
  const oneByOne: Lease = async (requests) => {
    for (const request of requests) await coordinator.lease("bench", request);
  };
  for (let round = 0; round < WARM_UP_ROUNDS; round++) await costOf(together);
  const alone: Cost[] = [];
  const grouped: Cost[] = [];
  for (let round = 0; round < ROUND_COUNT; round++) {
    alone.push(await costOf(oneByOne));
    grouped.push(await costOf(together));
  }
  const ratios = alone.map(({ us }, round) => us / (grouped[round] as Cost).us);
  publish({
    bench: "group-commit",
    sections: [
      {
        heading: "One commit for all callers of a moment",
        sentences: [
          `${machineInWords()} ${CALLER_COUNT} leases of the embedded store in each of ${ROUND_COUNT} rounds, first one after the other, each with a commit of its own, then all at once; in process, without HTTP; the file lies on a file system of type 0x${type.toString(16)}. Medians and quartiles of a round, for one lease of it.`,
          `The aim is at least ${AIM_TIMES} times as fast as one commit a lease; measured: ${spreadInWords(ratios)} times.`,
        ],
        table: {
          columns: ["way", "µs a lease", "leases a second", "CPU, µs a lease", "times as fast"],
          rows: [
            rowOf(
              "one commit each",
              alone,
              alone.map(() => 1),
            ),
            rowOf("one commit for all", grouped, ratios),
          ],
        },
      },
    ],
  });
});

type Lease = (requests: readonly LeaseRequest[]) => Promise<void>;

async function costOf(lease: Lease): Promise<Cost> {
  const requests = Array.from({ length: CALLER_COUNT }, (_, index) => requestOf(index));
  const [beginMs, beginCpu] = [performance.now(), process.cpuUsage()];
  await lease(requests);
  const { user, system } = process.cpuUsage(beginCpu);
  return { us: ((performance.now() - beginMs) * 1_000) / CALLER_COUNT, cpuUs: (user + system) / CALLER_COUNT };
}

function requestOf(index: number): LeaseRequest {
  const nonce = randomBytes(12).toString("base64url");
  const evidence = { lastRun: null, receipt: null, sentAtMs: Date.now() };
  return { runCount: 1, nonce, holder: holderOf(index % HOLDER_COUNT), ...evidence };
}

function rowOf(name: string, costs: readonly Cost[], ratios: readonly number[]): string[] {
  const times = costs.map(({ us }) => us);
  const cpuTimes = costs.map(({ cpuUs }) => cpuUs);
  const perSecond = 1e6 / quantile(times, 0.5);
  return [name, spreadInWords(times), figure(perSecond), spreadInWords(cpuTimes), spreadInWords(ratios)];
}
