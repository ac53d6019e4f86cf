/** `callnumber-archive serve`: pages for people, until a signal ends it. */
import { once } from "node:events";
import { resolve } from "node:path";
import * as z from "zod";
import { ArchiveError } from "../errors.js";
import { makeReader } from "../reader/server.js";
import { writeText } from "../terminal.js";
import { archivePath, badUsage, type Command, check, parse, wholeNumber } from "./command.js";

const DEFAULT_HOST = "127.0.0.1";
const DEFAULT_PORT = 8025;
const DEFAULT_TITLE = "Mail archive";

const HELP_TEXT = `Serves an archive to people's browsers: lists, months, threads, messages, a
search and feeds. The archive is only read.

  callnumber-archive serve --archive FILE [options]

  callnumber-archive serve --archive mail.db
  callnumber-archive serve --archive mail.db --base-url https://lists.example.org

Options
  --archive FILE       the SQLite file of an import. The search index is made
                       next to it, as FILE.search. Required
  --base-url URL       where readers find the pages: part of feeds, and of the
                       field Archived-At (default: the address it listens on)
  --title TEXT         the name of the archive (default "${DEFAULT_TITLE}")
  --host ADDRESS       the address to listen on (default ${DEFAULT_HOST})
  --port N             the port; 0 chooses a free one (default ${DEFAULT_PORT})
  --coordinator URL    asked whether a missing message can exist; it needs
                       callnumber serve --public-inspect
  --show-addresses     show whole addresses; else as ada@ex…, for harvesters
  --no-raw             offer no raw messages, which have whole addresses
  --no-index           ask search engines to stay away
  -h, --help           print this text

Put a web server with TLS in front of it: the README names an example.
`;

const OPTIONS = {
  archive: { type: "string" },
  "base-url": { type: "string" },
  title: { type: "string", default: DEFAULT_TITLE },
  host: { type: "string", default: DEFAULT_HOST },
  port: { type: "string", default: String(DEFAULT_PORT) },
  coordinator: { type: "string" },
  "show-addresses": { type: "boolean", default: false },
  "no-raw": { type: "boolean", default: false },
  "no-index": { type: "boolean", default: false },
} as const;

const settingsSchema = z.object({
  archive: archivePath("--archive mail.db"),
  "base-url": baseUrl().optional(),
  title: z.string().min(1, "must not be empty").max(100, "must have at most 100 characters"),
  host: z.string().min(1, "must name an address"),
  port: wholeNumber(0, 65_535),
  coordinator: baseUrl().optional(),
  "show-addresses": z.boolean(),
  "no-raw": z.boolean(),
  "no-index": z.boolean(),
});

/** A URL of http or https, without a slash at its end. */
export function baseUrl(missing = "") {
  const error = ({ input }: { input?: unknown }) =>
    input === undefined ? missing : "must be a URL, as https://lists.example.org";
  return z.url({ protocol: /^https?$/, error }).transform((url) => url.replace(/\/+$/, ""));
}

export const command: Command = { help: HELP_TEXT, run };

async function run(args: readonly string[]): Promise<void> {
  const { values, positionals } = parse(args, OPTIONS);
  if (positionals.length > 0) throw badUsage(`"${positionals[0]}" is not an option: serve reads the archive alone`);
  const { host, port, title, coordinator, ...checked } = check(settingsSchema, values);
  const reader = makeReader({
    archive: resolve(checked.archive),
    title,
    coordinator,
    baseUrl: checked["base-url"],
    showsAddresses: checked["show-addresses"],
    offersRaw: !checked["no-raw"],
    isIndexed: !checked["no-index"],
  });
  const ended = Promise.race(["SIGINT", "SIGTERM"].map((name) => once(process, name)));
  const address = await reader.listen({ host, port }).catch((error: Error) => {
    const action = "Pass another --port or --host, or end the program that uses it";
    throw new ArchiveError("address_unusable", `Can't listen on ${host}, port ${port}: ${error.message}. ${action}.`);
  });
  writeText(process.stdout, `${title}: ${address}/`);
  await ended;
  await reader.close();
}
