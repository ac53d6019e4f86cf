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

const PACKAGE_FOLDER = fileURLToPath(new URL("..", import.meta.url));
const REPOSITORY_FOLDER = fileURLToPath(new URL("../../..", import.meta.url));
const SAMPLE = join(PACKAGE_FOLDER, "sample", "letters.mbox");

/**
 * mboxrd: lines of a commit message that begin with `From ` are quoted, so that only the separators are separators.
 * Merges have no patch and are left out.
 */
const AS_MAIL = "format-patch --stdout --root --always --pretty=mboxrd --keep-subject --thread=shallow";
/** Whatever the user's own settings would add. */
const NOTHING_MORE = "--no-cover-letter --no-signature --no-signoff --no-attach";
/** Part of the Message-IDs that git makes. */
const IDENTITY = { GIT_COMMITTER_NAME: "Callnumber demo", GIT_COMMITTER_EMAIL: "demo@callnumber.invalid" };

/** A shallow clone has one commit: too few to show anything. */
const HISTORY_LENGTH_MIN = 10;

export interface DemoInput {
  readonly paths: readonly string[];
  readonly description: string;
}

/** Writes the history into `folder`; where there is little or none, the sample letters join or replace it. */
export async function demoInput(folder: string): Promise<DemoInput> {
  const letters = "twenty letters of a reading room";
  if (!(await isOwnRepository())) return { paths: [SAMPLE], description: `${letters} (there is no git history here)` };
  const path = join(folder, "history.mbox");
  const history = "the history of this repository, each commit a letter";
  if (!(await writeHistory(path)))
    return { paths: [SAMPLE], description: `${letters} (git could not write the history)` };
  if ((await historyLength()) >= HISTORY_LENGTH_MIN) return { paths: [path], description: history };
  return { paths: [path, SAMPLE], description: `${history}, and because it is short, ${letters}` };
}

/** Unpacked inside somebody else's repository, the history would be somebody else's. */
async function isOwnRepository(): Promise<boolean> {
  const topLevel = await answerOfGit(["rev-parse", "--show-toplevel"]);
  return topLevel !== null && (await realpath(topLevel)) === (await realpath(REPOSITORY_FOLDER));
}

async function historyLength(): Promise<number> {
  return Number(await answerOfGit(["rev-list", "--count", "--no-merges", "HEAD"]));
}

async function answerOfGit(question: readonly string[]): Promise<string | null> {
  const git = spawn("git", ["-C", REPOSITORY_FOLDER, ...question], { stdio: ["ignore", "pipe", "ignore"] });
  const ended = endOf(git);
  let answer = "";
  for await (const chunk of git.stdout) answer += chunk;
  return (await ended) ? answer.trim() : null;
}

/** Whether there was a history to write. */
async function writeHistory(path: string): Promise<boolean> {
  const git = spawn("git", ["-C", REPOSITORY_FOLDER, ...`${AS_MAIL} ${NOTHING_MORE} HEAD`.split(" ")], {
    stdio: ["ignore", "pipe", "ignore"],
    env: { ...process.env, ...IDENTITY },
  });
  const ended = endOf(git);
  const file = createWriteStream(path);
  await pipeline(git.stdout, file);
  return (await ended) && file.bytesWritten > 0;
}

/** Whether a process ends well. No git at all is no error here. */
async function endOf(child: ReturnType<typeof spawn>): Promise<boolean> {
  try {
    const [status] = await once(child, "close");
    return status === 0;
  } catch {
    return false;
  }
}
