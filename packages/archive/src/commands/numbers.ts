/** `callnumber-archive numbers export`: the numbers of an archive, apart from it. */
import { existsSync, realpathSync, renameSync, rmSync } from "node:fs";
import * as z from "zod";
import { Archive } from "../archive/archive.js";
import { assertArchiveAt } from "../archive/schema.js";
import { ArchiveError } from "../errors.js";
import { assertWritable, headerLine } from "../numbers/numbers-file.js";
import { appendMissing, entriesIn } from "../numbers/sync-numbers.js";
import { printable, quantity } from "../terminal.js";
import { archivePath, badUsage, type Command, check, parse } from "./command.js";

const HELP = `Writes which message has which number, one JSON object a line.

  callnumber-archive numbers export --archive FILE [--to FILE]

  callnumber-archive numbers export --archive mail.db --to numbers.ndjson

Keep the file apart from the archive. If the archive is lost, import the mail
again with --numbers: each message gets the number that it had. An import with
--numbers FILE keeps such a file up to date by itself.

Options
  --archive FILE       the archive. Required
  --to FILE            where to write (default: standard output). An older
                       file is replaced, but not one with numbers that the
                       archive lacks
  -h, --help           print this text
`;

const OPTIONS = { archive: { type: "string" }, to: { type: "string" } } as const;
const schema = z.object({
  archive: archivePath("--archive mail.db"),
  to: z.string().min(1, "must name a file").optional(),
});

export const command: Command = {
  help: HELP,
  async run(args) {
    const { values, positionals } = parse(args, OPTIONS);
    const [action, ...others] = positionals;
    if (action !== "export") throw badUsage(`numbers needs the word export${action ? `, not "${action}"` : ""}`);
    if (others.length > 0)
      throw badUsage(`"${others[0]}" is not an option of numbers export: the file is named with --to`);
    const { archive: path, to } = check(schema, values);
    assertArchiveAt(path);
    using archive = new Archive(path);
    const { origin } = archive;
    if (origin === undefined) throw new ArchiveError("archive_unusable", `The archive ${path} has no message yet.`);
    if (to === undefined) {
      process.stdout.write(headerLine(origin));
      for (const line of archive.known.missingLines()) process.stdout.write(line);
      return;
    }
    assertWritable(to);
    if (existsSync(to)) await assertReplaceable(path, to);
    // The older file stays until the new one is whole.
    const target = existsSync(to) ? realpathSync(to) : to;
    const written = `${target}.new`;
    rmSync(written, { force: true });
    // An import appends under the same lock: what it appended to the older file would be lost with that.
    archive.whileLocked(() => {
      appendMissing(archive, written, origin);
      renameSync(written, target);
    });
    process.stderr.write(`Wrote the numbers of ${quantity(archive.count(), "message")} to ${printable(to)}\n`);
  },
};

/** The only copy of some numbers may be in it. @throws ArchiveError `numbers_unusable`. */
async function assertReplaceable(archivePath: string, file: string): Promise<void> {
  using archive = new Archive(archivePath);
  await archive.known.read(entriesIn(file));
  const missing = archive.known.unknown();
  if (missing === undefined) return;
  const action = "Pass --to another file, or import with --numbers this one";
  const message = `${file} has numbers that the archive ${archivePath} lacks, as ${missing}, and is not replaced. ${action}.`;
  throw new ArchiveError("numbers_unusable", message);
}
