/** Real readers for tests, each a process on a port of its own, over an archive that a real import made. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { DatabaseSync } from "@photostructure/sqlite";
import { expect, onTestFinished } from "vitest";
import { CALLNUMBER_ARCHIVE, runImporter, startCoordinator, temporaryDirectory } from "./importing.js";

/** Imports mboxes, each given as a path, or as its messages. Resolves to the archive's path, and the numbers by subject. */
export async function importedArchive(...mboxes: readonly (string | readonly string[])[]) {
  const directory = await temporaryDirectory();
  const coordinator = await startCoordinator(`sqlite:${join(directory, "store.db")}`, "--public-inspect");
  const archive = join(directory, "mail.db");
  const sources = mboxes.map(async (mbox, index) => {
    if (typeof mbox === "string") return mbox;
    const path = join(directory, `${index}.mbox`);
    const all = mbox.map((text) => `From a Mon Jan  5 10:00:00 2015\n${text}\n\n`).join("");
    // A character for each byte, unless a text has others.
    await writeFile(path, all, /[^\0-\xff]/.test(all) ? "utf8" : "latin1");
    return path;
  });
  for (const source of await Promise.all(sources)) {
    const { status, stderr } = await runImporter(
      source,
      "--archive",
      archive,
      "--coordinator",
      coordinator.url,
      "--processes",
      "1",
    );
    expect(status, stderr).toBe(0);
  }
  return { directory, archive, coordinator, numberOf: (subject: string) => numberOf(archive, subject) };
}

export function numberOf(archive: string, subject: string): string {
  using database = new DatabaseSync(archive, { readOnly: true });
  const row = database.prepare("select call_number as n from messages where subject = ? order by rowid").get(subject);
  return row?.["n"] as string;
}

/** Starts `callnumber-archive serve`; it ends with the test. */
export async function startReader(archive: string, ...options: readonly string[]) {
  const child = spawn(
    process.execPath,
    [CALLNUMBER_ARCHIVE, "serve", "--archive", archive, "--port", "0", ...options],
    {
      stdio: ["ignore", "pipe", "pipe"],
    },
  );
  const closed = once(child, "close");
  const stop = async () => {
    child.kill("SIGTERM");
    return ((await closed) as [number | null])[0];
  };
  onTestFinished(async () => void (await stop()));
  const errors: string[] = [];
  createInterface({ input: child.stderr }).on("line", (line) => errors.push(line));
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /(http:\/\/\S+?)\/$/.exec(line)?.[1];
    if (url !== undefined) return { url, pid: child.pid as number, stop, errors };
  }
  throw new Error(`serve ended: ${errors.join("\n")}`);
}

export async function textOf(url: string, status = 200): Promise<string> {
  const response = await fetch(url, { redirect: "manual" });
  expect(response.status, url).toBe(status);
  return await response.text();
}

/** Resolves when all messages can be found. */
export async function untilIndexed(url: string): Promise<void> {
  await expect.poll(() => textOf(`${url}/search`)).not.toContain("is being built");
}
