/** The mail archives that stand beside the repository. They hold letters of real people and never become part of it. */
import { existsSync, realpathSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { TestContext } from "vitest";

const PATH = fileURLToPath(new URL("../../../../shared/mail", import.meta.url));
/** Without links: sources have the name that the file really has. */
const FOLDER = existsSync(PATH) ? realpathSync(PATH) : PATH;

/** Messages of the two lists, as their makers counted them. */
export const LIST_COUNTS = { "twisted-web-2005.mbox": 1259, "notmuch-and-lkml.mbox": 263 } as const;

/** What is in the nasty ones, counted by hand and by reading. */
export const NASTY_COUNTS = {
  "8bit-headers.mbox": 7,
  "bad-dates.mbox": 7,
  "blank-lines-first.mbox": 2,
  "broken-headers.mbox": 5,
  "case-folded-ids.mbox": 4,
  "crlf.mbox": 20,
  "empty.mbox": 0,
  // 7, and two lines that nobody can tell from a separator.
  "from-in-bodies.mbox": 9,
  "hostile-message-ids.mbox": 25,
  "mixed-eol.mbox": 20,
  "no-final-newline.mbox": 2,
  "no-message-id.mbox": 300,
  "no-separator.mbox": 1,
  // The third stands behind a hole of 4,096 NUL bytes.
  "nul-bytes.mbox": 3,
  "only-separators.mbox": 5,
  "same-message-id.mbox": 300,
} as const;

export const LIST_PATHS = Object.keys(LIST_COUNTS).map(pathOfList);
export const NASTY_PATHS = Object.keys(NASTY_COUNTS).map((name) => `${FOLDER}/nasty/${name}`);

function pathOfList(name: string): string {
  return `${FOLDER}/${name}`;
}

export function sumOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0);
}

export function skipWithoutSharedMail(ctx: TestContext): void {
  if (!existsSync(FOLDER)) ctx.skip(`the mail archives are not here: ${FOLDER}`);
}
