/** The whole path on one store, whichever it is: the embedded one here, Redis where the suite has one. */

import { join } from "node:path";
import { decodeCallNumber } from "@callnumber/protocol/codec";
import { expect } from "vitest";
import { callnumber, rowsOf, runImporter, startCoordinator, temporaryFolder } from "./importing.js";
import { LIST_COUNTS, LIST_PATHS, NASTY_COUNTS, NASTY_PATHS, sumOf } from "./shared-mail.js";

/**
 * Four processes import the two lists, then all of the nasty mailboxes, then everything again.
 * @param storeUrl of a store that has no namespace `main` yet.
 */
export async function importOn(storeUrl: string): Promise<void> {
  if (!storeUrl.startsWith("sqlite:")) await callnumber("init", "--store", storeUrl);
  const coordinator = await startCoordinator(storeUrl);
  const archive = join(await temporaryFolder(), "archive.db");
  const options = ["--archive", archive, "--coordinator", coordinator.url, "--processes", "4"];

  const lists = await runImporter(...LIST_PATHS, ...options);
  expect(lists.stderr).not.toMatch(/Error|error/);
  expect(lists.status).toBe(0);
  expect(lists.summary?.messages).toEqual({ stored: sumOf(LIST_COUNTS), alreadyThere: 0, notStored: 0 });
  expect(lists.summary?.processes).toBe(4);
  // The one Message-ID of the first list and the 35 messages of the second that SOURCES.md names.
  expect(lists.summary?.archiveHolds).toEqual({
    messages: sumOf(LIST_COUNTS),
    withoutMessageId: 0,
    repeatedMessageIds: { ids: 36, messages: 72 },
    repeatedContents: { contents: 35, messages: 70 },
  });

  const nasty = await runImporter(...NASTY_PATHS, ...options);
  expect(nasty.status).toBe(0);
  expect(nasty.summary?.messages).toEqual({ stored: sumOf(NASTY_COUNTS), alreadyThere: 0, notStored: 0 });

  const total = sumOf(LIST_COUNTS) + sumOf(NASTY_COUNTS);
  const again = await runImporter(...LIST_PATHS, ...NASTY_PATHS, ...options);
  expect(again.status).toBe(0);
  expect(again.summary?.messages).toEqual({ stored: 0, alreadyThere: total, notStored: 0 });
  expect(again.summary?.runs).toEqual({ leased: 0, used: 0 });

  const rows = rowsOf(archive);
  expect(rows.length).toBe(total);
  expect(new Set(rows.map(({ call_number }) => call_number)).size).toBe(total);
  const runs = new Set(rows.map(({ call_number }) => decodeCallNumber(call_number).run));
  expect(runs.size).toBe((lists.summary?.runs.used ?? 0) + (nasty.summary?.runs.used ?? 0));

  // The coordinator knows each of them: none is beyond what a process reported.
  const sample = rows.filter((_, index) => index % 97 === 0).map(({ call_number }) => call_number);
  const answers = JSON.parse(await callnumber("inspect", ...sample, "--coordinator", coordinator.url, "--json"));
  expect(answers.map(({ verdict }: { verdict: string }) => verdict)).toEqual(sample.map(() => "reported"));
}
