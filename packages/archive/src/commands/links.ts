/** `callnumber-archive links`: reads the links of an older archive, lists them, and writes maps for web servers. */
import { pipeline } from "node:stream/promises";
import type { DatabaseSyncInstance as Database } from "@photostructure/sqlite";
import * as z from "zod";
import { assertArchiveAt, openDatabase } from "../archive/schema.js";
import { ArchiveError } from "../errors.js";
import { csvLinks, hyperkittyLinks, publicInboxLinks } from "../links/by-message-id.js";
import { MAP_KINDS, type MapKind, mapOf } from "../links/maps.js";
import { addLinks, type Found, type OldArchive, storedLinks } from "../links/old-links.js";
import { mhonarcLinks, pipermailLinks } from "../links/pages.js";
import { quantity, writeLine, writeText } from "../terminal.js";
import { archivePath, badUsage, type Command, check, parse, wholeNumber } from "./command.js";

const HELP_TEXT = `Stores to which message each link of an older archive leads, and writes
redirects for web servers. Import the messages first.

  callnumber-archive links pipermail PATH --url /pipermail/garden/
  callnumber-archive links hyperkitty --url /hyperkitty/list/garden@example.org/
  callnumber-archive links mhonarc MBOX --url /archives/garden/
  callnumber-archive links public-inbox --url /garden/
  callnumber-archive links csv FILE
  callnumber-archive links list | nginx | apache | json

PATH is the list's directory in Mailman 2, with the months' files that you
imported (2005-January.txt.gz) and the directories of their pages; or one such
file, with --start. MBOX is what MHonArc read. FILE has lines of your own: old
URL,call number or Message-ID. The reader needs no links of public-inbox: add
them for a map. The first lines of a map say how it is used.

Options
  --archive FILE       the archive's SQLite file. Required
  --base URL           of maps: where the archive is read now, if that is
                       another server: https://lists.example.org
  --list NAME          of hyperkitty and public-inbox: only this list
  --pages DIRECTORY    of mhonarc: its pages, to compare Message-IDs
  --start N            of pipermail and mhonarc: the number of the first page
  --url URL            the list's old address: a path, or a whole URL
  -h, --help           print this text

A link is never changed: one that leads elsewhere already is rejected by name.
Where pages and messages do not match, nothing of that month is linked.

Exit status: 0 all is done · 1 an error, or something was rejected
             2 a wrong command line
`;

const BASE_URL = /^https?:\/\/[\w.:[\]-]+[\w./~-]*$/;
const optionsSchema = z.object({
  archive: archivePath("--archive letters.db"),
  base: z.string().regex(BASE_URL, "must be a URL, as https://lists.example.org").optional(),
  list: z.string().optional(),
  pages: z.string().optional(),
  start: wholeNumber(0, 999_999_999).optional(),
  url: z
    .string({ error: "is missing: pass the old address of the list" })
    .regex(/^(?:\/|https?:\/\/)/, "must be a path that begins with a slash, or a whole URL")
    .endsWith("/", "must end in a slash"),
});

type Kind = readonly [words: string[], find?: (database: Database, archive: OldArchive) => Iterable<Found>];

/** What is on the command line besides --archive, and what finds the links; nothing where a map is written. */
const KINDS: Readonly<Record<string, Kind>> = {
  pipermail: [["PATH", "url", "start"], pipermailLinks],
  hyperkitty: [["url", "list"], hyperkittyLinks],
  "public-inbox": [["url", "list"], publicInboxLinks],
  mhonarc: [["MBOX", "url", "pages", "start"], mhonarcLinks],
  csv: [["FILE"], csvLinks],
  ...Object.fromEntries(MAP_KINDS.map((kind) => [kind, [["base"]] as const])),
};
export const command: Command = { help: HELP_TEXT, run };

async function run([kind = "", ...args]: readonly string[]): Promise<void> {
  const [words, find] = (Object.hasOwn(KINDS, kind) ? KINDS[kind] : undefined) ?? [];
  if (words === undefined) {
    const given = kind.startsWith("-") ? "links needs a word before its options" : `links "${kind}" is not a command`;
    throw badUsage(`${given}: it must be one of ${Object.keys(KINDS).join(", ")}`);
  }
  const argument = words.find((word) => word === word.toUpperCase());
  const names = ["archive", ...words.filter((word) => word !== argument)];
  const expected = names.map((name) => [name, { type: "string" }] as const);
  const { values, positionals } = parse(args, Object.fromEntries(expected));
  const [path = "", ...others] = positionals;
  if ((path === "") !== (argument === undefined) || others.length > 0)
    throw badUsage(`links ${kind} needs ${argument ?? "no argument"}`);
  const options = check(optionsSchema, names.includes("url") ? values : { ...values, url: "/" });
  assertArchiveAt(options.archive);
  const database = openDatabase(options.archive);
  try {
    if (find === undefined) {
      const targetOf = (callNumber: string) => `${options.base?.replace(/\/$/, "") ?? ""}/message/${callNumber}`;
      process.stdout.setDefaultEncoding("latin1");
      await pipeline(mapOf(kind as MapKind, storedLinks(database), targetOf, writeLine), process.stdout, {
        end: false,
      });
    } else {
      const { added, alreadyThere, rejected } = addLinks(database, find(database, { path, ...options }), writeLine);
      writeText(
        process.stdout,
        `${quantity(added, "link")} added, ${alreadyThere} already there, ${rejected} rejected`,
      );
      if (rejected > 0) process.exitCode = 1;
      else if (added + alreadyThere === 0) {
        const action = `Check ${argument ?? "--list"}, and import the messages first.`;
        throw new ArchiveError("source_unusable", `links ${kind} found nothing to link. ${action}`);
      }
    }
  } catch (error) {
    const { code, syscall, message } = error as NodeJS.ErrnoException;
    if (code === "EPIPE") return;
    if (syscall === undefined) throw error;
    throw new ArchiveError("source_unusable", `The old archive can't be read: ${message}. Check the path.`, {
      cause: error,
    });
  } finally {
    database.close();
  }
}
