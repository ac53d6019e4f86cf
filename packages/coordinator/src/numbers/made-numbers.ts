/**
 * Which request a number was made for: of the last requests, in memory. The ledger knows only that the coordinator leased the run, and the log
 * has every request.
 */
import { COORDINATOR_HOLDER_NAME, runName } from "@callnumber/protocol/api";
import { decodeCallNumber } from "@callnumber/protocol/codec";
import type { InspectResponse, NumberRequest } from "@callnumber/protocol/schemas";

/** Requests that are remembered: some hundred bytes each. */
const REQUEST_COUNT_MAX = 10_000;
/** So many more before the oldest are dropped, together: dropping one would move all others. */
const SLACK = 1_000;

/** The client behind a request for numbers, as far as it is known. */
export type Requester = Omit<NumberRequest, "atMs" | "holder"> & {
  readonly holder?: Exclude<NumberRequest["holder"], null> | undefined;
};

/** Consecutive numbers of one run. */
export interface MadeRange {
  readonly version: number;
  readonly run: number;
  readonly firstSequence: number;
  readonly lastSequence: number;
}

interface Noted {
  readonly namespace: string;
  readonly ranges: readonly MadeRange[];
  readonly request: NumberRequest;
}

export class MadeNumbers {
  /** Oldest first. */
  #noted: Noted[] = [];

  /** Remembers the numbers of a request. Returns them as ranges: one, or one more for each run that began. */
  note(
    namespace: string,
    callNumbers: readonly string[],
    { holder, ...requester }: Requester,
    atMs: number,
  ): readonly MadeRange[] {
    const ranges = rangesOf(callNumbers);
    this.#noted.push({ namespace, ranges, request: { atMs, holder: holder ?? null, ...requester } });
    if (this.#noted.length > REQUEST_COUNT_MAX + SLACK) this.#noted = this.#noted.slice(-REQUEST_COUNT_MAX);
    return ranges;
  }

  /** Adds the request that the number was generated for to what is known of the number, or how to find it out. */
  explain(inspected: InspectResponse): InspectResponse {
    if (!("lease" in inspected)) return inspected;
    const { namespace, version, run, sequence, explanation } = inspected;
    const isIn = (range: MadeRange) =>
      range.run === run &&
      range.version === version &&
      range.firstSequence <= sequence &&
      sequence <= range.lastSequence;
    const noted = this.#noted.find((one) => one.namespace === namespace && one.ranges.some(isIn));
    if (noted !== undefined) {
      const { request } = noted;
      // Instead of what the reports say: that it was made is certain.
      const { holder, leasedAtMs } = inspected.lease;
      const name = runName(version, run, inspected.currentVersion);
      const leased = `run ${name} was leased to ${holder.name} at ${new Date(leasedAtMs).toISOString()}`;
      const made = `made for ${requesterOf(request)}: whether it was stored is not known`;
      return { ...inspected, request, explanation: `${leased}; ${made}` };
    }
    if (inspected.lease.holder.name !== COORDINATOR_HOLDER_NAME || inspected.verdict === "not_made") return inspected;
    const where = "if it was made, the event `numbers` in the coordinator's log has the request that it was made for";
    return { ...inspected, explanation: `${explanation}; ${where}` };
  }
}

function rangesOf(callNumbers: readonly string[]): readonly MadeRange[] {
  const ranges: { version: number; run: number; firstSequence: number; lastSequence: number }[] = [];
  for (const callNumber of callNumbers) {
    const { version, run, sequence } = decodeCallNumber(callNumber);
    const last = ranges.at(-1);
    if (last?.run === run && last.version === version && last.lastSequence === sequence - 1) last.lastSequence++;
    else ranges.push({ version, run, firstSequence: sequence, lastSequence: sequence });
  }
  return ranges;
}

function requesterOf({ holder, tokenId, remoteAddress, atMs }: NumberRequest): string {
  const who = holder === null ? "a request without a name" : `${holder.name} (${holder.host ?? "no host named"})`;
  const by = tokenId === undefined ? "" : `, token ${tokenId}`;
  return `${who} from ${remoteAddress ?? "a closed connection"}${by}, at ${new Date(atMs).toISOString()}`;
}
