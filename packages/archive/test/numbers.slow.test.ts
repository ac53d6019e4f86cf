import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { encodeCallNumber } from "@callnumber/protocol/codec";
import { expect, test } from "vitest";
import {
  callnumberArchive,
  rowsOf,
  runImporter,
  startCoordinator,
  startImporter,
  temporaryDirectory,
  tinyMbox,
  untilStored,
} from "./importing.js";

test("no number changes when the archive is lost after kills, and the mail is imported again with the file of numbers", async () => {
  const directory = await temporaryDirectory();
  const { url } = await startCoordinator(`sqlite:${join(directory, "store.db")}`);
  const [mbox, archive, numbers] = ["tiny.mbox", "mail.db", "numbers.ndjson"].map((name) => join(directory, name)) as [
    string,
    string,
    string,
  ];
  writeFileSync(mbox, tinyMbox(3000));
  const args = [mbox, "--archive", archive, "--coordinator", url, "--numbers", numbers, "--processes", "4"];
  for (const count of [1, 400, 1200]) {
    const importer = startImporter(...args);
    await untilStored(archive, count);
    for (const pid of [importer.pid, ...importer.workerPids]) process.kill(pid, "SIGKILL");
    await importer.ended;
  }
  expect(await runImporter(...args)).toMatchObject({ status: 0, summary: { archiveHolds: 3000 } });
  const before = new Map(rowsOf(archive).map(({ call_number, subject }) => [subject, call_number]));
  for (const name of [archive, `${archive}-wal`, `${archive}-shm`]) rmSync(name, { force: true });

  const again = await runImporter(...args);
  expect(again).toMatchObject({
    status: 0,
    summary: { restored: 3000, messages: { stored: 3000 }, archiveHolds: 3000 },
  });
  const changed = rowsOf(archive).filter(({ call_number, subject }) => before.get(subject) !== call_number);
  expect(changed).toEqual([]);

  const exported = join(directory, "exported.ndjson");
  expect(await callnumberArchive("numbers", "export", "--archive", archive, "--to", exported)).toMatchObject({
    status: 0,
  });
  const sorted = (path: string) => [...new Set(readFileSync(path, "utf8").split("\n"))].sort();
  // The file has the numbers of transactions that a kill ended, too.
  expect(sorted(numbers)).toEqual(expect.arrayContaining(sorted(exported)));
});

test("an import with a number that was never leased is refused before it stores anything", async () => {
  const directory = await temporaryDirectory();
  const { url } = await startCoordinator(`sqlite:${join(directory, "store.db")}`);
  const [mbox, numbers] = [join(directory, "tiny.mbox"), join(directory, "numbers.ndjson")];
  writeFileSync(mbox, tinyMbox(3));
  const args = (archive: string) => [
    mbox,
    "--archive",
    join(directory, archive),
    "--coordinator",
    url,
    "--numbers",
    numbers,
  ];
  expect(await runImporter(...args("one.db"))).toMatchObject({ status: 0, summary: { messages: { stored: 3 } } });
  const text = readFileSync(numbers, "utf8");
  const [first] = /"number":"\w{8}"/.exec(text) as RegExpExecArray;
  writeFileSync(
    numbers,
    text.replace(first, `"number":"${encodeCallNumber({ version: 7, run: 2 ** 30 - 1, sequence: 1 })}"`),
  );
  const { status, summary, stderr } = await runImporter(...args("two.db"));
  expect([status, summary?.messages.stored, stderr]).toEqual([1, 0, expect.stringContaining("number_never_leased")]);
});
