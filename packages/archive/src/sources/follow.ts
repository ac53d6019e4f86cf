/**
 * Follows sources: mboxes that grow, maildirs and directories in which mail arrives. Asks the file system once a second, since that works on
 * every file system. Remembers nothing on disk: after a restart everything is read again, and what is stored is found in the archive.
 *
 * The last message of an mbox is pending until a separator follows it, or until the file has not changed for a while and ends in a
 * newline: half a message would get one number, and all of it another one.
 *
 * A rotation makes several files of one mailbox: `lists`, `lists.1`, `lists.2.gz`. In the archive, all of them are `lists`: a message keeps its place
 * there, wherever the rotation moves or copies it. So what may have changed is read again from its start, and what is stored is found.
 */
import { type FileHandle, open, realpath } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { identityOf, isPacked, readAt, readBytes, unpackedPath } from "./file.js";
import { FollowedLetters, FollowedMaildir, Listing, statOf } from "./follow-directory.js";
import { isLetter, isMaildir } from "./maildir.js";
import type { MboxForm } from "./mbox.js";
import {
  type MboxItem,
  mayBeMbox,
  newScan,
  type PlanListener,
  type Problem,
  type Range,
  RangeSize,
  type Scan,
  scanMbox,
  toRanges,
} from "./source.js";
import { ROTATION_MS, UnsolvedProblems } from "./unsolved.js";

const DEFAULT_POLL_INTERVAL_MS = 1000;
/** The names that logrotate gives to an mbox: `lists.1`, `lists-20261125`, `lists-2026-11-25.gz`. */
const ROTATED = /^(.+?)(?:\.\d+|-\d{8,}(?:-\d+)?|-\d{4}-\d{2}-\d{2})(?:\.(?:gz|bz2|xz|zst))?$/;
/** A separator line, or enough of it. */
const BEGIN_BYTES_MAX = 200;
const GONE = "was deleted, or moved to another directory";
const LOST =
  "was deleted, moved to another directory or overwritten before its last message was complete: import it, if it still exists";

export interface FollowSettings {
  /** How long an mbox must be unchanged before its last message counts as complete. */
  readonly settleMs: number;
  /** Default 1000. */
  readonly pollIntervalMs?: number;
}

export interface FollowListener extends Pick<PlanListener, "onSourceScanned"> {
  /** The first round is planned: all that was there is read. */
  onCaughtUp(): void;
  onNote(note: string): void;
}

/** An mbox as it was seen last. */
interface Mbox {
  readonly identity: string;
  path: string;
  /** The mailbox that it is, or was before a rotation. */
  source: string;
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

/** An mbox that was gone, or the message that was not complete in it: a rotation may give it another name, or copy it to another file. */
interface Missing extends Pick<Mbox, "path" | "source" | "position" | "begin" | "isPending"> {
  readonly sinceMs: number;
}

export class Follower {
  readonly #given: readonly string[];
  /** What the given paths are and have been: a link may be changed to another file. */
  readonly #paths = new Set<string>();
  readonly #settings: FollowSettings;
  readonly #listener: FollowListener;
  readonly #rangeSize = new RangeSize();
  /** By identity. */
  readonly #mboxes = new Map<string, Mbox>();
  /** By path. */
  readonly #maildirs = new Map<string, FollowedMaildir>();
  readonly #letters = new Map<string, FollowedLetters>();
  readonly #listings = new Map<string, Listing>();
  readonly #unsolved = new UnsolvedProblems();
  #missing: Missing[] = [];
  /** Of this round, by identity: a file with two names is read once. */
  #seen = new Set<string>();

  constructor(given: readonly string[], settings: FollowSettings, listener: FollowListener) {
    this.#given = given;
    this.#settings = settings;
    this.#listener = listener;
  }

  /** What could not be stored in the end. */
  get unsolved(): readonly Problem[] {
    return this.#unsolved.all;
  }

  /** Yields the ranges of what is there, then of what arrives, until `signal` is aborted. */
  async *ranges(signal: AbortSignal): AsyncGenerator<Range, void> {
    const { pollIntervalMs = DEFAULT_POLL_INTERVAL_MS } = this.#settings;
    try {
      for (let isFirst = true; !signal.aborted; isFirst = false) {
        this.#seen = new Set();
        const gone: string[] = [];
        for (const given of this.#given) {
          const path = await realpath(given).catch(() => undefined);
          if (path !== undefined) this.#paths.add(path);
          else if (isFirst) this.#listener.onNote(`${given} is not there: waits for it`);
          // It may have been rotated away, and its older files be there.
          const directory = path === undefined ? await realpath(dirname(given)).catch(() => undefined) : undefined;
          if (directory !== undefined) gone.push(join(directory, basename(given)));
        }
        for (const path of new Set([...this.#paths, ...gone])) {
          yield* this.#orFailure(path, this.#changesIn(path), `all of ${path}`);
        }
        await this.#nameMissing();
        for (const note of this.#unsolved.nameTransient()) this.#listener.onNote(note);
        if (isFirst) this.#listener.onCaughtUp();
        await pause(pollIntervalMs, undefined, { signal }).catch(() => {});
      }
    } finally {
      for (const missing of this.#missing) this.#nameLost(missing);
    }
  }

  /** Takes note of what could not be read of a range, and plans it again: its file may have been moved or truncated meanwhile. */
  imported(range: Range, problems: readonly Problem[]): void {
    this.#unsolved.imported(range, problems);
    if (!problems.some(({ isTransient }) => isTransient === true)) return;
    if (range.kind === "maildir") {
      (this.#maildirs.get(range.path) ?? this.#letters.get(range.path))?.forget(range.items);
    } else if (range.kind === "mbox") {
      // It may be in another file by now.
      for (const mbox of this.#mboxes.values()) {
        if (mbox.source === range.source || mbox.identity === range.identity) mbox.mustReread = true;
      }
    }
  }

  /** Reports an error, and lets the other sources go on. The next round tries it again. */
  async *#orFailure(path: string, ranges: AsyncGenerator<Range, void>, key = path): AsyncGenerator<Range, void> {
    try {
      yield* ranges;
      this.#unsolved.remove(key);
    } catch (error) {
      this.#maildirs.delete(path);
      this.#listings.delete(path);
      const { message: reason } = error as Error;
      const isKnown = this.#unsolved.reasonAt(key) === reason;
      this.#unsolved.add(key, { source: path, number: 0, byteOffset: 0, reason, stored: false });
      if (!isKnown) this.#listener.onNote(`${path}: ${reason}`);
    }
  }

  async *#changesIn(path: string): AsyncGenerator<Range, void> {
    if ((await statOf(path))?.isDirectory() !== true) {
      const [directory, name] = [dirname(path), basename(path)];
      // The rotated ones first: they are older.
      const rotated = (await this.#listing(directory).names()).filter((other) => ROTATED.exec(other)?.[1] === name);
      yield* this.#changesOfMboxes(directory, [...rotated, name], () => unpackedPath(name));
    } else if (await isMaildir(path)) {
      const maildir = this.#maildirs.get(path) ?? new FollowedMaildir(path, this.#listener);
      this.#maildirs.set(path, maildir);
      yield* maildir.changes(this.#rangeSize);
    } else {
      const names = (await this.#listing(path).names()).filter(mayBeMbox);
      // A rotation may make the new file later.
      const mailboxes = new Set([...this.#mboxes.values()].map(({ source }) => source));
      for (const name of names) mailboxes.add(join(path, name));
      const letters = this.#letters.get(path) ?? new FollowedLetters(path);
      this.#letters.set(path, letters);
      const single = names.filter(isLetter);
      const isMbox = new Set(yield* letters.changes(single, this.#settings.settleMs, this.#rangeSize));
      const mboxes = names.filter((name) => !isLetter(name) || isMbox.has(name));
      yield* this.#changesOfMboxes(path, mboxes, (name) => {
        const mailbox = ROTATED.exec(name)?.[1];
        return mailbox !== undefined && mailboxes.has(join(path, mailbox)) ? mailbox : unpackedPath(name);
      });
    }
  }

  async *#changesOfMboxes(
    directory: string,
    names: readonly string[],
    mailboxOf: (name: string) => string,
  ): AsyncGenerator<Range, void> {
    for (const name of names) {
      const path = join(directory, name);
      yield* this.#orFailure(path, this.#changesOfMbox(path, join(directory, mailboxOf(name))));
    }
  }

  #listing(path: string): Listing {
    const listing = this.#listings.get(path) ?? new Listing(path);
    this.#listings.set(path, listing);
    return listing;
  }

  async *#changesOfMbox(path: string, source: string): AsyncGenerator<Range, void> {
    const stats = await statOf(path);
    if (stats === undefined || !stats.isFile()) return;
    const identity = identityOf(path, stats);
    if (this.#seen.has(identity)) return;
    this.#seen.add(identity);
    const { size: bytes, mtimeMs } = stats;
    const first = { identity, path, source, bytes, signature: "", changedAtMs: 0, ...UNREAD };
    const mbox: Mbox = this.#mboxes.get(identity) ?? first;
    this.#mboxes.set(identity, mbox);
    mbox.source = source;
    const signature = `${path} ${bytes} ${mtimeMs}`;
    const isChanged = signature !== mbox.signature;
    if (isChanged) Object.assign(mbox, { path, bytes, signature, changedAtMs: performance.now() });
    const isSettled = performance.now() - mbox.changedAtMs >= this.#settings.settleMs;
    if (!isChanged && !mbox.mustReread && (!mbox.isPending || !isSettled || mbox.wasSettled)) return;
    let file: FileHandle | undefined;
    try {
      file = await open(path);
      // A rotation may have just moved it; the next round finds it.
      if (identityOf(path, await file.stat()) !== identity) {
        mbox.signature = "";
        return;
      }
      const begin = await readAt(file, mbox.position, mbox.begin.length);
      if (bytes < mbox.position || !begin.equals(mbox.begin)) {
        if (mbox.isPending) this.#missing.push({ ...mbox, sinceMs: performance.now() });
        this.#listener.onNote(`${path} was truncated or rewritten: it is read from its start`);
        Object.assign(mbox, UNREAD);
      } else if (mbox.mustReread) {
        Object.assign(mbox, UNREAD);
      }
      yield* this.#rangesOfMbox(file, mbox, isSettled);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      // What the system refuses today, it may permit later.
      if (code !== undefined) mbox.signature = "";
      if (code === "ENOENT") return;
      // Gzip may still be at work.
      if (!isPacked(path) || performance.now() - mbox.changedAtMs >= ROTATION_MS) throw error;
      mbox.mustReread = true;
    } finally {
      await file?.close();
    }
  }

  async *#rangesOfMbox(file: FileHandle, mbox: Mbox, isSettled: boolean): AsyncGenerator<Range, void> {
    const { path, source, identity, bytes } = mbox;
    const scan: Scan = { ...newScan(), position: mbox.position, messages: mbox.messages, form: { ...mbox.form } };
    const parts = isPacked(path) ? scanMbox({ ...mbox, file }, scan) : this.#newParts(file, mbox, scan, isSettled);
    yield* toRanges({ kind: "mbox", path, source, identity }, parts, this.#rangeSize);
    const notices = mbox.isPending ? [...scan.notices, "its last message is pending"] : scan.notices;
    this.#listener.onSourceScanned({ kind: "mbox", path, bytes, messages: scan.messages, notices });
  }

  async *#newParts(file: FileHandle, mbox: Mbox, scan: Scan, isSettled: boolean): AsyncGenerator<MboxItem[], void> {
    // What a rotation has cut in the middle of a line has no rest.
    const isGrowing = mbox.path === mbox.source || !isSettled;
    let last: MboxItem | undefined;
    mbox.isPending = false;
    mbox.wasSettled = isSettled;
    for await (const parts of scanMbox({ ...mbox, file }, scan, isGrowing)) {
      const whole: MboxItem[] = last === undefined ? parts : [last, ...parts];
      last = whole.pop();
      yield whole.filter((part) => this.#isNew(mbox, part));
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
    mbox.begin = await readAt(file, last.offset, BEGIN_BYTES_MAX);
    mbox.yieldedEnd = isYielded ? last.contentEnd : undefined;
    mbox.isPending = !isYielded;
    if (isNew && isYielded) yield [last];
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

  /** Names the files that are gone, if a message may be lost with them, or the mailbox. */
  async #nameMissing(): Promise<void> {
    for (const [identity, mbox] of this.#mboxes) {
      if (this.#seen.has(identity)) continue;
      this.#mboxes.delete(identity);
      this.#missing.push({ ...mbox, sinceMs: performance.now() });
    }
    const missing = this.#missing;
    this.#missing = [];
    for (const message of missing) {
      if (await this.#isFound(message)) continue;
      if (performance.now() - message.sinceMs < ROTATION_MS) this.#missing.push(message);
      else this.#nameLost(message);
    }
  }

  #nameLost({ path, isPending }: Missing): void {
    this.#listener.onNote(`${path} ${isPending ? LOST : GONE}`);
  }

  /** Whether another file of the mailbox has the message, or is there at all if none is missing. */
  async #isFound({ source, position, begin, isPending }: Missing): Promise<boolean> {
    for (const [identity, mbox] of this.#mboxes) {
      if (mbox.source !== source) continue;
      if (!isPending) return true;
      const end = position + begin.length;
      const bytes = await readBytes(mbox.path, identity, position, end).catch(() => Buffer.alloc(0));
      if (bytes.equals(begin)) return true;
    }
    return false;
  }
}
