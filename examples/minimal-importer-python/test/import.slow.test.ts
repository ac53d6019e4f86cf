/** The importer in Python as its README runs it: with a real coordinator, and with what must not happen. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { folderForTest, REPOSITORY, serve } from "../../../test/processes/command.js";
import { noPython, python } from "../../../test/python/python.js";

const IMPORTER = fileURLToPath(new URL("../import_mail.py", import.meta.url));
/** Of 30 messages. */
const GARDEN = join(REPOSITORY, "packages", "archive", "sample", "garden.mbox");

const imported = (archive: string, coordinator: string) =>
  python([IMPORTER, GARDEN, archive], { CALLNUMBER_COORDINATOR: coordinator });

const SQL = "import json, sqlite3, sys; d = sqlite3.connect(sys.argv[1], isolation_level=None); ";
/** Runs statements on an archive, and resolves to its rows. */
async function rowsOf(
  archive: string,
  statements = "",
): Promise<readonly (readonly [number: string, start: string])[]> {
  const query = "select call_number, cast(substr(content, 1, 5) as text) from messages order by rowid";
  const script = `${SQL}d.executescript(sys.argv[2]); print(json.dumps(d.execute("${query}").fetchall()))`;
  return JSON.parse((await python(["-c", script, archive, statements])).stdout);
}

describe.skipIf(noPython)("the smallest importer in Python", () => {
  test("stores each message once, whole and under a number of its own, also when two run at once", async () => {
    const archive = join(await folderForTest(), "mail.db");
    const { url } = await serve("memory:");
    expect(await imported(archive, url)).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^30 messages, the first as \w{8}\n$/),
    });
    const first = await rowsOf(archive);
    expect(first.map(([, start]) => start)).toEqual(Array(30).fill("From "));
    expect(await imported(archive, url)).toEqual({ status: 0, stdout: "", stderr: "" });
    expect(await rowsOf(archive)).toEqual(first);

    const other = `${archive}.2`;
    const both = await Promise.all([imported(other, url), imported(other, url)]);
    expect(both.map(({ status, stderr }) => [status, stderr])).toEqual([
      [0, ""],
      [0, ""],
    ]);
    expect(new Set([...first, ...(await rowsOf(other))].map(([number]) => number)).size).toBe(60);
  });

  test("rejects another store, and a number that is stored already, and changes nothing", async () => {
    const archive = join(await folderForTest(), "mail.db");
    const [one, other] = [await serve("memory:"), await serve("memory:")];
    await imported(archive, one.url);
    const before = await rowsOf(
      archive,
      "delete from messages where rowid > 1; update messages set content_hash = x'00'",
    );
    const mismatch = await imported(archive, other.url);
    expect(mismatch).toMatchObject({ status: 1, stdout: "", stderr: expect.stringContaining("expects store") });
    expect(await rowsOf(archive)).toEqual(before);

    // A new store issues the numbers of the first again, as a copy of it would.
    await rowsOf(archive, "delete from facts");
    const repeated = await imported(archive, (await serve("memory:")).url);
    const stderr = expect.stringContaining("UNIQUE constraint failed: messages.call_number");
    expect(repeated).toMatchObject({ status: 1, stdout: "", stderr });
    expect(await rowsOf(archive)).toEqual(before);
  });
});
