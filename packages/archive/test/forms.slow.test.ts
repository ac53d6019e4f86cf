/**
 * The same mail in other forms keeps its numbers, whatever form came first. Prints a table: a row for each form that came first, with how many
 * messages of the others got a second number.
 */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { Archive } from "../src/archive/archive.js";
import {
  GARDEN,
  importHere,
  LETTERS,
  rowsOf,
  SHARED_LISTS,
  skipWithoutSharedMail,
  temporaryDirectory,
} from "./importing.js";

interface Letter {
  readonly fromLine: Buffer;
  readonly raw: Buffer;
}

const latin1 = (bytes: Buffer) => bytes.toString("latin1");
const mbox = (letters: readonly Letter[]) =>
  Buffer.concat(letters.flatMap(({ fromLine, raw }) => [fromLine, raw, Buffer.from("\n")]));
const changed = (letters: readonly Letter[], change: (raw: string, index: number) => string) =>
  mbox(
    letters.map(({ fromLine, raw }, index) => ({ fromLine, raw: Buffer.from(change(latin1(raw), index), "latin1") })),
  );

/** What becomes of mail when it is moved, read or made again. */
const FORMS: Readonly<Record<string, (letters: readonly Letter[], path: string) => void>> = {
  mbox: (letters, path) => writeFileSync(path, mbox(letters)),
  maildir: (letters, path) => {
    for (const name of ["cur", "new"]) mkdirSync(join(path, name), { recursive: true });
    for (const [index, { raw }] of letters.entries()) {
      writeFileSync(join(path, "cur", `${index}.host:2,S`), latin1(raw).replace(/^>From /gm, "From "), "latin1");
    }
  },
  CRLF: (letters, path) => writeFileSync(path, latin1(mbox(letters)).replace(/\r?\n/g, "\r\n"), "latin1"),
  Status: (letters, path) =>
    writeFileSync(
      path,
      changed(letters, (raw, index) => raw.replace(/^(?=[\w-]+:)/, `Status: RO\nX-UID: ${index}\n`)),
    ),
  separators: (letters, path) =>
    writeFileSync(
      path,
      mbox(letters.map(({ raw }) => ({ fromLine: Buffer.from("From archive Thu Jan  1 00:00:00 1970\n"), raw }))),
    ),
  gz: (letters, path) => writeFileSync(`${path}.gz`, gzipSync(mbox(letters))),
  reversed: (letters, path) => writeFileSync(path, mbox(letters.toReversed())),
};

test.for([
  ["the sample list", [GARDEN]],
  ["letters with what goes wrong", [LETTERS]],
  ["public lists", SHARED_LISTS],
] as const)("each message keeps its number in each form, whatever form came first: %s", async ([what, lists], ctx) => {
  if (lists === SHARED_LISTS) skipWithoutSharedMail(ctx);
  const directory = await temporaryDirectory();
  using source = new Archive(join(directory, "source.db"));
  await importHere(source, ...lists);
  const letters = rowsOf(source.path)
    .filter(({ from_line: line, raw }) => line !== null && Buffer.from(raw).at(-1) === 0x0a)
    .map(({ from_line: line, raw }) => ({ fromLine: Buffer.from(line as Uint8Array), raw: Buffer.from(raw) }));
  const paths = Object.entries(FORMS).map(([name, write]) => {
    write(letters, join(directory, name));
    return [name, join(directory, name === "gz" ? "gz.gz" : name)] as const;
  });
  const table: string[][] = [];
  for (const [first, firstPath] of paths) {
    using archive = new Archive(join(directory, `${first}-first.db`));
    const { stored } = await importHere(archive, firstPath);
    const seconds: string[] = [];
    for (const [, path] of paths) seconds.push(String((await importHere(archive, path)).stored));
    table.push([first, String(stored), ...seconds]);
  }
  console.log(
    [["first", "stored", ...paths.map(([name]) => name)], ...table]
      .map((row) => row.map((cell) => cell.padEnd(11)).join(""))
      .join("\n"),
  );
  expect(letters.length, what).toBeGreaterThan(15);
  const zeros = paths.map(() => "0");
  expect(table).toEqual(paths.map(([name]) => [name, String(letters.length)].concat(zeros)));
});
