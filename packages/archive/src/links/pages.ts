/**
 * Links whose pages were numbered in the order of a mailbox: those of Pipermail and of MHonArc. The archive knows the place of each
 * message in the file that was imported. The n-th page is that of the n-th message, so one that is missing would shift all behind it:
 * where the counts differ, or a page has the Message-ID of another message, nothing of the file is linked.
 */
import { readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import type { DatabaseSyncInstance as Database } from "@photostructure/sqlite";
import { sourceName } from "../archive/schema.js";
import { bare } from "./by-message-id.js";
import type { Found, OldArchive } from "./old-links.js";

interface Page {
  readonly name: string;
  /** Undefined where the page does not have it. */
  readonly messageId?: string | undefined;
}

interface Place {
  readonly number: number;
  readonly callNumber: string;
  readonly messageId: string | null;
  readonly inReplyTo: string | null;
}

const MONTH_FILE = /\.(?:txt|mbox)(?:\.gz)?$/;
const MONTH_ENDINGS = [".txt", ".txt.gz", ".mbox", ".mbox.gz"];
const INDEX_FILE = /^(?:thread|date|subject|author)\.html$/;

/**
 * Yields links of Pipermail. `path`: the directory of the list, with the months' files and the directories of their pages, or the file
 * of one month. `start`: the number of its first page, where pages and indexes are gone.
 */
export function* pipermailLinks(database: Database, { archive, path, url, start }: OldArchive): Generator<Found, void> {
  const isList = statSync(path).isDirectory();
  const directory = realpathSync(isList ? path : dirname(path));
  const names = isList ? readdirSync(directory) : [basename(path)];
  for (const month of [...new Set(names.map((name) => name.replace(MONTH_FILE, "")))].sort()) {
    const files = MONTH_ENDINGS.map((ending) => `${month}${ending}`);
    const places =
      files.map((file) => placesIn(database, archive, join(directory, file))).find(({ length }) => length > 0) ?? [];
    const pages = pipermailPages(join(directory, month), start, places);
    const isMonth = pages.length > 0 || files.some((file) => names.includes(file));
    if (isMonth) yield* linked(month, `${url}${month}/`, pages, places);
  }
}

/** By the pages themselves, else by an index of them, else from `start`. */
function pipermailPages(directory: string, start: number | undefined, places: readonly Place[]): Page[] {
  const pages = pagesIn(directory, PIPERMAIL);
  if (pages.length > 0) return pages;
  const indexes = namesIn(directory)
    .filter((name) => INDEX_FILE.test(name))
    .map((name) => readFileSync(join(directory, name), "latin1"));
  const links = [...indexes.join("").matchAll(/href="(\d+\.html)"/gi)].map(([, name = ""]) => name);
  if (links.length > 0) return [...new Set(links)].sort(byNumber).map((name) => ({ name }));
  if (start === undefined) return [];
  return places.map((_, index) => ({ name: `${String(start + index).padStart(6, "0")}.html` }));
}

/**
 * Yields links of MHonArc, which made no page of a message whose Message-ID it had already. `path`: the mailbox that it was made from.
 * `pages`: the directory of its pages; where they are gone, the first one has the number `start`.
 */
export function* mhonarcLinks(
  database: Database,
  { archive, path, url, pages: directory, start = 0 }: OldArchive,
): Generator<Found, void> {
  const all = placesIn(database, archive, realpathSync(path));
  const known = new Set<string>();
  const places = all.filter(({ messageId }) => messageId === null || (!known.has(messageId) && known.add(messageId)));
  const numbered = places.map((_, index) => ({ name: `msg${String(start + index).padStart(5, "0")}.html` }));
  const pages = directory === undefined ? numbered : pagesIn(directory, MHONARC);
  yield* linked(path, url, pages, all, places);
}

/** Yields the link of each page to the message of the same order, or why nothing is linked. */
function* linked(what: string, url: string, pages: Page[], all: Place[], places = all): Generator<Found, void> {
  const problem = problemOf(pages, all, places);
  if (problem !== undefined) yield { problem: `${what}: ${problem}. Nothing of it is linked` };
  else for (const [index, { callNumber }] of places.entries()) yield { url: `${url}${pages[index]?.name}`, callNumber };
}

function problemOf(pages: readonly Page[], all: readonly Place[], places: readonly Place[]): string | undefined {
  if (all.length === 0) return "the archive has no message of its file: import it first";
  const gap = all.findIndex(({ number }, index) => number !== index + 1);
  if (gap >= 0) return `message ${gap + 1} of its file is not in the archive, or twice because the file has changed`;
  if (pages.length === 0) return "it has neither pages nor an index: pass its file alone, with --start";
  const ids = pages.map(({ messageId }) => messageId);
  // Old releases of Pipermail wrote the Message-ID that a message answers: then one is absent, or stands twice.
  const areOwn = ids.every((id) => id !== undefined) && new Set(ids).size === ids.length;
  if (pages.length !== places.length) {
    const stored = new Set(places.map(({ messageId }) => bare(messageId ?? "")));
    const ofPages = new Set(ids);
    const alone = pages.filter(({ messageId }) => areOwn && !stored.has(messageId ?? ""));
    const withoutPage = places.filter(({ messageId }) => areOwn && !ofPages.has(bare(messageId ?? "")));
    const names = [...alone.map(({ name }) => name), ...withoutPage.map(({ number }) => `message ${number}`)];
    const unmatched = names.length === 0 ? "" : `; without a counterpart: ${names.join(", ")}`;
    return `it has ${pages.length} pages and ${places.length} messages${unmatched}`;
  }
  const isOther = ({ messageId }: Place, index: number) => messageId !== null && bare(messageId) !== ids[index];
  const other = areOwn ? places.findIndex(isOther) : -1;
  // What looks like such a release may be a mailbox that lost its first message: then a page's own message is here, at another place.
  const areAnswered = places.every(({ inReplyTo }, index) => bare(inReplyTo ?? "") === ids[index]);
  const isShifted = places.some(({ messageId }) => ids.includes(bare(messageId ?? "")));
  if (other < 0 || (areAnswered && !isShifted)) return undefined;
  return `${pages[other]?.name} is the page of <${ids[other]}>, but message ${other + 1} is ${places[other]?.messageId}`;
}

/** Messages of an imported file, in its order. */
function placesIn(database: Database, archive: string, file: string): Place[] {
  const columns = "call_number as callNumber, message_id as messageId, in_reply_to as inReplyTo from";
  const query = `select number, ${columns} messages where source = :source and number > 0
    union select copies.number, ${columns} copies join messages using (call_number)
    where copies.source = :source and copies.number > 0 order by 1`;
  return database.prepare(query).all({ source: sourceName(resolve(archive), file) }) as unknown as Place[];
}

function namesIn(directory: string): string[] {
  return statSync(directory, { throwIfNoEntry: false })?.isDirectory() ? readdirSync(directory) : [];
}

/** What a program names its pages, and where and with which escapes they have their Message-ID. */
const PIPERMAIL = { name: /^\d+\.html$/, messageId: /In-Reply-To=([^"&]*)/i, escape: /%([0-9a-f]{2})/gi, radix: 16 };
const MHONARC = { name: /^msg\d+\.html$/, messageId: /<!--X-Message-Id: (.*?) -->/, escape: /&#(\d+);/g, radix: 10 };

/** Pages of a directory in the order of their numbers. */
function pagesIn(directory: string, { name: form, messageId, escape, radix }: typeof PIPERMAIL): Page[] {
  const unescaped = (_: string, digits: string) => String.fromCharCode(Number.parseInt(digits, radix));
  const names = namesIn(directory).filter((name) => form.test(name));
  return names.sort(byNumber).map((name) => {
    const found = messageId.exec(readFileSync(join(directory, name), "utf8"))?.[1] ?? "";
    return { name, messageId: bare(found.replace(escape, unescaped)) || undefined };
  });
}

function byNumber(one: string, other: string): number {
  return Number(/\d+/.exec(one)) - Number(/\d+/.exec(other));
}
