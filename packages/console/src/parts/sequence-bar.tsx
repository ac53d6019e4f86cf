/** How far a holder got in a run: a bar of all 16,384 sequences, with one of them marked where one is meant. */
import { SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import type { KnownRunState, LedgerEntry } from "@callnumber/protocol/wire";
import { grouped } from "../format.js";

interface Properties {
  readonly state: KnownRunState;
  readonly lastSequence: number | null;
  /** The sequence of a call number that is looked at. */
  readonly marked?: number;
  readonly isSmall?: boolean;
}

export function SequenceBar({ state, lastSequence, marked, isSmall = false }: Properties) {
  const made = lastSequence === null ? 0 : lastSequence + 1;
  const words = progressInWords(state, lastSequence);
  const markedWords = marked === undefined ? "" : `; this one is sequence ${grouped(marked)}`;
  return (
    <div class={`sequence-bar ${state}${isSmall ? " small" : ""}`}>
      <div class="track" role="img" aria-label={`${words}${markedWords}`}>
        <div class="filled" style={{ width: `${(made / SEQUENCE_COUNT) * 100}%` }} />
        {marked !== undefined && <div class="marked" style={{ left: `${((marked + 0.5) / SEQUENCE_COUNT) * 100}%` }} />}
      </div>
      {!isSmall && (
        <p class="quiet">
          {words}
          {markedWords}
        </p>
      )}
    </div>
  );
}

/** The same for a whole lease: all its runs as one bar. */
export function LeaseBar({ lease: { firstRun, runCount, progress } }: { lease: LedgerEntry }) {
  const state = progress?.state ?? "unreported";
  const all = runCount * SEQUENCE_COUNT;
  const made = progress === null ? 0 : (progress.run - firstRun) * SEQUENCE_COUNT + (progress.lastSequence ?? -1) + 1;
  const words = progress === null ? "nothing was reported yet" : `${grouped(made)} of ${grouped(all)} numbers`;
  return (
    <div class={`sequence-bar small ${state}`}>
      <div class="track" role="img" aria-label={words}>
        <div class="filled" style={{ width: `${(made / all) * 100}%` }} />
      </div>
    </div>
  );
}

const ENDS: Readonly<Record<KnownRunState, string>> = {
  open: "so far",
  exhausted: "used to the end",
  closed: "then closed: the rest is burnt",
  burnt: "",
  unreported: "",
};

function progressInWords(state: KnownRunState, lastSequence: number | null): string {
  if (state === "unreported") return "nothing was reported yet";
  if (state === "burnt") return "burnt: leased, and never handed out";
  if (state === "exhausted") return `all ${grouped(SEQUENCE_COUNT)} numbers, used to the end`;
  if (lastSequence === null) return state === "closed" ? "closed unused: the whole run is burnt" : "no number so far";
  return `${grouped(lastSequence + 1)} of ${grouped(SEQUENCE_COUNT)} numbers, ${ENDS[state]}`;
}
