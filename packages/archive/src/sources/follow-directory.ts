/** Follows directories, which are asked repeatedly: the names in one, and the new messages of a maildir. */
import type { Stats } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { isSeparated, listLetters, listMaildir, listSubfolders } from "./maildir.js";
import {
  type MaildirItem,
  type PlanListener,
  type Range,
  type RangeSize,
  subfolderNotice,
  toRanges,
} from "./source.js";

/** Longer than the steps of any file system's clock. */
const CLOCK_STEP_MS = 2000;

/** The names in a directory. */
export class Listing {
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

/** Undefined where there is nothing. @throws any other error of the system. */
export async function statOf(path: string): Promise<Stats | undefined> {
  return await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
}

/** Files that are one message each, as in MH, and .eml: one counts when it was quiet, since a program may write it where it is. */
export class FollowedLetters {
  readonly #path: string;
  readonly #files = new Map<string, { signature: string; changedAtMs: number; isMbox: boolean; isRead: boolean }>();

  constructor(path: string) {
    this.#path = path;
  }

  /** Yields the messages that have come to rest. Returns the names that are mboxes. */
  async *changes(names: readonly string[], settleMs: number, rangeSize: RangeSize): AsyncGenerator<Range, string[]> {
    const path = this.#path;
    const mboxes: string[] = [];
    const ready: string[] = [];
    for (const name of names) {
      const stats = await statOf(join(path, name));
      if (stats?.isFile() !== true) continue;
      const signature = `${stats.ino} ${stats.size} ${stats.mtimeMs}`;
      let file = this.#files.get(name);
      if (file?.signature !== signature) {
        const isMbox = await isSeparated(join(path, name));
        file = { signature, changedAtMs: performance.now(), isMbox, isRead: false };
        this.#files.set(name, file);
      }
      if (file.isMbox) mboxes.push(name);
      else if (!file.isRead && performance.now() - file.changedAtMs >= settleMs) {
        file.isRead = true;
        ready.push(name);
      }
    }
    const letters = ready.length === 0 ? [] : await listLetters(path, ready);
    const first = this.#files.size - letters.length + 1;
    const items = letters.map((letter, index) => Object.assign({ number: first + index }, letter));
    yield* toRanges({ kind: "maildir", path }, [items], rangeSize);
    return mboxes;
  }

  /** Yields these again. */
  forget(items: readonly MaildirItem[]): void {
    for (const { unique } of items) this.#files.delete(unique);
  }
}

type Listener = Pick<PlanListener, "onSourceScanned"> & { onNote(note: string): void };

export class FollowedMaildir {
  readonly #path: string;
  readonly #listener: Listener;
  readonly #top: Listing;
  readonly #directories: readonly Listing[];
  readonly #known = new Set<string>();
  #notices: readonly string[] = [];

  constructor(path: string, listener: Listener) {
    this.#path = path;
    this.#listener = listener;
    this.#top = new Listing(path);
    this.#directories = ["new", "cur"].map((name) => new Listing(join(path, name)));
  }

  /** Yields what has come since the last time. */
  async *changes(rangeSize: RangeSize): AsyncGenerator<Range, void> {
    const path = this.#path;
    if (await this.#top.mayHaveChanged()) {
      const notices = (await listSubfolders(path)).map(subfolderNotice);
      const fresh = notices.filter((notice) => !this.#notices.includes(notice));
      for (const notice of fresh) this.#listener.onNote(`${path} ${notice}`);
      this.#notices = notices;
    }
    const changed = await Promise.all(this.#directories.map((directory) => directory.mayHaveChanged()));
    if (!changed.includes(true)) return;
    const messages = await listMaildir(path, this.#known);
    const first = this.#known.size + 1;
    for (const { unique } of messages) this.#known.add(unique);
    const items: MaildirItem[] = messages.map((message, index) => ({ ...message, number: first + index }));
    yield* toRanges({ kind: "maildir", path }, [items], rangeSize);
    const bytes = messages.reduce((sum, message) => sum + message.bytes, 0);
    this.#listener.onSourceScanned({
      kind: "maildir",
      path,
      bytes,
      messages: this.#known.size,
      notices: this.#notices,
    });
  }

  /** Yields these again. */
  forget(items: readonly MaildirItem[]): void {
    for (const { unique } of items) this.#known.delete(unique);
  }
}
