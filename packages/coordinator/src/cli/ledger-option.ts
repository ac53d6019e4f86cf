/** Where the older part of the ledger goes, and how much stays in the store: the options of `serve`, and what is made of them. */
import { resolve } from "node:path";
import type { Option } from "commander";
import { z } from "zod";
import { LedgerArchive } from "../ledger-archive/ledger-archive.js";
import { LedgerRotation } from "../ledger-archive/ledger-rotation.js";
import type { Log } from "../log.js";
import type { Store } from "../store.js";
import { checkedOption, setting, wholeNumber } from "./options.js";

export interface LedgerOptions {
  readonly ledgerFolder?: string;
  readonly keepLeases?: number;
  readonly keepDays?: number;
}

const DAY_MS = 24 * 3_600_000;
const KEEP_LEASES_MAX = 1_000_000_000;
const KEEP_DAYS_MAX = 36_500;

export function ledgerFolderOption(): Option {
  const path = z
    .string()
    .min(1)
    .transform((text) => resolve(text));
  const description = "where the older part of the ledger stands, for all coordinators of the store; it must be there";
  return setting(checkedOption("--ledger-folder <path>", description, path));
}

export function keepLeasesOption(): Option {
  const description = "how many of the newest leases stay in the store; older ones go to the ledger folder";
  return checkedOption("--keep-leases <n>", description, wholeNumber(1, KEEP_LEASES_MAX));
}

export function keepDaysOption(): Option {
  const description = "for how many days leases stay in the store; with --keep-leases, whichever keeps more";
  return checkedOption("--keep-days <n>", description, wholeNumber(1, KEEP_DAYS_MAX));
}

/** Undefined without a folder. @throws TypeError when it is said what stays in the store, but not where the rest goes. */
export function ledgerArchiveOf({ ledgerFolder, keepLeases, keepDays }: LedgerOptions): LedgerArchive | undefined {
  if (ledgerFolder !== undefined) return new LedgerArchive(ledgerFolder);
  if (keepLeases === undefined && keepDays === undefined) return undefined;
  throw new TypeError(
    "--keep-leases and --keep-days need --ledger-folder: nothing leaves the store without a place to go",
  );
}

/** Undefined when nothing is to leave the store: then a folder is read only. */
export function ledgerRotationOf(
  { keepLeases, keepDays }: LedgerOptions,
  { store, archive, log }: { readonly store: Store; readonly archive: LedgerArchive | undefined; readonly log: Log },
): LedgerRotation | undefined {
  if (archive === undefined || (keepLeases === undefined && keepDays === undefined)) return undefined;
  const ageMs = keepDays === undefined ? undefined : keepDays * DAY_MS;
  return new LedgerRotation({ store, archive, log, now: Date.now, retention: { leaseCount: keepLeases, ageMs } });
}
