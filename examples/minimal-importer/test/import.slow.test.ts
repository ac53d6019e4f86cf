/** The importer as its README runs it: with a real coordinator, and with what must not happen. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { DatabaseSync } from "@photostructure/sqlite";
import { expect, test } from "vitest";
import { folderForTest, REPOSITORY, serveProcess } from "../../../test/processes/command.js";

const IMPORTER = fileURLToPath(new URL("../import.mjs", import.meta.url));
/** Of 30 messages. */
const GARDEN = join(REPOSITORY, "packages", "archive", "sample", "garden.mbox");

async function imported(archive: string, coordinator: string) {
  const env = { ...process.env, CALLNUMBER_COORDINATOR: coordinator };
  const child = spawn(process.execPath, [IMPORTER, GARDEN, archive], { env, stdio: ["ignore", "pipe", "pipe"] });
  const [stdout, stderr, [status]] = await Promise.all([text(child.stdout), text(child.stderr), once(child, "close")]);
  return { status, stdout, stderr };
}

function rowsOf(archive: string): { call_number: string; content: Uint8Array }[] {
  using database = new DatabaseSync(archive);
  return database.prepare("select * from messages order by rowid").all() as unknown as ReturnType<typeof rowsOf>;
}

test("the importer stores each message once, whole and under a number of its own, also when two run at once", async () => {
  const archive = join(await folderForTest(), "mail.db");
  const { url } = await serveProcess("memory:");
  expect(await imported(archive, url)).toMatchObject({
    status: 0,
    stdout: expect.stringMatching(/^30 messages, the first as \w{8}\n$/),
  });
  const first = rowsOf(archive);
  expect(first.map(({ content }) => Buffer.from(content).toString("latin1").slice(0, 5))).toEqual(
    Array(30).fill("From "),
  );
  expect(await imported(archive, url)).toEqual({ status: 0, stdout: "", stderr: "" });
  expect(rowsOf(archive)).toEqual(first);

  const other = `${archive}.2`;
  expect((await Promise.all([imported(other, url), imported(other, url)])).map(({ status }) => status)).toEqual([0, 0]);
  expect(new Set([...first, ...rowsOf(other)].map((row) => row.call_number)).size).toBe(60);
});

test("the importer rejects another store, and a number that is stored already, and changes nothing", async () => {
  const archive = join(await folderForTest(), "mail.db");
  const [one, other] = [await serveProcess("memory:"), await serveProcess("memory:")];
  await imported(archive, one.url);
  using database = new DatabaseSync(archive);
  database.exec("delete from messages where rowid > 1; update messages set content_hash = x'00'");
  const before = rowsOf(archive);
  const mismatch = await imported(archive, other.url);
  expect(mismatch).toMatchObject({ status: 1, stdout: "", stderr: expect.stringContaining("expects store") });
  expect(rowsOf(archive)).toEqual(before);

  // A new store issues the numbers of the first again, as a copy of it would.
  database.exec("delete from facts");
  const repeated = await imported(archive, (await serveProcess("memory:")).url);
  const stderr = expect.stringContaining("UNIQUE constraint failed: messages.call_number");
  expect(repeated).toMatchObject({ status: 1, stdout: "", stderr });
  expect(rowsOf(archive)).toEqual(before);
});
