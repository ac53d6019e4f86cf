/** How much tokens and holders may take, how many requests may be in flight, and how many connections open: the options of `serve`. */
import type { Option } from "commander";
import { z } from "zod";
import { CONNECTIONS_DEFAULT } from "../http/node-servers.js";
import type { Allowance } from "../limits/buckets.js";
import { LEASES_AT_ONCE_DEFAULT } from "../limits/concurrency-limits.js";
import { HOLDER_ALLOWANCE, LeaseLimits, TOKEN_ALLOWANCE } from "../limits/lease-limits.js";
import { isLoopback } from "../platform/loopback.js";
import { checkedOption, wholeNumber } from "./options.js";

/** `NONE`: as many as are asked for. */
const NONE = 0;
const BURST_MAX = 1_000_000;
const PER_SECOND_MAX = 100_000;
const AT_ONCE_MAX = 10_000;
/** With fewer, the console of an operator and some importers would be in each other's way. */
const CONNECTIONS_LEAST = 16;
const CONNECTIONS_MAX = 100_000;

export interface LimitOptions {
  readonly host: string;
  readonly tokensFile?: string;
  readonly tokenBurstRuns?: number;
  readonly tokenRunsPerSecond?: number;
  readonly holderBurstRuns?: number;
  readonly holderRunsPerSecond?: number;
  readonly leasesAtOnce: number;
  readonly connections: number;
}

export function limitOptions(): readonly Option[] {
  const [token, holder] = [TOKEN_ALLOWANCE, HOLDER_ALLOWANCE];
  return [
    limitOption("--token-burst-runs <n>", "runs that one token may take at once", token.atOnce, BURST_MAX),
    limitOption(
      "--token-runs-per-second <n>",
      "runs a second that it may take after that",
      token.perSecond,
      PER_SECOND_MAX,
    ),
    limitOption("--holder-burst-runs <n>", "runs that one holder may take at once", holder.atOnce, BURST_MAX),
    limitOption(
      "--holder-runs-per-second <n>",
      "runs a second that it may take after that",
      holder.perSecond,
      PER_SECOND_MAX,
    ),
    checkedOption(
      "--leases-at-once <n>",
      "leases and reports of one token (without tokens: one address) in flight at a time, and half of those of all; more fail with overloaded",
      wholeNumber(1, AT_ONCE_MAX),
    ).default(LEASES_AT_ONCE_DEFAULT),
    checkedOption(
      "--connections <n>",
      "open connections at a time; further ones are closed",
      wholeNumber(CONNECTIONS_LEAST, CONNECTIONS_MAX),
    ).default(CONNECTIONS_DEFAULT),
  ];
}

/** Where only this machine's own programs ask, and nobody is asked for a token, there are only the limits that were asked for. */
export function limitsOf(options: LimitOptions): LeaseLimits {
  const isTrusted = isLoopback(options.host) && options.tokensFile === undefined;
  return new LeaseLimits({
    token: allowanceOf(options.tokenBurstRuns, options.tokenRunsPerSecond, TOKEN_ALLOWANCE, isTrusted),
    holder: allowanceOf(options.holderBurstRuns, options.holderRunsPerSecond, HOLDER_ALLOWANCE, isTrusted),
  });
}

/** Either of the two switches a limit off; one of them alone switches it on, with the default for the other. */
function allowanceOf(
  burstRuns: number | undefined,
  runsPerSecond: number | undefined,
  byDefault: Allowance,
  isTrusted: boolean,
): Allowance | undefined {
  if (burstRuns === NONE || runsPerSecond === NONE) return undefined;
  if (isTrusted && burstRuns === undefined && runsPerSecond === undefined) return undefined;
  return { atOnce: burstRuns ?? byDefault.atOnce, perSecond: runsPerSecond ?? byDefault.perSecond };
}

function limitOption(flags: string, description: string, byDefault: number, max: number): Option {
  const number = z.preprocess((text) => (text === "none" ? String(NONE) : text), wholeNumber(NONE, max));
  const whenUnset = `${byDefault}, none on loopback without tokens`;
  const option = checkedOption(flags, `${description}; none or 0: no limit (default: ${whenUnset})`, number);
  // Its words alone, for doctor: which it is follows from other options.
  return option.default(undefined, whenUnset);
}
