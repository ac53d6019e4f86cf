/** Every field of a lease. */
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { labelsInWords } from "../format.js";
import { runs } from "../format-event.js";
import { Instant } from "./time.js";

export function LeaseFields({ lease }: { lease: LedgerEntry }) {
  const { version, firstRun, runCount, leasedAtMs, holder, coordinator, tokenId, nonce } = lease;
  return (
    <dl class="fields">
      <dt>Holder</dt>
      <dd>{holder.name}</dd>
      <dt>Host</dt>
      <dd>{holder.host}</dd>
      <dt>Process</dt>
      <dd>{holder.pid}</dd>
      <dt>Labels</dt>
      <dd>{labelsInWords(holder.labels) || "none"}</dd>
      <dt>Leased</dt>
      <dd>
        <Instant atMs={leasedAtMs} isFull />
      </dd>
      <dt>Runs</dt>
      <dd>{runs(firstRun, runCount).replace(/^runs? /, "")}</dd>
      <dt>Version</dt>
      <dd>{version}</dd>
      <dt>Coordinator</dt>
      <dd>{coordinator}</dd>
      {tokenId !== undefined && (
        <>
          <dt>Token</dt>
          <dd>
            <code>{tokenId}</code>
          </dd>
        </>
      )}
      <dt>Nonce</dt>
      <dd>
        <code>{nonce}</code>
      </dd>
    </dl>
  );
}
