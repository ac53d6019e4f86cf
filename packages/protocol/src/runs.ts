/**
 * Runs by name and by number. People read and type `1/65556`: run 65556 of version 1. As long as a namespace has had version 0 alone, the
 * run is its own name. The ledger id is for machines, and never shown.
 */
import { RUN_COUNT, RUN_MAX, VERSION_COUNT } from "./layout.js";

/** One rising number for a run of any version: `version · 2^30 + run`. Orders the ledger, and is on the wire between client and coordinator. People read `runName`. */
export function ledgerIdOf(version: number, run: number): number {
  return version * RUN_COUNT + run;
}

/** Of the last run of the last version. */
export const LEDGER_ID_MAX = VERSION_COUNT * RUN_COUNT - 1;

/** Returns the version and run of a ledger id. */
export function runOfLedgerId(ledgerId: number): { version: number; run: number } {
  const run = ledgerId % RUN_COUNT;
  return { version: (ledgerId - run) / RUN_COUNT, run };
}

/** A run as it was typed. */
export interface NamedRun {
  /** Undefined where only the run was given. */
  readonly version: number | undefined;
  readonly run: number;
}

const PATTERN = /^(?:(\d)\/)?(0|[1-9]\d{0,9}|[1-9]\d{0,2}(?:,\d{3}){1,3})$/;

/** What a run looks like, for messages. */
export const RUN_NAME_FORM = `a run is a whole number from 0 to ${RUN_MAX}, or with its version: 1/65556 (version/run)`;

/** Parses `65556` or `1/65556`; thousands may be separated by commas. Undefined for every other text. */
export function parseRunName(text: string): NamedRun | undefined {
  const [, version, digits] = PATTERN.exec(text) ?? [];
  if (digits === undefined || Number(version ?? 0) >= VERSION_COUNT) return undefined;
  const run = Number(digits.replaceAll(",", ""));
  return run > RUN_MAX ? undefined : { version: version === undefined ? undefined : Number(version), run };
}

/** Returns the name of a run in a namespace that has come to the version `current`; default: that of the run. */
export function runName(version: number, run: number, current = version): string {
  return current === 0 && version === 0 ? String(run) : `${version}/${run}`;
}

/** Returns the name of consecutive runs: `7`, `7-9`, `1/7-9`. */
export function runsName(
  { version, firstRun, runCount }: { readonly version: number; readonly firstRun: number; readonly runCount: number },
  current = version,
): string {
  const first = runName(version, firstRun, current);
  return runCount === 1 ? first : `${first}-${firstRun + runCount - 1}`;
}

/** Returns the name of the run that a ledger id stands for, as `runName`. */
export function nameOfLedgerId(ledgerId: number, current?: number): string {
  const { version, run } = runOfLedgerId(ledgerId);
  return runName(version, run, current);
}

/**
 * Returns why a run without its version is not known, in a namespace that has come to the version `current`; undefined where it is: no
 * version but 0 was ever used. A wrong guess would show, or recover from, another run.
 */
export function whyAmbiguous({ version, run }: NamedRun, current: number): string | undefined {
  if (version !== undefined || current === 0) return undefined;
  return `run ${run} could be of any version from 0 to ${current}: write it as ${current}/${run} (version/run)`;
}
