/** Trimmers for tests: at a later day than ours, until which coordinators have touched the store; and what is in their files. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { open } from "node:fs/promises";
import { join } from "node:path";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { expect, vi } from "vitest";
import { LedgerFiles, LedgerTrimmer, type LedgerTrimmerOptions } from "../src/retention/ledger-trimmer.js";
import { type Store } from "../src/stores/store.js";

export const DAY_MS = 24 * 3_600_000;
export const RETENTION_DAYS = 8;

export interface LoggedEvent {
  readonly event: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

interface TrimmerForTest {
  readonly trimmer: LedgerTrimmer;
  /** In their order, from the first one on. */
  readonly events: LoggedEvent[];
}

/** By default, all leases that are made now are older than the retention. */
export function trimmerOf(
  store: Store,
  directory: string | undefined,
  own: Partial<LedgerTrimmerOptions> & { readonly isClockWrong?: boolean } = {},
): TrimmerForTest {
  const events: LoggedEvent[] = [];
  const log = (fields: object, event: string) => void events.push({ event, fields: { ...fields } });
  const { now = () => Date.now() + 2 * RETENTION_DAYS * DAY_MS, isClockWrong = false, ...options } = own;
  const trimmer = new LedgerTrimmer({
    store: isClockWrong ? store : heartbeatUntil(store, now),
    files: directory === undefined ? undefined : new LedgerFiles(directory),
    log: { debug: log, info: log, warn: log, error: log },
    now,
    ...options,
  });
  return { trimmer, events };
}

/** The store, as if coordinators had written heartbeats until now. */
export function heartbeatUntil(store: Store, now: () => number): Store {
  return storeWith(store, {
    readNamespace: async (namespace) => ({ ...(await store.readNamespace(namespace)), changedAtMs: now() }),
  });
}

/** The store, but for some of its methods. */
export function storeWith(store: Store, own: Partial<Store>): Store {
  return new Proxy(store, {
    get(_, name: keyof Store) {
      const value = own[name] ?? store[name];
      return typeof value === "function" ? value.bind(store) : value;
    },
  });
}

/** Trims what is due, and fails if that failed. Returns the events. */
export async function trimmed(...parameters: Parameters<typeof trimmerOf>): Promise<readonly LoggedEvent[]> {
  const { trimmer, events } = trimmerOf(...parameters);
  await trimmer.trimAll();
  expect(events.filter(({ event }) => event !== "ledger_trimmed")).toEqual([]);
  return events;
}

/** Each line of each file, a lease each. */
export function leasesInFiles(directory: string): readonly LedgerEntry[] {
  return linesInFiles(directory).map((line) => JSON.parse(line) as LedgerEntry);
}

export function linesInFiles(directory: string): readonly string[] {
  return readdirSync(directory)
    .sort()
    .flatMap((name) => readFileSync(join(directory, name), "utf8").split("\n"))
    .filter((line) => line !== "");
}

type Handle = Awaited<ReturnType<typeof open>>;

async function handlePrototype(): Promise<Handle> {
  const handle = await open(import.meta.filename, "r");
  await handle.close();
  return Object.getPrototypeOf(handle) as Handle;
}

/** The disk is full at the next append, when it has written `begun`. */
export async function failingOnce(begun: string): Promise<void> {
  const prototype = await handlePrototype();
  const { appendFile } = prototype;
  vi.spyOn(prototype, "appendFile").mockImplementationOnce(async function (this: Handle) {
    await appendFile.call(this, begun);
    throw Object.assign(new Error("no space left"), { code: "ENOSPC", syscall: "write" });
  });
}

/** Returns a function that lists the directory and the files in it that were synced since. */
export async function syncedPlaces(directory: string): Promise<() => readonly string[]> {
  const prototype = await handlePrototype();
  const { sync } = prototype;
  const inodes: number[] = [];
  vi.spyOn(prototype, "sync").mockImplementation(async function (this: Handle) {
    inodes.push((await this.stat()).ino);
    await sync.call(this);
  });
  const nameOf = (inode: number) =>
    [directory, ...readdirSync(directory)].find(
      (name) => statSync(join(directory, name === directory ? "" : name)).ino === inode,
    ) ?? "";
  return () => inodes.map(nameOf);
}
