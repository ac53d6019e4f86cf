/**
 * Follows sources: mboxes that grow, maildirs and directories in which mail arrives. Asks the file system once a second, since that works on
 * every file system. Remembers nothing on disk: after a restart everything is read again, and what is stored is found in the archive.
 *
 * The last message of an mbox is pending until a separator follows it, or until the file has not changed for a while and ends in a
 * newline: half a message would get one number, and all of it another one.
 *
 * A file is known by its identity, whatever its name is. So a log rotation that renames an mbox loses nothing: the renamed file is found
 * next to it and read on. After a rotation that copies, or during a restart, it is read from its start; its messages are copies of stored ones.
 */
import type { Stats } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { identityOf, readAt, unpackedPath } from "./file.js";
import { isMaildir, listMaildir } from "./maildir.js";
import type { MboxForm } from "./mbox.js";
import {
  type MaildirItem,
  type MboxItem,
  mayBeMbox,
  newScan,
  type OpenedPath,
  type PlanListener,
  type Range,
  RangeSize,
  type Scan,
  scanMbox,
  toRanges,
} from "./source.js";

const DEFAULT_POLL_INTERVAL_MS = 1000;
/** The names that logrotate gives to an mbox, behind its own: `.1`, `-20261125`. */
const ROTATED = /^(?:\.\d+|-\d{8}(?:-\d+)?)$/;
/** A separator line, or enough of it. */
const BEGIN_BYTES_MAX = 200;
/** Longer than the steps of any file system's clock. */
const CLOCK_STEP_MS = 2000;

export interface FollowSettings {
  /** How long an mbox must be unchanged before its last message counts as complete. */
  readonly settleMs: number;
  /** Default 1000. */
  readonly pollIntervalMs?: number;
}

export interface FollowListener extends PlanListener {
  /** The first round is planned: all that was there is read. */
  onCaughtUp(): void;
  onNote(note: string): void;
}

/** An mbox as it was seen last. */
interface Mbox {
  path: string;
  bytes: number;
  /** Of path, length and time: whether it has changed. */
  signature: string;
  changedAtMs: number;
  /** Where its last part begins, and what is there. */
  position: number;
  begin: Buffer;
  /** Messages before `position`. */
  messages: number;
  form: MboxForm;
  /** Where the content of the last part ended when it was yielded; undefined while it is pending. */
  yieldedEnd: number | undefined;
  isPending: boolean;
  /** Whether the last scan knew it as settled. */
  wasSettled: boolean;
  /** A range could not be read. */
  mustReread: boolean;
}

const UNREAD = {
  position: 0,
  begin: Buffer.alloc(0),
  messages: 0,
  form: { hasLengths: true },
  yieldedEnd: undefined,
  isPending: false,
  wasSettled: false,
  mustReread: false,
};

interface Maildir {
  readonly directories: readonly Listing[];
  readonly known: Set<string>;
}

export class Follower {
  readonly #paths: readonly string[];
  readonly #settings: FollowSettings;
  readonly #listener: FollowListener;
  readonly #rangeSize = new RangeSize();
  /** By identity. */
  readonly #mboxes = new Map<string, Mbox>();
  /** By path. */
  readonly #maildirs = new Map<string, Maildir>();
  readonly #listings = new Map<string, Listing>();
  /** By path: each is reported once. */
  readonly #failures = new Map<string, string>();
  /** Of this round, by identity: a file with two names is read once. */
  #seen = new Set<string>();

  constructor(places: readonly OpenedPath[], settings: FollowSettings, listener: FollowListener) {
    this.#paths = places.map(({ path }) => path);
    this.#settings = settings;
    this.#listener = listener;
  }

  /** Yields the ranges of what is there, then of what arrives, until `signal` is aborted. */
  async *ranges(signal: AbortSignal): AsyncGenerator<Range, void> {
    const { pollIntervalMs = DEFAULT_POLL_INTERVAL_MS } = this.#settings;
    for (let isFirst = true; !signal.aborted; isFirst = false) {
      this.#seen = new Set();
      for (const path of this.#paths) yield* this.#orFailure(path, this.#changesIn(path));
      this.#forgetMissing();
      if (isFirst) this.#listener.onCaughtUp();
      await pause(pollIntervalMs, undefined, { signal }).catch(() => {});
    }
  }

  /** Plans a range again: a part of it could not be read, as its file was moved or truncated meanwhile. */
  retry(range: Range): void {
    if (range.kind === "maildir") {
      for (const { unique } of range.items) this.#maildirs.get(range.path)?.known.delete(unique);
      return;
    }
    if (range.kind !== "mbox") return;
    const mbox = this.#mboxes.get(range.identity);
    if (mbox !== undefined) mbox.mustReread = true;
  }

  /** Reports an error, and lets the other sources go on. The next round tries it again. */
  async *#orFailure(path: string, ranges: AsyncGenerator<Range, void>): AsyncGenerator<Range, void> {
    try {
      yield* ranges;
      this.#failures.delete(path);
    } catch (error) {
      this.#maildirs.delete(path);
      this.#listings.delete(path);
      const { message: reason } = error as Error;
      if (this.#failures.get(path) === reason) return;
      this.#failures.set(path, reason);
      this.#listener.onProblem({ source: path, number: 0, byteOffset: 0, reason, stored: false });
    }
  }

  async *#changesIn(path: string): AsyncGenerator<Range, void> {
    if ((await statOf(path))?.isDirectory() !== true) {
      const [directory, name] = [dirname(path), basename(path)];
      const isRotated = (other: string) => other.startsWith(name) && ROTATED.test(other.slice(name.length));
      // The rotated ones first: they are older.
      const rotated = (await this.#listing(directory).names()).filter(isRotated);
      yield* this.#changesOfMboxes(directory, [...rotated, name]);
    } else if (await isMaildir(path)) {
      yield* this.#changesOfMaildir(path);
    } else {
      const names = await this.#listing(path).names();
      yield* this.#changesOfMboxes(path, names.filter(mayBeMbox));
    }
  }

  async *#changesOfMboxes(directory: string, names: readonly string[]): AsyncGenerator<Range, void> {
    for (const path of names.map((name) => join(directory, name))) {
      yield* this.#orFailure(path, this.#changesOfMbox(path));
    }
  }

  #listing(path: string): Listing {
    const listing = this.#listings.get(path) ?? new Listing(path);
    this.#listings.set(path, listing);
    return listing;
  }

  async *#changesOfMbox(path: string): AsyncGenerator<Range, void> {
    const stats = await statOf(path);
    if (stats === undefined || !stats.isFile()) return;
    const identity = identityOf(path, stats);
    if (this.#seen.has(identity)) return;
    this.#seen.add(identity);
    const { size: bytes, mtimeMs } = stats;
    const mbox: Mbox = this.#mboxes.get(identity) ?? { path, bytes, signature: "", changedAtMs: 0, ...UNREAD };
    this.#mboxes.set(identity, mbox);
    const signature = `${path} ${bytes} ${mtimeMs}`;
    const isChanged = signature !== mbox.signature;
    if (isChanged) Object.assign(mbox, { path, bytes, signature, changedAtMs: performance.now() });
    const isSettled = performance.now() - mbox.changedAtMs >= this.#settings.settleMs;
    if (!isChanged && !mbox.mustReread && (!mbox.isPending || !isSettled || mbox.wasSettled)) return;
    if (bytes < mbox.position || !(await beginsAt(path, mbox.position, mbox.begin))) {
      this.#listener.onNote(`${path} was truncated or rewritten: it is read from its start`);
      Object.assign(mbox, UNREAD);
    } else if (mbox.mustReread) {
      Object.assign(mbox, UNREAD);
    }
    yield* this.#rangesOfMbox(mbox, identity, isSettled);
  }

  async *#rangesOfMbox(mbox: Mbox, identity: string, isSettled: boolean): AsyncGenerator<Range, void> {
    const { path, bytes } = mbox;
    const scan: Scan = { ...newScan(), position: mbox.position, messages: mbox.messages, form: { ...mbox.form } };
    try {
      yield* toRanges(
        { kind: "mbox", path, source: unpackedPath(path), identity },
        this.#newParts(mbox, scan, isSettled),
        this.#rangeSize,
      );
    } catch (error) {
      // What the system refuses today, it may permit later.
      if ((error as NodeJS.ErrnoException).code !== undefined) mbox.signature = "";
      throw error;
    }
    const notices = mbox.isPending ? [...scan.notices, "its last message is pending"] : scan.notices;
    this.#listener.onSourceScanned({ kind: "mbox", path, bytes, messages: scan.messages, notices });
  }

  async *#newParts(mbox: Mbox, scan: Scan, isSettled: boolean): AsyncGenerator<MboxItem, void> {
    let last: MboxItem | undefined;
    mbox.isPending = false;
    mbox.wasSettled = isSettled;
    for await (const part of scanMbox(mbox, scan, true)) {
      if (last !== undefined && this.#isNew(mbox, last)) yield last;
      last = part;
    }
    if (last === undefined) return;
    const isNew = this.#isNew(mbox, last);
    const isLineOpen = last.end < scan.readEnd;
    const isYielded = !isNew || (isSettled && !isLineOpen);
    if (isNew && isSettled && isLineOpen) {
      this.#listener.onNote(`${mbox.path} ends in the middle of a line: its last message waits for the rest`);
    }
    mbox.position = last.offset;
    mbox.messages = Math.max(last.number - 1, 0);
    mbox.form = scan.form;
    mbox.begin = await readAt(mbox.path, last.offset, BEGIN_BYTES_MAX);
    mbox.yieldedEnd = isYielded ? last.contentEnd : undefined;
    mbox.isPending = !isYielded;
    if (isNew && isYielded) yield last;
  }

  /** The last part was yielded before, when nothing followed it. */
  #isNew(mbox: Mbox, { offset, contentEnd, number }: MboxItem): boolean {
    if (offset !== mbox.position || mbox.yieldedEnd === undefined) return true;
    if (contentEnd === mbox.yieldedEnd) return false;
    this.#listener.onNote(
      `${mbox.path}, message ${number}: it grew after it was stored, and gets a second number. Pass a longer --settle`,
    );
    return true;
  }

  async *#changesOfMaildir(path: string): AsyncGenerator<Range, void> {
    const directories = ["new", "cur"].map((name) => new Listing(join(path, name)));
    const maildir = this.#maildirs.get(path) ?? { directories, known: new Set<string>() };
    this.#maildirs.set(path, maildir);
    const changed = await Promise.all(maildir.directories.map((directory) => directory.mayHaveChanged()));
    if (!changed.includes(true)) return;
    const messages = await listMaildir(path, maildir.known);
    const first = maildir.known.size + 1;
    for (const { unique } of messages) maildir.known.add(unique);
    const items: MaildirItem[] = messages.map((message, index) => ({ ...message, number: first + index }));
    yield* toRanges({ kind: "maildir", path }, items, this.#rangeSize);
    const bytes = messages.reduce((sum, message) => sum + message.bytes, 0);
    this.#listener.onSourceScanned({ kind: "maildir", path, bytes, messages: maildir.known.size, notices: [] });
  }

  #forgetMissing(): void {
    for (const [identity, { path, isPending }] of this.#mboxes) {
      if (this.#seen.has(identity)) continue;
      this.#mboxes.delete(identity);
      const lost = isPending ? " before its last message was complete: import it, if it still exists" : "";
      this.#listener.onNote(`${path} was deleted, or moved to another directory${lost}`);
    }
  }
}

/** The names in a directory. */
class Listing {
  readonly #path: string;
  #names: readonly string[] = [];
  #mtimeMs = -1;
  #changedAtMs = 0;
  #isCurrent = false;

  constructor(path: string) {
    this.#path = path;
  }

  /** Sorted. */
  async names(): Promise<readonly string[]> {
    if (await this.mayHaveChanged()) this.#names = (await readdir(this.#path)).sort();
    return this.#names;
  }

  /** A change within a step of the file system's clock leaves the time as it is: after each one it may have changed for a while. */
  async mayHaveChanged(): Promise<boolean> {
    const mtimeMs = (await statOf(this.#path))?.mtimeMs ?? 0;
    if (mtimeMs !== this.#mtimeMs) {
      this.#mtimeMs = mtimeMs;
      this.#changedAtMs = performance.now();
      this.#isCurrent = false;
    }
    if (this.#isCurrent) return false;
    this.#isCurrent = performance.now() - this.#changedAtMs > CLOCK_STEP_MS;
    return true;
  }
}

async function statOf(path: string): Promise<Stats | undefined> {
  return await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
}

async function beginsAt(path: string, position: number, begin: Buffer): Promise<boolean> {
  return (await readAt(path, position, begin.length)).equals(begin);
}
