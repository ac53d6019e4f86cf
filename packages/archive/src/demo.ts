/**
 * `npm run demo`: a coordinator, an import by several processes, and a call number looked up again, in a temporary
 * directory, with the commands that a user has.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { closeSync, copyFileSync, existsSync, openSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Archive } from "./archive/archive.js";
import { ignoreClosedPipes, printable } from "./terminal.js";

const CALLNUMBER_ARCHIVE = fileURLToPath(new URL("../bin/callnumber-archive.js", import.meta.url));
/** The `callnumber` command, as the coordinator's package ships it. */
const CALLNUMBER = fileURLToPath(new URL("../bin/callnumber.js", import.meta.resolve("callnumber")));
/** Ctrl-C reaches the commands by itself. */
const ENDING_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
/** The command that the demo shows now. */
let running: ChildProcess | undefined;
const PROCESS_COUNT = 2;
const SHOWN_COUNT = 10;
/** In columns. A line fits a terminal of 80. */
const NAME_WIDTH = 16;
const SUBJECT_WIDTH = 50;
const HELP_TEXT = `Imports mail with a coordinator of its own, in a temporary directory, and looks a call number up again.

  npm run demo                     30 messages of an invented mailing list
  npm run demo -- my.mbox ~/Maildir
  npm run demo -- --history        the history of this repository, as mail
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
  const { help, keep } = request;
  if (help) return print(HELP_TEXT);
  ignoreClosedPipes();
  // Whatever ends the demo, it ends its commands in order and removes its directory.
  for (const name of ENDING_SIGNALS) process.on(name, () => void (name !== "SIGINT" && running?.kill()));
  const directory = await mkdtemp(join(tmpdir(), "callnumber-demo-"));
  const storePath = join(directory, "store.db");
  let coordinator: Awaited<ReturnType<typeof startCoordinator>> | undefined;
  try {
    coordinator = await startCoordinator(storePath);
    print(`A coordinator listens on ${coordinator.url}; its store is an SQLite file.\n`);
    process.exitCode = await play(directory, coordinator.url, request);
  } finally {
    await coordinator?.stop();
    if (keep) print(`\nKept: ${directory} (the archive is archive.db, the store of the coordinator store.db)`);
    else await remove(directory, storePath);
    if (!keep) print("\nThe files of the demo are removed. Keep them with: npm run demo -- --keep");
  }
}

/** Its sources are absolute; none for what the demo itself has. @throws Error with what is wrong with the command line. */
function parseRequest(args: string[]) {
  const { values, positionals } = parseArgs({
    args,
    options: {
      history: { type: "boolean", default: false },
      keep: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
    allowPositionals: true,
  });
  // npm runs its scripts in the project's directory, whatever the directory it was called in.
  const sources = positionals.map((path) => resolve(process.env["INIT_CWD"] ?? "", path));
  const missing = sources.find((path) => !existsSync(path));
  if (missing !== undefined) throw new Error(`there is nothing at ${missing}`);
  if (values.history && sources.length > 0)
    throw new Error("--history imports nothing else: leave out the other sources");
  // Unpacked inside another repository, git would find the history of that one.
  if (values.history && git("rev-parse --show-cdup") !== "") throw new Error("there is no git history here");
  return { ...values, sources };
}

/** Starts `callnumber serve` on a free port and waits until it listens. */
async function startCoordinator(storePath: string) {
  const checkpoints = join(dirname(storePath), "checkpoint");
  const store = ["--store", `sqlite:${storePath}`, "--create", "--checkpoint-dir", checkpoints];
  return await startServer([CALLNUMBER, "serve", ...store, "--port", "0", "--log-level", "silent"], "stderr");
}

/** Starts a server and waits for the URL that it prints. */
async function startServer(args: readonly string[], output: "stdout" | "stderr") {
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "pipe"] });
  child[output === "stdout" ? "stderr" : "stdout"].resume();
  const lines: string[] = [];
  for await (const line of createInterface({ input: child[output] })) {
    lines.push(line);
    const url = /(http:\/\/[^\s,]+?)\/?(?:,|$)/.exec(line)?.[1];
    if (url === undefined) continue;
    child[output].resume();
    return { url, stop: () => stopped(child) };
  }
  throw new Error(`${args[1]} ended before it listened:\n${lines.join("\n")}`);
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
async function play(
  directory: string,
  coordinatorUrl: string,
  request: ReturnType<typeof parseRequest>,
): Promise<number> {
  const { paths, description } = demoInput(directory, request);
  print(`Importing ${description}:\n`);
  const options = ["--archive", "archive.db", "--coordinator", coordinatorUrl, "--processes", String(PROCESS_COUNT)];
  const status = await run(directory, "callnumber-archive", CALLNUMBER_ARCHIVE, ["import", ...paths, ...options]);
  if (status !== 0) return status;

  using archive = new Archive(join(directory, "archive.db"));
  const first = archive.first(SHOWN_COUNT);
  const [chosen] = first;
  if (chosen === undefined) {
    print("\nThere was no message to number.");
    return 0;
  }
  const heading =
    first.length === 1 ? "message and its call number" : `${first.length} messages and their call numbers`;
  print(`\nThe first ${heading}:\n`);
  for (const { callNumber, from, subject } of first) {
    print(
      `  ${callNumber}  ${nameIn(from).padEnd(NAME_WIDTH)}  ${printable(subject ?? "(no subject)", SUBJECT_WIDTH)}`,
    );
  }
  print("\nEach process takes its numbers from a run of 16,384 that it leased.");

  print(`\n${chosen.callNumber} in the archive:\n`);
  const found = archive.findByCallNumber(chosen.callNumber);
  print(`  ${printable(found?.from ?? "(no sender)", 60)}, ${found?.date ?? "no date"}`);
  print(`  ${printable(found?.subject ?? "(no subject)", 90)}`);

  print("\nand what the coordinator knows of it:\n");
  const inspect = ["inspect", chosen.callNumber, "--coordinator", coordinatorUrl];
  const inspected = await run(directory, "callnumber", CALLNUMBER, inspect);
  return inspected === 0 ? await showPages(directory, chosen.callNumber) : inspected;
}

/** Serves the archive: on a terminal until Ctrl-C. Returns the exit status. */
async function showPages(directory: string, callNumber: string): Promise<number> {
  const archive = ["--archive", join(directory, "archive.db"), "--title", "Demo archive"];
  const reader = await startServer([CALLNUMBER_ARCHIVE, "serve", ...archive, "--port", "0"], "stdout");
  print(`\nThe archive as pages, and the page of this message:\n\n  ${reader.url}/`);
  print(`  ${reader.url}/message/${callNumber}\n`);
  print(`With your own mail, and a coordinator that stays:

  $ npx callnumber serve
  $ npx callnumber-archive import YOUR.mbox --archive mail.db
  $ npx callnumber-archive serve --archive mail.db`);
  if (process.stdout.isTTY) {
    print("\nThe pages stay until you press Ctrl-C.");
    await Promise.race(ENDING_SIGNALS.map((name) => once(process, name)));
  }
  await reader.stop();
  return 0;
}

const REPOSITORY = fileURLToPath(new URL("../../..", import.meta.url));
const SAMPLE = fileURLToPath(new URL("../sample/garden.mbox", import.meta.url));
/**
 * mboxrd: lines of a commit message that begin with `From ` are quoted, so that only the separators are separators.
 * Merges have no patch and are left out. The other options cancel what the user's own settings would add.
 */
const AS_MAIL =
  "format-patch --stdout --root --always --pretty=mboxrd --keep-subject --thread=shallow --no-cover-letter --no-signature --no-signoff --no-attach HEAD";
/** Part of the Message-IDs that git writes. */
const IDENTITY = { GIT_COMMITTER_NAME: "Callnumber demo", GIT_COMMITTER_EMAIL: "demo@callnumber.invalid" };

/** Puts what the demo imports into `directory`, unless the user gave it. Returns its paths and a description. */
function demoInput(
  directory: string,
  { sources, history }: Pick<ReturnType<typeof parseRequest>, "sources" | "history">,
) {
  if (sources.length > 0) return { paths: sources, description: sources.map((path) => printable(path)).join(", ") };
  if (!history) {
    copyFileSync(SAMPLE, join(directory, "garden.mbox"));
    return { paths: ["garden.mbox"], description: "30 messages of an invented mailing list, in three languages" };
  }
  const file = openSync(join(directory, "history.mbox"), "w");
  const written = git(AS_MAIL, file);
  closeSync(file);
  if (written === undefined) throw new Error("git could not write the history of this repository");
  return { paths: ["history.mbox"], description: "the history of this repository, each commit a message" };
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

/** The name of a sender, else the address. */
function nameIn(from: string | null): string {
  return printable(from?.replace(/ <[^<>]*>$/, "") ?? "(no sender)", NAME_WIDTH);
}

/** Shows a command and runs it in the directory of the demo, as a user would. Returns its exit status. */
async function run(directory: string, name: string, bin: string, args: readonly string[]): Promise<number> {
  print(`  $ ${name} ${args.map((arg) => printable(arg)).join(" ")}\n`);
  running = spawn(process.execPath, [bin, ...args], { cwd: directory, stdio: ["ignore", "inherit", "inherit"] });
  const [status] = await once(running, "exit");
  running = undefined;
  return typeof status === "number" ? status : 1;
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
