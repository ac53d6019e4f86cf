/**
 * `npm run demo`: a coordinator, an import by several processes, and a call number looked up again, in a temporary
 * directory, with the commands that a user has.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync, statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Archive } from "./archive.js";
import { ignoreClosedPipes, printable } from "./terminal.js";

const MBOX_IMPORTER = fileURLToPath(new URL("../bin/mbox-importer.js", import.meta.url));
/** The `callnumber` command, as the coordinator's package ships it. */
const CALLNUMBER = fileURLToPath(new URL("../bin/callnumber.js", import.meta.resolve("callnumber")));
const PROCESS_COUNT = 4;
const SHOWN_COUNT = 10;
const HELP_TEXT = `Imports mail with a coordinator of its own, in a temporary directory, and looks a call number up again.

  npm run demo                     the history of this repository, as mail
  npm run demo -- my.mbox ~/Maildir
  npm run demo -- --keep           keep the directory and print its path
`;

export async function demo(): Promise<void> {
  let request: ReturnType<typeof parseRequest>;
  try {
    request = parseRequest(process.argv.slice(2));
  } catch (error) {
    process.stderr.write(`demo: ${printable((error as Error).message, 500)}\n\n${HELP_TEXT}`);
    process.exitCode = 2;
    return;
  }
  const { help, keep, sources } = request;
  if (help) return print(HELP_TEXT);
  ignoreClosedPipes();
  // Ctrl-C ends the importer in order; then the demo removes its directory.
  process.on("SIGINT", () => {});
  const directory = await mkdtemp(join(tmpdir(), "callnumber-demo-"));
  const storePath = join(directory, "store.db");
  let coordinator: Awaited<ReturnType<typeof startCoordinator>> | undefined;
  try {
    coordinator = await startCoordinator(storePath);
    print(`A coordinator listens on ${coordinator.url}; its store is an SQLite file.\n`);
    process.exitCode = await play(directory, coordinator.url, sources);
  } finally {
    await coordinator?.stop();
    if (keep) print(`\nKept: ${directory} (the archive is archive.db, the store of the coordinator store.db)`);
    else await remove(directory, storePath);
  }
}

/** Its sources are absolute; none for the demo's own input. @throws Error with what is wrong with the command line. */
function parseRequest(args: string[]) {
  const { values, positionals } = parseArgs({
    args,
    options: { keep: { type: "boolean", default: false }, help: { type: "boolean", short: "h", default: false } },
    allowPositionals: true,
  });
  // npm runs its scripts in the project's directory, whatever the directory it was called in.
  const sources = positionals.map((path) => resolve(process.env["INIT_CWD"] ?? "", path));
  const missing = sources.find((path) => !existsSync(path));
  if (missing !== undefined) throw new Error(`there is nothing at ${missing}`);
  return { ...values, sources };
}

/** Starts `callnumber serve` on a free port and waits until it listens. */
async function startCoordinator(storePath: string) {
  const checkpoints = join(dirname(storePath), "checkpoint");
  const store = ["--store", `sqlite:${storePath}`, "--create", "--checkpoint-dir", checkpoints];
  const args = [CALLNUMBER, "serve", ...store, "--port", "0", "--log-level", "silent"];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "ignore", "pipe"] });
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stderr })) {
    lines.push(line);
    const url = /listening on (http:\/\/\S+?)(?:,|$)/.exec(line)?.[1];
    if (url === undefined) continue;
    child.stderr.resume();
    return { url, stop: () => stopped(child) };
  }
  throw new Error(`the coordinator ended before it listened:\n${lines.join("\n")}`);
}

async function stopped(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, "exit");
  child.kill("SIGTERM");
  await exited;
}

/** The store has left a file outside its directory, too: in the machine's memory. */
async function remove(directory: string, storePath: string): Promise<void> {
  const { removeRestartMarker } = await import("@callnumber/coordinator");
  removeRestartMarker(storePath);
  await rm(directory, { recursive: true, force: true });
}

/** Returns the exit status. */
async function play(directory: string, coordinatorUrl: string, given: readonly string[]): Promise<number> {
  const archivePath = join(directory, "archive.db");
  const input = given.length === 0 ? demoInput(directory) : undefined;
  const sources = input?.paths ?? given;
  print(`Importing ${input?.description ?? sources.map((path) => printable(path)).join(", ")}:\n`);
  const options = ["--archive", archivePath, "--coordinator", coordinatorUrl, "--processes", String(PROCESS_COUNT)];
  const status = await run("mbox-importer", MBOX_IMPORTER, [...sources, ...options]);
  if (status !== 0) return status;

  using archive = new Archive(archivePath);
  const first = archive.first(SHOWN_COUNT);
  const [chosen] = first;
  if (chosen === undefined) {
    print("\nThere was no message to number.");
    return 0;
  }
  const heading =
    first.length === 1 ? "message and its call number" : `${first.length} messages and their call numbers`;
  print(`\nThe first ${heading}:\n`);
  for (const { callNumber, subject } of first) print(`  ${callNumber}  ${printable(subject ?? "(no subject)", 90)}`);

  print(`\n${chosen.callNumber} in the archive:\n`);
  const found = archive.findByCallNumber(chosen.callNumber);
  print(`  ${printable(found?.from ?? "(no sender)", 60)}, ${found?.date ?? "no date"}`);
  print(`  ${printable(found?.subject ?? "(no subject)", 90)}`);

  print("\nand what the coordinator knows of it:\n");
  return await run("callnumber", CALLNUMBER, ["inspect", chosen.callNumber, "--coordinator", coordinatorUrl]);
}

const REPOSITORY = fileURLToPath(new URL("../../..", import.meta.url));
const SAMPLE = fileURLToPath(new URL("../sample/letters.mbox", import.meta.url));
/** A shallow clone has one commit: too few to show anything. */
const HISTORY_LENGTH_MIN = 10;
/**
 * mboxrd: lines of a commit message that begin with `From ` are quoted, so that only the separators are separators.
 * Merges have no patch and are left out. The other options cancel what the user's own settings would add.
 */
const AS_MAIL =
  "format-patch --stdout --root --always --pretty=mboxrd --keep-subject --thread=shallow --no-cover-letter --no-signature --no-signoff --no-attach HEAD";
/** Part of the Message-IDs that git writes. */
const IDENTITY = { GIT_COMMITTER_NAME: "Callnumber demo", GIT_COMMITTER_EMAIL: "demo@callnumber.invalid" };

/**
 * What the demo imports when it is given nothing: the history of this repository, written by git as mail into `directory`.
 * Where there is little or none, the sample letters are added or replace it.
 */
function demoInput(directory: string): { readonly paths: readonly string[]; readonly description: string } {
  const letters = "twenty letters of a reading room";
  const history = "the history of this repository, each commit a letter";
  // Unpacked inside another repository, git would find the history of that one.
  if (git("rev-parse --show-cdup") !== "") {
    return { paths: [SAMPLE], description: `${letters} (there is no git history here)` };
  }
  const path = join(directory, "history.mbox");
  const file = openSync(path, "w");
  const written = git(AS_MAIL, file);
  closeSync(file);
  if (written === undefined || statSync(path).size === 0) {
    return { paths: [SAMPLE], description: `${letters} (git could not write the history)` };
  }
  const length = Number(git("rev-list --count --no-merges HEAD"));
  if (length >= HISTORY_LENGTH_MIN) return { paths: [path], description: history };
  return { paths: [path, SAMPLE], description: `${history}, and because it is short, ${letters}` };
}

/** Returns what git prints, unless it goes to a file; undefined when git fails, or is not installed. */
function git(words: string, output: "pipe" | number = "pipe"): string | undefined {
  const { status, stdout } = spawnSync("git", ["-C", REPOSITORY, ...words.split(" ")], {
    stdio: ["ignore", output, "ignore"],
    env: { ...process.env, ...IDENTITY },
    encoding: "utf8",
  });
  return status === 0 ? (stdout ?? "").trim() : undefined;
}

/** Shows a command and runs it as a user would. Returns its exit status. */
async function run(name: string, bin: string, args: readonly string[]): Promise<number> {
  print(`  $ ${name} ${args.map((arg) => printable(arg)).join(" ")}\n`);
  const child = spawn(process.execPath, [bin, ...args], { stdio: ["ignore", "inherit", "inherit"] });
  const [status] = await once(child, "exit");
  return typeof status === "number" ? status : 1;
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
