import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { decodeCallNumber, encodeCallNumber } from "@callnumber/protocol/codec";
import { DatabaseSync } from "@photostructure/sqlite";
import { describe, expect, it } from "vitest";
import { Archive } from "../src/archive/archive.js";
import { importOn } from "./import-on.js";
import { rowsOf, runImporter, startCoordinator, temporaryFolder, tinyMbox } from "./importing.js";
import { message } from "./new-message.js";
import { LIST_PATHS, NASTY_PATHS, skipWithoutSharedMail } from "./shared-mail.js";

describe("an import by four processes", () => {
  it("gives every message of all archives a number of its own, and none twice, on the embedded store", async (ctx) => {
    skipWithoutSharedMail(ctx);
    await importOn(`sqlite:${join(await temporaryFolder(), "store.db")}`);
  });

  it("stores exactly the bytes of the files", async (ctx) => {
    skipWithoutSharedMail(ctx);
    const folder = await temporaryFolder();
    const { url } = await startCoordinator(`sqlite:${join(folder, "store.db")}`);
    const archive = join(folder, "archive.db");
    const paths = [...LIST_PATHS, ...NASTY_PATHS];
    const { status } = await runImporter(...paths, "--archive", archive, "--coordinator", url, "--processes", "4");
    expect(status).toBe(0);
    const rows = rowsOf(archive);
    for (const path of paths) {
      const bytes = await readFile(path);
      let position = 0;
      for (const { byte_offset, from_line, raw } of rows.filter(({ source }) => source === path)) {
        // Between the messages there are only the blank lines of the format.
        expect(bytes.toString("latin1", position, byte_offset)).toMatch(/^(?:\r?\n)*$/);
        const stored = Buffer.concat([from_line ?? Buffer.alloc(0), raw]);
        expect(bytes.subarray(byte_offset, byte_offset + stored.length).equals(stored)).toBe(true);
        position = byte_offset + stored.length;
      }
      expect(bytes.toString("latin1", position)).toMatch(/^(?:\r?\n)?$/);
    }
  });

  it("names each message that is odd, by source, number and byte", async (ctx) => {
    skipWithoutSharedMail(ctx);
    const folder = await temporaryFolder();
    const { url } = await startCoordinator(`sqlite:${join(folder, "store.db")}`);
    const mbox = join(folder, "odd.mbox");
    const picture = join(folder, "picture.mbox");
    const from = "From a Mon Jan  5 10:00:00 2015\n";
    await writeFile(mbox, `junk before\n\n${from}Subject: fine\n\nx\n\n${from}not a header\n\nx\n\n${from}`);
    await writeFile(picture, Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]));
    const archive = join(folder, "archive.db");
    const { status, summary } = await runImporter(mbox, picture, "--archive", archive, "--coordinator", url);
    expect(status).toBe(1);
    expect(summary?.outcome).toBe("complete");
    expect(summary?.messages).toEqual({ stored: 4, alreadyThere: 0, notStored: 1 });
    const problems = [...(summary?.problems ?? [])].sort((one, other) => one.byteOffset - other.byteOffset);
    expect(problems.filter(({ source }) => source === mbox)).toEqual([
      {
        source: mbox,
        number: 0,
        byteOffset: 0,
        reason: expect.stringContaining("before the first separator"),
        stored: true,
      },
      {
        source: mbox,
        number: 2,
        byteOffset: 63,
        reason: expect.stringContaining("line 1 of the header"),
        stored: true,
      },
      { source: mbox, number: 3, byteOffset: 112, reason: "the message is empty", stored: true },
    ]);
    expect(problems.filter(({ source }) => source === picture)).toEqual([
      { source: picture, number: 1, byteOffset: 0, reason: expect.stringContaining("it is no mbox"), stored: false },
    ]);
  });

  it("adds nothing and stores nothing twice when two imports of one file run at once", async () => {
    const folder = await temporaryFolder();
    const { url } = await startCoordinator(`sqlite:${join(folder, "store.db")}`);
    const mbox = join(folder, "tiny.mbox");
    await writeFile(mbox, tinyMbox(3000));
    const args = [mbox, "--archive", join(folder, "archive.db"), "--coordinator", url, "--processes", "2"];
    const both = await Promise.all([runImporter(...args), runImporter(...args)]);
    expect(both.map(({ status }) => status)).toEqual([0, 0]);
    expect(both.reduce((sum, { summary }) => sum + (summary?.messages.stored ?? 0), 0)).toBe(3000);
    expect(rowsOf(join(folder, "archive.db")).length).toBe(3000);
  });
});

describe("a call number that stands in the archive already", () => {
  it("stops the import with an error, and nothing is overwritten", async () => {
    const folder = await temporaryFolder();
    const { url } = await startCoordinator(`sqlite:${join(folder, "store.db")}`);
    const storeId = ((await (await fetch(`${url}/v1/namespaces/main/status`)).json()) as { storeId: string }).storeId;
    const path = join(folder, "archive.db");
    const forged = encodeCallNumber({ version: 0, run: 1, sequence: 5 });
    {
      using archive = new Archive(path);
      archive.store([message("the first holder", { source: "elsewhere" })], [forged], { storeId, namespace: "main" });
    }
    const before = rowsOf(path);
    const mbox = join(folder, "tiny.mbox");
    await writeFile(mbox, tinyMbox(8));
    const { status, summary, stderr } = await runImporter(mbox, "--archive", path, "--coordinator", url);
    expect(status).toBe(1);
    expect(summary?.outcome).toBe("failed");
    expect(summary?.error?.code).toBe("repeated_call_number");
    expect(stderr).toContain(forged);
    expect(rowsOf(path)).toEqual(before);
  });
});

describe("the store that an archive takes its numbers from", () => {
  it("is pinned with the first message, and another one is refused before the first number", async () => {
    const folder = await temporaryFolder();
    const path = join(folder, "archive.db");
    const [one, other] = [join(folder, "one.mbox"), join(folder, "other.mbox")];
    await writeFile(one, tinyMbox(10));
    await writeFile(other, tinyMbox(20));
    const home = await startCoordinator(`sqlite:${join(folder, "store.db")}`);
    const stranger = await startCoordinator(`sqlite:${join(folder, "other.db")}`);
    expect((await runImporter(one, "--archive", path, "--coordinator", home.url)).status).toBe(0);

    const refused = await runImporter(other, "--archive", path, "--coordinator", stranger.url);
    expect(refused.status).toBe(1);
    expect(refused.summary?.error?.code).toBe("other_store");
    expect(refused.stderr).toContain("--coordinator");
    expect(rowsOf(path).length).toBe(10);

    const elsewhere = await runImporter(other, "--archive", path, "--coordinator", home.url, "--namespace", "letters");
    expect(elsewhere.status).toBe(1);
    expect(elsewhere.stderr).toContain("other_namespace");
    expect(rowsOf(path).length).toBe(10);

    const database = new DatabaseSync(path);
    database.prepare("update facts set value = ? where name = 'namespace'").run("x\u001b[2J\u202egpj");
    database.close();
    const strange = await runImporter(other, "--archive", path, "--coordinator", home.url);
    expect(strange.stderr).toContain("Give --namespace x [2J gpj, or another --archive.");
    expect(strange.stderr).not.toMatch(/[^\P{C}\n]/u);
  });
});

describe("one process that refills when empty", () => {
  it("uses one run for 16,383 and for 16,384 messages, two for 16,385, three for 32,769", async () => {
    await Promise.all([usesRuns(16_383, 1), usesRuns(16_384, 1), usesRuns(16_385, 2), usesRuns(32_769, 3)]);
  });
});

async function usesRuns(messages: number, runs: number): Promise<void> {
  const folder = await temporaryFolder();
  const { url } = await startCoordinator(`sqlite:${join(folder, "store.db")}`);
  const mbox = join(folder, "tiny.mbox");
  await writeFile(mbox, tinyMbox(messages));
  const archive = join(folder, "archive.db");
  const options = ["--archive", archive, "--coordinator", url, "--processes", "1", "--refill", "when_empty"];
  const { status, summary } = await runImporter(mbox, ...options);
  expect(status).toBe(0);
  expect(summary?.messages.stored).toBe(messages);
  expect(summary?.runs).toEqual({ leased: runs, used: runs });
  const numbers = rowsOf(archive).map(({ call_number }) => decodeCallNumber(call_number));
  // In the order of the file: sequence after sequence, run after run, none left out.
  expect(numbers.map(({ run, sequence }) => (run - 1) * 2 ** 14 + sequence)).toEqual(numbers.map((_, index) => index));
}
