/**
 * The ledger's entry of a lease, from what the stores that outlive their process keep of it: its last ledger id, and its
 * holder as JSON, which stands once for many leases. Pure.
 */
import { type LedgerEntry, type Progress, runOfLedgerId } from "@callnumber/protocol/wire";
import type { LedgerRange } from "../ledger/lease-identity.js";

/** Who got a lease, by which token, and who granted it. */
type Grantee = Pick<LedgerEntry, "holder" | "coordinator" | "tokenId">;

export interface KeptEntry extends LedgerRange {
  readonly leasedAtMs: number;
  /** As `holderJsonOf` made it. */
  readonly holderJson: string;
  readonly nonce: string;
  readonly progress: Progress | null;
}

/** In their order. Entries of one holder share it: a page names few holders, and reading their JSON is most of its cost. */
export function ledgerEntriesOf(kept: readonly KeptEntry[]): LedgerEntry[] {
  const grantees = new Map<string, Grantee>();
  return kept.map(({ lastLedgerId, runCount, leasedAtMs, holderJson, nonce, progress }) => {
    const grantee = grantees.get(holderJson) ?? granteeIn(holderJson);
    grantees.set(holderJson, grantee);
    const { version, run: lastRun } = runOfLedgerId(lastLedgerId);
    return { version, firstRun: lastRun - runCount + 1, runCount, leasedAtMs, ...grantee, nonce, progress };
  });
}

/** The same text for the same process at the same coordinator, by the same token. */
export function holderJsonOf({ holder, coordinator, tokenId }: Grantee): string {
  return JSON.stringify({ holder, coordinator, tokenId });
}

function granteeIn(holderJson: string): Grantee {
  const { holder, coordinator, tokenId } = JSON.parse(holderJson) as Grantee;
  return tokenId === undefined ? { holder, coordinator } : { holder, coordinator, tokenId };
}
