/**
 * Lease proofs: evidence that this store leased a run, by which a copy of the store is detected.
 * Guarantees: G7 (docs/guarantees.md).
 */
import { createHmac, createSecretKey, type KeyObject, randomBytes, timingSafeEqual } from "node:crypto";
import { type Holder, ledgerIdOf, runName, runOfLedgerId } from "@callnumber/protocol/api";
import { CoordinatorError } from "../errors.js";
import type { Log } from "../log.js";
import type { Checkpoint } from "./checkpoint.js";
import type { NamespaceRecord } from "./record.js";

/** Returns a new key for a record. */
export function newProofKey(): string {
  return randomBytes(32).toString("hex");
}

/**
 * Makes lease proofs: evidence that this store leased a run. A run without one is a claim that any client could make, and would let it stop all
 * leasing. Parsed once for many of them.
 */
export class ProofKey {
  readonly #key: KeyObject;

  /** @param hex as in the record, 32 bytes. */
  constructor(hex: string) {
    this.#key = createSecretKey(hex, "hex");
  }

  /** Returns the proof of a lease whose last run has that ledger id: an HMAC-SHA256, 43 characters. */
  proofOf(storeId: string, lastLedgerId: number): string {
    return createHmac("sha256", this.#key).update(`${storeId} ${lastLedgerId}`).digest("base64url");
  }

  isProofOf(proof: string, storeId: string, lastLedgerId: number): boolean {
    const expected = Buffer.from(this.proofOf(storeId, lastLedgerId));
    const given = Buffer.from(proof);
    return given.length === expected.length && timingSafeEqual(given, expected);
  }
}

/** The last run of a holder, by its ledger id, what it has to prove it, and the namespace that it is to be of. */
export interface ShownRun {
  readonly lastRun: number;
  readonly proof: string | null;
  readonly holder: Holder;
  readonly checkpoint: Checkpoint;
  readonly proofKey: ProofKey;
  readonly log: Log;
  readonly readRecord: () => Promise<NamespaceRecord>;
}

/**
 * Returns the holder's last run where its proof shows that this store leased it, else 0.
 * @throws CoordinatorError `run_above_high_water_mark` for a run without a lease proof that the store never leased.
 */
export async function provenRunOf(shown: ShownRun): Promise<number> {
  const { lastRun, proof, holder, checkpoint, proofKey, log } = shown;
  const { storeId, ledgerId } = checkpoint;
  // Known already: a store that has not leased this run is below the lower bounds of the step, which fails for that.
  if (lastRun <= ledgerId) return 0;
  if (proof !== null && proofKey.isProofOf(proof, storeId, lastRun)) return lastRun;
  const { namespace, version, highWaterMark } = await shown.readRecord();
  if (lastRun <= ledgerIdOf(version, highWaterMark)) return 0;
  const { version: lastVersion, run } = runOfLedgerId(lastRun);
  log.warn({ namespace, version, mark: highWaterMark, lastVersion, lastRun: run, holder }, "run_above_high_water_mark");
  throw new CoordinatorError(
    "run_above_high_water_mark",
    `the importer has run ${runName(lastVersion, run, version)} without a valid lease proof, but this store's last run is ` +
      `${runName(version, highWaterMark)}: it has used another store. Nothing was leased. Stop it and compare the store ids`,
  );
}
