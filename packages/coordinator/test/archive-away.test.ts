/** What operators are told while the archive of a ledger can't be read: what stands in the store, and that there is more. */

import { expect, test } from "vitest";
import { lookBack } from "../src/capacity-look.js";
import { CoordinatorError } from "../src/errors.js";
import { historyOf } from "../src/history.js";
import { neighboursOf } from "../src/inspect-neighbours.js";
import { lastLedgerIdOf } from "../src/lease-identity.js";
import type { LedgerReader } from "../src/ledger-reader.js";
import { leasesInARow, MINUTE_MS, NOW_MS } from "./ledger-for-capacity.js";

const HOUR_MS = 60 * MINUTE_MS;
const ARCHIVED = 5;

/** Twenty leases in the last twenty minutes, the first five of which stand in files that nobody can read. */
function ledgerWithoutItsArchive(hotCount = 15): LedgerReader {
  const all = leasesInARow(
    Array.from({ length: ARCHIVED + hotCount }, (_, index) => ({ agoMs: (20 - index) * MINUTE_MS })),
  );
  const hot = all.slice(ARCHIVED);
  const away = () => new CoordinatorError("ledger_archive_unavailable", "the folder is not mounted");
  return {
    async findLease() {
      throw away();
    },
    async listLeases(_, { belowLedgerId, limit }) {
      const found = hot
        .filter((lease) => lastLedgerIdOf(lease) < belowLedgerId)
        .reverse()
        .slice(0, limit);
      if (found.length < limit) throw away();
      return found;
    },
    async firstLeaseSince() {
      throw away();
    },
    async exportLeases(_, { afterLedgerId, limit }) {
      if (afterLedgerId < ARCHIVED) throw away();
      return hot.filter((lease) => lastLedgerIdOf(lease) > afterLedgerId).slice(0, limit);
    },
  };
}

test("a look back has every lease that can be read, and does not claim to be whole", async () => {
  const { leases, completeFromMs } = await lookBack(ledgerWithoutItsArchive(), "main", NOW_MS - HOUR_MS);
  expect(leases).toHaveLength(15);
  expect(completeFromMs).toBe((leases.at(-1)?.leasedAtMs ?? 0) + 1);
});

test("a look back at nothing that can be read is not a look at nothing", async () => {
  expect(await lookBack(ledgerWithoutItsArchive(0), "main", NOW_MS - HOUR_MS)).toEqual({
    leases: [],
    completeFromMs: Number.POSITIVE_INFINITY,
  });
});

test("a history that can't be counted is refused, and no flat line", async () => {
  for (const hotCount of [0, 15]) {
    const history = historyOf(ledgerWithoutItsArchive(hotCount), "main", HOUR_MS, NOW_MS);
    await expect(history).rejects.toMatchObject({ code: "ledger_archive_unavailable" });
  }
});

test("neighbours are found in the store, and where they may stand in the archive that is said", async () => {
  const ledger = ledgerWithoutItsArchive();
  const hot = await ledger.exportLeases("main", { afterLedgerId: ARCHIVED, limit: 15 });
  const [first, second] = hot;
  if (first === undefined || second === undefined) throw new Error("the ledger has leases");
  expect(await neighboursOf(ledger, "main", second)).toMatchObject({ previous: first, next: hot[2] });
  const { previous, explanation } = await neighboursOf(ledger, "main", first);
  expect(previous).toBeNull();
  expect(explanation).toContain("the ledger's archive, which is away");
});
