/** Random ledgers, as one store hands them to another: every width that an entry may have, in rising order. */

import { LEASE_RUN_COUNT_MAX, type Progress } from "@callnumber/protocol/api";
import { RUN_MAX, SEQUENCE_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import fc from "fast-check";

const NONCE_CHARACTERS = "ABCXYZabcxyz0189-_";
/** The last second that four bytes can count. */
const TIME_MAX_MS = 2 ** 32 * 1000 - 1;

const holder = fc.record({
  name: fc.constantFrom("importer", "Büro für Listen", "x"),
  host: fc.constantFrom("mail-1", "mail-2"),
  pid: fc.integer({ min: 1, max: 3 }),
  labels: fc.constantFrom({}, { archive: "lists" }, { b: "2", a: '"\\\n' }),
});

const progress: fc.Arbitrary<Omit<Progress, "run"> & { readonly share: number }> = fc.record({
  share: fc.double({ min: 0, max: 0.999, noNaN: true }),
  lastSequence: fc.option(fc.integer({ min: 0, max: SEQUENCE_MAX })),
  state: fc.constantFrom<Progress["state"]>("open", "exhausted", "closed", "discarded"),
  reportedAtMs: fc.integer({ min: 0, max: TIME_MAX_MS }),
});

const lease = fc.record({
  gap: fc.oneof(
    { weight: 20, arbitrary: fc.constant(0) },
    { weight: 20, arbitrary: fc.integer({ min: 1, max: 300 }) },
    { weight: 1, arbitrary: fc.integer({ min: 2 ** 27, max: 2 ** 29 }) },
  ),
  runCount: fc.integer({ min: 1, max: LEASE_RUN_COUNT_MAX }),
  waitedMs: fc.nat(5_000),
  holder,
  coordinator: fc.constantFrom("one", "two"),
  tokenId: fc.option(fc.constantFrom("01234567", "89abcdef")),
  progress: fc.option(progress),
  nonce: fc.string({ unit: fc.constantFrom(...NONCE_CHARACTERS), minLength: 16, maxLength: 64 }),
});

/** Up to `maxLength` leases; from version 0 on, a later version whenever the run space of one has ended. */
export function randomLedger(maxLength: number): fc.Arbitrary<readonly LedgerEntry[]> {
  return fc.array(lease, { maxLength }).map((drawn) => {
    let [version, mark, timeMs] = [0, 0, 1_790_000_000_000];
    const leases: LedgerEntry[] = [];
    for (const { gap, runCount, waitedMs, progress: report, holder: who, coordinator, tokenId, nonce } of drawn) {
      if (mark + gap + runCount > RUN_MAX) [version, mark] = [version + 1, 0];
      if (version > VERSION_MAX) break;
      timeMs += waitedMs;
      const firstRun = mark + gap + 1;
      const { share = 0, ...reported } = report ?? {};
      const run = firstRun + Math.floor(share * runCount);
      leases.push({
        version,
        firstRun,
        runCount,
        leasedAtMs: timeMs,
        holder: who,
        coordinator,
        ...(tokenId === null ? {} : { tokenId }),
        nonce,
        progress: report === null ? null : ({ run, ...reported } as Progress),
      });
      mark = firstRun + runCount - 1;
    }
    return leases;
  });
}
