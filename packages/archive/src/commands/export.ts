/** `callnumber-archive export`: the messages as an mbox on stdout, each with the address of its page. */
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { callNumberIn } from "@callnumber/protocol/api";
import { isCallNumber } from "@callnumber/protocol/codec";
import * as z from "zod";
import { ArchiveError } from "../errors.js";
import { ArchiveReader } from "../reader/archive-reader.js";
import { mboxEntry } from "../reader/raw.js";
import { archivePath, badUsage, type Command, check, parse } from "./command.js";
import { baseUrl } from "./serve.js";

const HELP_TEXT = `Writes messages as an mbox (mboxrd) to standard output: all of the archive,
those of a list, or those of the call numbers that you name.

  callnumber-archive export [<callnumber>…] --archive FILE --base-url URL

  callnumber-archive export --archive mail.db --base-url https://lists.example.org > all.mbox
  callnumber-archive export 2VznWE2i --archive mail.db --base-url https://lists.example.org

Options
  --archive FILE       the SQLite file of an import. Required
  --base-url URL       where readers find the pages. Required: each message gets
                       a field Archived-At: <URL/message/NUMBER>
  --list NAME          only the messages of this list
  -h, --help           print this text

Nothing else of a message changes, and nothing in the archive. An import of the
file finds each message stored.
`;

const settingsSchema = z.object({
  archive: archivePath("--archive mail.db"),
  "base-url": baseUrl("is missing: pass the URL of the archive's pages"),
  list: z.string().optional(),
});

export const command: Command = { help: HELP_TEXT, run };

async function run(args: readonly string[]): Promise<void> {
  const text = { type: "string" } as const;
  const { values, positionals } = parse(args, { archive: text, "base-url": text, list: text });
  const { archive: path, "base-url": url, list } = check(settingsSchema, values);
  if (list !== undefined && positionals.length > 0) throw badUsage("--list and call numbers exclude each other");
  const callNumbers = positionals.map((argument) => callNumberIn(argument) ?? argument);
  const wrong = callNumbers.find((callNumber) => !isCallNumber(callNumber));
  if (wrong !== undefined) throw badUsage(`"${wrong}" is not a call number`);
  using archive = new ArchiveReader(path);
  const missing = callNumbers.find((callNumber) => !archive.has(callNumber));
  if (missing !== undefined) throw new ArchiveError("message_missing", `The message ${missing} is not in ${path}.`);
  const written = pipeline(Readable.from(entries(archive, url, callNumbers, list)), process.stdout, { end: false });
  // A reader that has enough (`| head`) is no failure.
  await written.catch((error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
}

function* entries(archive: ArchiveReader, url: string, callNumbers: readonly string[], list: string | undefined) {
  for (const message of archive.exported(callNumbers, list)) {
    yield* mboxEntry({ ...message, url: `${url}/message/${message.callNumber}` });
  }
}
