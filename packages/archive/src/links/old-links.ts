/**
 * Links of an older archive: one form of each URL, the table of them, and the message that a URL leads to.
 * Knows nothing of the programs that made the URLs, except public-inbox, whose URLs need no table.
 */
import type { DatabaseSyncInstance as Database } from "@photostructure/sqlite";
import { inTransaction } from "../archive/schema.js";

export interface Link {
  readonly url: string;
  readonly callNumber: string;
}

/** Where an older archive was, and what is left of it. */
export interface OldArchive {
  /** The path of the archive that has the messages now. */
  readonly archive: string;
  /** A file or a directory. */
  readonly path: string;
  /** The address of the list, with a slash at the end: `/pipermail/garden/`. */
  readonly url: string;
  readonly list?: string | undefined;
  readonly pages?: string | undefined;
  readonly start?: number | undefined;
}

/** In an older archive: a link, `problem`: what has none, or `note`: that a link leads to one of several messages. */
export type Found = Link | { readonly problem: string } | { readonly note: string };

/** With its target it fits a line of nginx's configuration, and a row of each kind of DBM file. */
const URL_BYTES_MAX = 900;
/** What RFC 3986 has in a path as it is. */
const ESCAPED_IN_PATH = /[^A-Za-z0-9\-._~!$&'()*+,;=:@/]/g;
const ESCAPED_IN_QUERY = /[^\x21\x23-\x3b\x3d\x3f-\x7e]/g;
/** Control characters, which no map and no header may have, and dot segments. */
const UNUSABLE = /[^ -~\x80-\xff]|(?:^|\/)\.{1,2}(?:\/|$)/;

/**
 * Returns the path and query of a URL in the one form of the table. Host, fragment, doubled slashes, a slash at the end and needless
 * escapes do not count; letter case does. Undefined for what can't be a link: dot segments, control characters, above 900 bytes.
 */
export function canonicalUrl(url: string): string | undefined {
  const form = /^(?:[a-z][a-z0-9+.-]*:\/\/[^/?#]*)?(\/[^?#]*)(?:\?([^#]*))?/i;
  const [, path, query = ""] = form.exec(Buffer.from(url).toString("latin1")) ?? [];
  if (path === undefined) return undefined;
  const decoded = decodedPath(path).replace(/\/{2,}/g, "/");
  if (UNUSABLE.test(decoded)) return undefined;
  const canonical = escaped(decoded.replace(/(.)\/$/, "$1"), ESCAPED_IN_PATH);
  const whole = query === "" ? canonical : `${canonical}?${escaped(query, ESCAPED_IN_QUERY)}`;
  return whole.length > URL_BYTES_MAX ? undefined : whole;
}

/** A character for each byte. */
export function decodedPath(path: string): string {
  return path.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

/** Of a text with a character for each byte. */
export function escaped(bytes: string, characters: RegExp): string {
  return bytes.replace(characters, (byte) => `%${Buffer.from(byte, "latin1").toString("hex").toUpperCase()}`);
}

/** Of one transaction: an import that runs meanwhile waits for less than a second. */
const LINK_COUNT_MAX = 10_000;

/**
 * Adds links, create-only: one that leads elsewhere already is rejected, by name. After a kill, the same links again add the missing ones.
 * `onNote` gets a line for each note and each rejection.
 */
export function addLinks(database: Database, all: Iterable<Found>, onNote: (line: string) => void) {
  const counts = { added: 0, alreadyThere: 0, rejected: 0 };
  const find = database.prepare("select call_number as callNumber from old_links where url = ?");
  const insert = database.prepare("insert into old_links (url, call_number) values (?, ?)");
  const refuse = (reason: string) => {
    counts.rejected++;
    onNote(`rejected: ${reason}`);
  };
  const add = ({ url: given, callNumber }: Link) => {
    const url = canonicalUrl(given);
    const before = url && find.get(url)?.["callNumber"];
    if (url === undefined) refuse(`${given} of ${callNumber} can't be a link`);
    else if (before === undefined) counts.added += Number(insert.run(url, callNumber).changes);
    else if (before === callNumber) counts.alreadyThere++;
    else refuse(`${url} leads to ${before} already, not to ${callNumber}`);
  };
  const waiting: Link[] = [];
  const store = () => inTransaction(database, () => waiting.splice(0).forEach(add));
  for (const found of all) {
    if ("problem" in found) refuse(found.problem);
    else if ("note" in found) onNote(found.note);
    else if (waiting.push(found) === LINK_COUNT_MAX) store();
  }
  store();
  return counts;
}

/** All links of the table, in the order of their URLs. */
export function storedLinks(database: Database): Iterable<Link> {
  const query = "select url, call_number as callNumber from old_links order by url";
  return database.prepare(query).iterate() as Iterable<never>;
}

/**
 * Returns the call number that an old URL leads to: by the table, with its query and else without, or as public-inbox would read it.
 * Undefined when it leads nowhere. `pathWithQuery`: as in the request, `/pipermail/garden/2005-January/000123.html`.
 */
export function resolveOldLink(database: Database, pathWithQuery: string): string | undefined {
  const url = canonicalUrl(pathWithQuery);
  if (url === undefined) return undefined;
  const [path = ""] = url.split("?");
  const find = database.prepare("select call_number as callNumber from old_links where url = ?");
  const row = find.get(url) ?? find.get(path);
  return (row?.["callNumber"] as string | undefined) ?? byMessageId(database, Buffer.from(decodedPath(path), "latin1"));
}

/** Pages of public-inbox below that of a message, and what its older releases had before a Message-ID. */
const BELOW_MESSAGE = /\/(?:raw|[tT]|t\.mbox(?:\.gz)?|t\.atom)$/;
const BEFORE_MESSAGE_ID = /^[mrtf]\//;

/** `/LIST/MESSAGE-ID`, `/LIST/MESSAGE-ID/raw`, `/r/MESSAGE-ID`: the first such message of that list, else of any. */
function byMessageId(database: Database, path: Buffer): string | undefined {
  const [, list = "", rest = ""] = /^\/([^/]+)\/(.+)$/.exec(path.toString()) ?? [];
  const page = rest.replace(BELOW_MESSAGE, "");
  const query = "select call_number as callNumber from messages where message_id = ?";
  const ofList = database.prepare(`${query} and (list = ? or substr(list, 1, ?) in (?, ?)) order by rowid limit 1`);
  const ofAny = database.prepare(`${query} order by rowid limit 1`);
  for (const id of new Set([rest, page, page.replace(BEFORE_MESSAGE_ID, "").replace(/\.html$/, "")])) {
    const row = ofList.get(`<${id}>`, list, list.length + 1, `${list}.`, `${list}@`) ?? ofAny.get(`<${id}>`);
    if (row !== undefined) return row["callNumber"] as string;
  }
  return undefined;
}
