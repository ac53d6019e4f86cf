/**
 * What a scan of a coordinator's log has found so far: for each namespace and store id, the greatest run that was leased or passed
 * over by the lines seen. Takes the lines as the coordinator wrote them, with whatever a collector put in front, and as Docker's and
 * journald's JSON wrap them. Knows nothing of files. Needs the same memory for a billion lines as for one.
 */
import { RUN_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import { LEASE_RUN_COUNT_MAX, ledgerIdOf, NAMESPACE_PATTERN } from "@callnumber/protocol/wire";
import type { Malformed } from "./archive-scan.js";
import { shown } from "./shown.js";
import type { LineTaker } from "./text-lines.js";

export interface LogScanResult {
  /** In the order in which they were met. */
  readonly stores: readonly LoggedStore[];
  /** Lines that a coordinator wrote, whatever they tell: a file without any is no log of one, or is wrapped as nobody knows. */
  readonly eventCount: number;
  /** Lines that are no events, such as words for people in the same file, another program's, and empty ones. */
  readonly otherLineCount: number;
  /** Lines that should be events and can't be read; JSON that is none might hold one, in a wrapper that is not known. */
  readonly damagedCount: number;
  /** The first few of them. */
  readonly damaged: readonly Malformed[];
}

/** What the log tells of one namespace in one store. */
export interface LoggedStore {
  readonly namespace: string;
  readonly storeId: string;
  readonly leaseCount: number;
  readonly greatest: LoggedRun;
}

interface LoggedRun {
  readonly ledgerId: number;
  readonly event: string;
  readonly line: number;
}

type Fields = Readonly<Record<string, unknown>>;

/** The events that tell of the mark, and the greatest ledger id that each vouches for; undefined when a field is not as it should be. */
const MARKS: Readonly<Record<string, (fields: Fields) => number | undefined>> = {
  lease({ version, firstRun, runCount }) {
    if (!isWithin(firstRun, 0, RUN_MAX) || !isWithin(runCount, 1, LEASE_RUN_COUNT_MAX)) return undefined;
    return ledgerIdIn(version, firstRun + runCount - 1);
  },
  jump: ({ version, mark }) => ledgerIdIn(version, mark),
  pin: ({ ledgerId }) => (isWithin(ledgerId, 0, ledgerIdOf(VERSION_MAX, RUN_MAX)) ? ledgerId : undefined),
  init: ({ firstRun }) => (isWithin(firstRun, 1, RUN_MAX) ? firstRun - 1 : undefined),
};

/** Under which Docker's json-file driver and `journalctl -o json` keep the line itself. */
const WRAPPERS = ["log", "MESSAGE"] as const;
const DAMAGED_SHOWN_MAX = 5;
const STORE_ID_LENGTH_MAX = 100;

export class LogScan implements LineTaker {
  readonly #stores = new Map<string, LoggedStore>();
  #eventCount = 0;
  #otherLineCount = 0;
  #damagedCount = 0;
  readonly #damaged: Malformed[] = [];

  take(bytes: Buffer, start: number, end: number, line: number): void {
    this.#takeText(bytes.toString("utf8", start, end), line);
  }

  takeMalformed(line: number | null, why: () => string): void {
    this.#damagedCount++;
    if (this.#damaged.length < DAMAGED_SHOWN_MAX) this.#damaged.push({ line, why: why() });
  }

  get result(): LogScanResult {
    return {
      stores: [...this.#stores.values()],
      eventCount: this.#eventCount,
      otherLineCount: this.#otherLineCount,
      damagedCount: this.#damagedCount,
      damaged: [...this.#damaged],
    };
  }

  #takeText(text: string, line: number): void {
    const begin = text.indexOf("{");
    if (begin < 0) {
      if (isArray(text)) this.takeMalformed(line, () => `${shown(text)} is no event`);
      else this.#otherLineCount++;
      return;
    }
    const fields = objectIn(text.slice(begin));
    if (fields === undefined) {
      this.takeMalformed(line, () => `${shown(text)} is no JSON`);
      return;
    }
    const { msg: event, coordinator } = fields;
    const wrapped = event === undefined ? WRAPPERS.map((name) => fields[name]).find(isText) : undefined;
    if (wrapped !== undefined) this.#takeText(wrapped.trimEnd(), line);
    else if (isText(event) && Object.hasOwn(MARKS, event)) this.#takeMark(event, fields, line);
    else if (isText(event) && isText(coordinator)) this.#eventCount++;
    // A text with a brace may be an event inside another program's.
    else if (isText(event) && !event.includes("{")) this.#otherLineCount++;
    else this.takeMalformed(line, () => `${shown(text)} is no event`);
  }

  #takeMark(event: string, fields: Fields, line: number): void {
    const { namespace, storeId } = fields;
    const ledgerId = MARKS[event]?.(fields);
    if (ledgerId === undefined || !isNamespace(namespace) || !isStoreId(storeId)) {
      this.takeMalformed(line, () => `a "${event}" whose fields are not those of one`);
      return;
    }
    this.#eventCount++;
    const key = `${namespace} ${storeId}`;
    const known = this.#stores.get(key);
    const leaseCount = (known?.leaseCount ?? 0) + (event === "lease" ? 1 : 0);
    const greatest =
      known === undefined || ledgerId > known.greatest.ledgerId ? { ledgerId, event, line } : known.greatest;
    this.#stores.set(key, { namespace, storeId, leaseCount, greatest });
  }
}

function objectIn(text: string): Fields | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Fields) : undefined;
  } catch {
    return undefined;
  }
}

function isArray(text: string): boolean {
  try {
    return text.trimStart().startsWith("[") && Array.isArray(JSON.parse(text));
  } catch {
    return false;
  }
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function ledgerIdIn(version: unknown, run: unknown): number | undefined {
  return isWithin(version, 0, VERSION_MAX) && isWithin(run, 0, RUN_MAX) ? ledgerIdOf(version, run) : undefined;
}

function isWithin(value: unknown, min: number, max: number): value is number {
  return Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
}

function isNamespace(value: unknown): value is string {
  return typeof value === "string" && NAMESPACE_PATTERN.test(value);
}

function isStoreId(value: unknown): value is string {
  return typeof value === "string" && value !== "" && value.length <= STORE_ID_LENGTH_MAX;
}
