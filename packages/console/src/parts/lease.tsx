/** A lease: its fields, and bars that show how far its holder got in its runs. */

import { type KnownRunState, runsName } from "@callnumber/protocol/api";
import { SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import type { LedgerEntry, RunResponse } from "@callnumber/protocol/schemas";
import type { ComponentChildren } from "preact";
import { formatLabels, formatNumber } from "../format.js";
import { Instant } from "./time.js";

export function LeaseFields({ lease, currentVersion }: { lease: LedgerEntry; currentVersion?: number }) {
  const { version, leasedAtMs, holder, coordinator, tokenId, nonce } = lease;
  const fields: readonly (readonly [name: string, value: ComponentChildren])[] = [
    ["Holder", holder.name],
    ["Host", holder.host],
    ["Process", holder.pid],
    ["Labels", formatLabels(holder.labels) || "none"],
    ["Leased", <Instant key="leased" atMs={leasedAtMs} isFull />],
    ["Runs", runsName(lease, currentVersion)],
    ["Version", version],
    ["Coordinator", coordinator],
    ...(tokenId === undefined ? [] : [["Token", <code key="token">{tokenId}</code>] as const]),
    ["Nonce", <code key="nonce">{nonce}</code>],
  ];
  return (
    <dl class="fields">
      {fields.map(([name, value]) => [<dt key={`${name}:`}>{name}</dt>, <dd key={name}>{value}</dd>])}
    </dl>
  );
}

interface BarProperties {
  readonly state: KnownRunState;
  /** 0 to 1. */
  readonly share: number;
  readonly text: string;
  /** Where a call number is, 0 to 1. */
  readonly marked?: number | undefined;
  readonly isSmall?: boolean;
}

function Bar({ state, share, text, marked, isSmall = false }: BarProperties) {
  return (
    <div class={`sequence-bar ${state}${isSmall ? " small" : ""}`}>
      <div class="track" role="img" aria-label={text}>
        <div class="filled" style={{ width: `${share * 100}%` }} />
        {marked !== undefined && <div class="marked" style={{ left: `${marked * 100}%` }} />}
      </div>
      {!isSmall && <p class="quiet">{text}</p>}
    </div>
  );
}

type RunProgress = Pick<RunResponse, "state" | "lastSequence">;

/** How far a holder got in the 16,384 sequences of a run. `marked`: the sequence of a call number. */
export function RunBar({
  state,
  lastSequence,
  marked,
  isSmall = false,
}: RunProgress & { marked?: number; isSmall?: boolean }) {
  const text = formatProgress(state, lastSequence);
  return (
    <Bar
      state={state}
      share={((lastSequence ?? -1) + 1) / SEQUENCE_COUNT}
      text={marked === undefined ? text : `${text}; this one is sequence ${formatNumber(marked)}`}
      marked={marked === undefined ? undefined : (marked + 0.5) / SEQUENCE_COUNT}
      isSmall={isSmall}
    />
  );
}

/** The same for a whole lease: all its runs as one bar. */
export function LeaseBar({ lease: { firstRun, runCount, progress } }: { lease: LedgerEntry }) {
  const all = runCount * SEQUENCE_COUNT;
  const made = progress === null ? 0 : (progress.run - firstRun) * SEQUENCE_COUNT + (progress.lastSequence ?? -1) + 1;
  const text = progress === null ? "nothing was reported yet" : `${formatNumber(made)} of ${formatNumber(all)} numbers`;
  return <Bar state={progress?.state ?? "unreported"} share={made / all} text={text} isSmall />;
}

function formatProgress(state: KnownRunState, lastSequence: number | null): string {
  if (state === "unreported") return "nothing was reported yet";
  if (state === "discarded") return "discarded: leased, and never handed out";
  if (state === "skipped") return "skipped by a recovery: never leased";
  if (state === "exhausted") return `all ${formatNumber(SEQUENCE_COUNT)} numbers, used to the end`;
  if (lastSequence === null)
    return state === "closed" ? "closed unused: the whole run is discarded" : "no number so far";
  const end = state === "closed" ? "then closed: the rest is discarded" : "so far";
  return `${formatNumber(lastSequence + 1)} of ${formatNumber(SEQUENCE_COUNT)} numbers, ${end}`;
}
