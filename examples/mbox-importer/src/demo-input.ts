/**
 * What the demo imports when it is given nothing: the history of this repository, written by git as mail. Every commit is a
 * letter with an author, a date and a patch. Without git or history: a small archive that was written for the purpose.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createWriteStream } from "node:fs";
import { realpath } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { fileURLToPath } from "node:url";

const REPOSITORY = fileURLToPath(new URL("../../..", import.meta.url));
const SAMPLE = fileURLToPath(new URL("../sample/letters.mbox", import.meta.url));

/**
 * mboxrd: lines of a commit message that begin with `From ` are quoted, so that only the separators are separators.
 * Merges have no patch and are left out. The other options cancel what the user's own settings would add.
 */
const AS_MAIL = [
  "format-patch --stdout --root --always --pretty=mboxrd --keep-subject --thread=shallow",
  "--no-cover-letter --no-signature --no-signoff --no-attach HEAD",
]
  .join(" ")
  .split(" ");
/** Part of the Message-IDs that git writes. */
const IDENTITY = { GIT_COMMITTER_NAME: "Callnumber demo", GIT_COMMITTER_EMAIL: "demo@callnumber.invalid" };

/** A shallow clone has one commit: too few to show anything. */
const HISTORY_LENGTH_MIN = 10;

export interface DemoInput {
  readonly paths: readonly string[];
  readonly description: string;
}

/** Writes the history into `directory`. Where there is little or none, the sample letters are added or replace it. */
export async function demoInput(directory: string): Promise<DemoInput> {
  const letters = "twenty letters of a reading room";
  const history = "the history of this repository, each commit a letter";
  if (!(await isOwnRepository())) return { paths: [SAMPLE], description: `${letters} (there is no git history here)` };
  const path = join(directory, "history.mbox");
  if (!(await writeHistory(path))) {
    return { paths: [SAMPLE], description: `${letters} (git could not write the history)` };
  }
  const length = Number(await gitOutput("rev-list", "--count", "--no-merges", "HEAD"));
  if (length >= HISTORY_LENGTH_MIN) return { paths: [path], description: history };
  return { paths: [path, SAMPLE], description: `${history}, and because it is short, ${letters}` };
}

/** Unpacked inside another repository, git would find the history of that one. */
async function isOwnRepository(): Promise<boolean> {
  const topLevel = await gitOutput("rev-parse", "--show-toplevel");
  return topLevel !== null && (await realpath(topLevel)) === (await realpath(REPOSITORY));
}

async function gitOutput(...args: readonly string[]): Promise<string | null> {
  const git = startGit(args);
  let output = "";
  for await (const chunk of git.stdout) output += chunk;
  return (await git.succeeded) ? output.trim() : null;
}

/** Returns whether there was a history to write. */
async function writeHistory(path: string): Promise<boolean> {
  const git = startGit(AS_MAIL);
  const file = createWriteStream(path);
  await pipeline(git.stdout, file);
  return (await git.succeeded) && file.bytesWritten > 0;
}

function startGit(args: readonly string[]) {
  const git = spawn("git", ["-C", REPOSITORY, ...args], {
    stdio: ["ignore", "pipe", "ignore"],
    env: { ...process.env, ...IDENTITY },
  });
  // A machine without git is no error here.
  const succeeded = once(git, "close").then(
    ([status]) => status === 0,
    () => false,
  );
  return { stdout: git.stdout, succeeded };
}
