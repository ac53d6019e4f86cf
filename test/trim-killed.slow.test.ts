/**
 * kill -9 of coordinators that trim the ledger while importers lease: after each kill every lease is in the store or in a file, and the next
 * coordinator goes on trimming. No run is leased twice.
 */
import { mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { expect, inject, test } from "vitest";
import { lastLedgerIdOf } from "../packages/coordinator/src/ledger/lease-identity.js";
import { LEDGER_TRIM_LEASES_MAX } from "../packages/coordinator/src/retention/ledger-trimmer.js";
import { seededBelow } from "./faults/seeded-random.js";
import { exportedLedger, LeasingImporters } from "./leasing-importers.js";
import { makeOldLedger } from "./old-ledger.js";
import { folderForTest, serveProcess } from "./processes/command.js";
import { sharedRedis } from "./redis/test-redis.js";

const KILLS = 12;
/** More than all killed coordinators trim. */
const OLD_LEASES = 4 * KILLS * LEDGER_TRIM_LEASES_MAX;
/** Of its file, after which a coordinator is killed: up to two steps, with a lease of 200 bytes. */
const GROWTH_BYTES_BELOW = 2 * 200 * LEDGER_TRIM_LEASES_MAX;
const DELAY_MS_BELOW = 8;

interface StoreUrls {
  readonly storeUrl: string;
  readonly operatorUrl: string;
}

const STORES: readonly (readonly [name: string, urlsIn: (folder: string) => StoreUrls])[] = [
  ["SQLite", (folder) => ({ storeUrl: `sqlite:${folder}/store.db`, operatorUrl: `sqlite:${folder}/store.db` })],
  ["Redis", () => sharedRedis()],
];

test.each(STORES)(
  `${KILLS} coordinators that are killed while they trim %s lose no lease, and the next one trims the rest`,
  async (_, urlsIn) => {
    const below = seededBelow(inject("seed"));
    const folder = await folderForTest();
    const { storeUrl, operatorUrl } = urlsIn(folder);
    const ledgerDir = join(folder, "ledger");
    mkdirSync(ledgerDir);
    const serve = (...more: readonly string[]) =>
      serveProcess(storeUrl, "--checkpoint-dir", join(folder, "checkpoints"), ...more);
    const old = await makeOldLedger(operatorUrl, OLD_LEASES);
    /** Asks the store first: what is trimmed in between is in a file by then. */
    const expectAllKept = async (url: string) => {
      const leases = [...importers.leases];
      const inStore = await exportedLedger(url);
      const kept = [...wholeLeasesIn(ledgerDir), ...inStore];
      expectAllOf(old, kept);
      importers.expectAllIn(kept, leases);
      return inStore;
    };

    // It recovers the store, so that the next one finds it open and trims at its start.
    const recovering = await serve();
    const importers = new LeasingImporters(recovering.url);
    await importers.untilLeased();
    await recovering.stop();
    for (let kill = 0; kill < KILLS; kill++) {
      const sizeBefore = sizeOf(ledgerDir);
      const coordinator = await serve("--ledger-dir", ledgerDir);
      importers.goTo(coordinator.url);
      const growth = 1 + below(GROWTH_BYTES_BELOW);
      await expect.poll(() => sizeOf(ledgerDir) - sizeBefore, { interval: 1 }).toBeGreaterThanOrEqual(growth);
      await delay(below(DELAY_MS_BELOW));
      await coordinator.stop("SIGKILL");
      const next = await serve();
      importers.goTo(next.url);
      const [oldest] = await expectAllKept(next.url);
      // It was killed in the middle of trimming.
      expect(oldest?.firstRun).toBeLessThanOrEqual(OLD_LEASES);
      await next.stop();
    }
    const last = await serve("--ledger-dir", ledgerDir);
    importers.goTo(last.url);
    await expect.poll(async () => (await expectAllKept(last.url))[0]?.firstRun).toBeGreaterThan(OLD_LEASES);
    await importers.untilLeased();
    await importers.stop();
    await expectAllKept(last.url);
  },
);

function sizeOf(directory: string): number {
  return readdirSync(directory).reduce((size, name) => size + statSync(join(directory, name)).size, 0);
}

/** Only the last line of a file may be torn. */
function wholeLeasesIn(directory: string): readonly LedgerEntry[] {
  return readdirSync(directory).flatMap((name) => {
    const lines = readFileSync(join(directory, name), "utf8").split("\n");
    return lines.slice(0, -1).map((line) => JSON.parse(line) as LedgerEntry);
  });
}

function expectAllOf(wanted: readonly LedgerEntry[], found: readonly LedgerEntry[]): void {
  const texts = new Map(found.map((lease) => [lastLedgerIdOf(lease), JSON.stringify(lease)]));
  const lost = wanted.filter((lease) => texts.get(lastLedgerIdOf(lease)) !== JSON.stringify(lease));
  expect(lost.map(({ firstRun }) => firstRun)).toEqual([]);
}
