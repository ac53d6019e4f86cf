/** A place for one embedded store of a test: its own directories, on disk and in memory, and the processes that lease from it. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { copyFile, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LeaseRequest } from "@callnumber/protocol/api";
import { DatabaseSync } from "@photostructure/sqlite";
import { onTestFinished } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import type { Bounds } from "../src/guard/clocks.js";
import { isMemoryBacked, type Machine, thisMachine } from "../src/stores/sqlite/machine.js";
import { SqliteStore, type SqliteStoreOptions } from "../src/stores/sqlite/store.js";
import { holder, LEASE_NONCE, NAMESPACE, SMALL_BOUNDS } from "./commands-for-test.js";

/** No silence causes a recovery, however slow the machine is. */
const EMBEDDED_BOUNDS: Bounds = { ...SMALL_BOUNDS, gapMs: 3_600_000 };

/** After a skip so many runs are free each second. */
const RATE = 16;

export interface Place {
  readonly folder: string;
  readonly path: string;
  /** In memory, and this place's alone. */
  readonly markerFolder: string;
  readonly machine: Pick<Machine, "markerFolders">;
  /** Opens it in this process; closed at the end of the test. */
  open(options?: Partial<SqliteStoreOptions>): SqliteStore;
}

/** Folders that go with the test. */
export async function newPlace(): Promise<Place> {
  const folder = await temporaryFolder(tmpdir());
  const markerFolder = await temporaryFolder(memoryFolder());
  const path = join(folder, "store.db");
  const machine = { markerFolders: [markerFolder] };
  return { folder, path, markerFolder, machine, open: (options) => opened({ path, machine, ...options }) };
}

export interface MadeStore extends Place {
  readonly storeId: string;
}

/**
 * A place with a store of one namespace, closed. Made by a process of its own: in this one SQLite would keep the connection until
 * its statements are collected, and another process would not be alone with the files.
 */
export async function newStore(): Promise<MadeStore> {
  const place = await newPlace();
  const maker = live(place, { initRate: RATE });
  await maker.stop();
  const { storeId } = maker;
  if (storeId === undefined) throw new Error(`the store was not made: ${maker.refusals} ${maker.stderr}`);
  return { ...place, storeId };
}

export function coordinatorOn(store: SqliteStore): Coordinator {
  return new Coordinator({ store, name: "test", bounds: EMBEDDED_BOUNDS });
}

export function leaseRequest(): LeaseRequest {
  return { runCount: 1, nonce: LEASE_NONCE, holder, lastRun: null, proof: null, sentAtMs: Date.now() };
}

export async function temporaryFolder(parent: string): Promise<string> {
  const folder = await mkdtemp(join(parent, "callnumber-test-"));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

export function memoryFolder(): string {
  const folder = thisMachine().markerFolders.find((name) => isMemoryBacked(name, thisMachine()));
  if (folder !== undefined) return folder;
  throw new Error("this machine has no memory-backed folder: what makes a restart dense can't be tested on it");
}

function opened(options: Partial<SqliteStoreOptions> & { path: string }): SqliteStore {
  const store = new SqliteStore({ create: false, epsMs: EMBEDDED_BOUNDS.epsMs, ...options });
  onTestFinished(() => store.close());
  return store;
}

/** Changes a database as another program. */
export function executeSql(path: string, sql: string): void {
  const database = new DatabaseSync(path);
  database.exec(sql);
  database.close();
}

/** The path of the marker that the store has left. */
export async function markerOf({ markerFolder }: Place): Promise<string> {
  const [name, ...others] = await readdir(markerFolder);
  if (name === undefined || others.length > 0)
    throw new Error(`${markerFolder} holds ${others.length + 1} markers, or none`);
  return join(markerFolder, name);
}

/** The high-water mark in the files: read from a copy, so that no file is written next to them. */
export async function markOnDisk(path: string): Promise<number> {
  const copy = `${path}.look`;
  await copyFiles(path, copy);
  const database = new DatabaseSync(copy);
  try {
    const row = database.prepare("SELECT c FROM namespaces WHERE name = ?").get(NAMESPACE) as { c: string };
    return Number(row.c);
  } finally {
    database.close();
    for (const part of ["", "-wal", "-shm"]) await rm(`${copy}${part}`, { force: true });
  }
}

/**
 * Copies database and log over the existing ones: the file stays the same file. A log that is missing is missing afterwards, too.
 */
export async function copyFiles(from: string, to: string): Promise<void> {
  for (const part of ["", "-wal"]) {
    if (existsSync(`${from}${part}`)) await copyFile(`${from}${part}`, `${to}${part}`);
    else await rm(`${to}${part}`, { force: true });
  }
}

export interface LifeOptions {
  readonly markerFault?: { readonly name: string; readonly at: number };
  /** Kills itself in place of printing this run, counted from 1. */
  readonly diesAtAnswer?: number;
  readonly touches?: boolean;
  /** Makes file and namespace first, with this rate. */
  readonly initRate?: number;
  /** Of a shell, in front of the process. */
  readonly shellPrefix?: string;
  /** `counting-process.mjs` is the control. */
  readonly script?: string;
}

/** One process that leases from a store. */
export class Life {
  /** Runs that were answered until now. */
  readonly runs: number[] = [];
  /** Codes of the rejections, in their order. */
  readonly refusals: string[] = [];
  /** `unbroken`, or why the start caused a recovery; undefined while it is not open. */
  start: string | undefined;
  /** Of the namespace that it has made. */
  storeId: string | undefined;
  stderr = "";
  readonly ended: Promise<unknown>;
  #doneCount = 0;
  #isOver = false;

  constructor(readonly child: ChildProcessWithoutNullStreams) {
    this.ended = once(child, "close").then(() => {
      this.#isOver = true;
    });
    // A process that was killed does not read any more.
    child.stdin.on("error", () => {});
    child.stderr.on("data", (chunk) => {
      this.stderr += chunk;
    });
    let rest = "";
    child.stdout.on("data", (chunk) => {
      // A line may be cut by the kill: only whole ones count.
      const lines = `${rest}${chunk}`.split("\n");
      rest = lines.pop() ?? "";
      for (const line of lines) this.#read(line);
    });
  }

  /** Resolves when it is open, or has ended. */
  opened(): Promise<void> {
    return this.#until(() => this.start !== undefined);
  }

  say(line: string): void {
    this.child.stdin.write(`${line}\n`);
  }

  /** Says it and resolves to the runs that it brought, when it is done or the process has ended. */
  async does(line: string): Promise<readonly number[]> {
    const [before, doneBefore] = [this.runs.length, this.#doneCount];
    this.say(line);
    await this.#until(() => this.#doneCount > doneBefore);
    return this.runs.slice(before);
  }

  /** Resolves when so many runs were answered, or the process has ended. */
  leased(count: number): Promise<void> {
    return this.#until(() => this.runs.length >= count);
  }

  async kill(): Promise<void> {
    this.child.kill("SIGKILL");
    await this.ended;
  }

  async stop(): Promise<void> {
    this.say("stop");
    await this.ended;
  }

  #read(line: string): void {
    const [word, rest = ""] = line.split(" ");
    if (/^\d+$/.test(line)) this.runs.push(Number(line));
    else if (word === "refused") this.refusals.push(rest);
    else if (word === "open") this.start = rest;
    else if (word === "made") this.storeId = rest;
    else if (word === "done") this.#doneCount++;
  }

  async #until(isReached: () => boolean): Promise<void> {
    while (!isReached() && !this.#isOver) await Promise.race([once(this.child.stdout, "data"), this.ended]);
  }
}

export function live({ path, machine }: Pick<Place, "path" | "machine">, options: LifeOptions = {}): Life {
  const { shellPrefix = "", script = "leasing-process.mjs", ...rest } = options;
  const argument = { path, bounds: EMBEDDED_BOUNDS, machine, ...rest };
  const program = [process.execPath, join(import.meta.dirname, script), JSON.stringify(argument)];
  const life = new Life(spawn("sh", ["-c", `${shellPrefix}exec "$0" "$@"`, ...program], { stdio: "pipe" }));
  onTestFinished(() => life.kill());
  return life;
}
