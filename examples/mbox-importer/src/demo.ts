/**
 * The whole way in one command: a coordinator, an import by several processes, and a call number looked up again. Everything
 * happens in a temporary folder, with the commands that a user has.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { Archive } from "./archive/archive.js";
import { CALLNUMBER, DemoCoordinator } from "./demo-coordinator.js";
import { demoInput } from "./demo-input.js";
import { ignoreClosedPipes } from "./report/closed-pipe.js";
import { printable } from "./report/printable.js";

const MBOX_IMPORTER = fileURLToPath(new URL("../bin/mbox-importer.js", import.meta.url));
const PROCESS_COUNT = 4;
const SHOWN_COUNT = 10;
const HELP_TEXT = `Imports mail with a coordinator of its own, in a temporary folder, and looks a call number up again.

  npm run demo                     the history of this repository, as mail
  npm run demo -- my.mbox ~/Maildir
  npm run demo -- --keep           keeps the folder and says where it is
`;

export async function demo(): Promise<void> {
  const request = requestOf(process.argv.slice(2));
  if (typeof request === "string") {
    process.stderr.write(`demo: ${printable(request, 500)}\n\n${HELP_TEXT}`);
    process.exitCode = 2;
    return;
  }
  const { help, keep, sources } = request;
  if (help) return say(HELP_TEXT);
  ignoreClosedPipes();
  // Ctrl-C ends the importer, which ends in good order; then the demo tidies up.
  process.on("SIGINT", () => {});
  const folder = await mkdtemp(join(tmpdir(), "callnumber-demo-"));
  let coordinator: DemoCoordinator | undefined;
  try {
    coordinator = await DemoCoordinator.start(join(folder, "store.db"));
    say(`A coordinator listens on ${coordinator.url}; its store is an SQLite file.\n`);
    process.exitCode = await play(folder, coordinator.url, sources);
  } finally {
    await coordinator?.stop();
    if (keep) say(`\nKept: ${folder} (the archive is archive.db, the store of the coordinator store.db)`);
    else await tidyUp(folder, coordinator);
  }
}

/** The store has left something outside its folder, too: in the machine's memory. */
async function tidyUp(folder: string, coordinator: DemoCoordinator | undefined): Promise<void> {
  const { removeRestartMarker } = await import("@callnumber/coordinator");
  if (coordinator !== undefined) removeRestartMarker(coordinator.storePath);
  await rm(folder, { recursive: true, force: true });
}

interface DemoRequest {
  readonly help: boolean;
  readonly keep: boolean;
  /** Absolute; none for the input of the demo's own. */
  readonly sources: readonly string[];
}

/** What is wanted, or what is wrong with the command line: said before anything is started. */
function requestOf(args: readonly string[]): DemoRequest | string {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      options: { keep: { type: "boolean", default: false }, help: { type: "boolean", short: "h", default: false } },
      allowPositionals: true,
    });
    // npm runs its scripts in the project's folder, whatever the folder it was called in.
    const sources = positionals.map((path) => resolve(process.env["INIT_CWD"] ?? "", path));
    const missing = sources.find((path) => !existsSync(path));
    return missing === undefined ? { ...values, sources } : `there is nothing at ${missing}`;
  } catch (error) {
    return (error as Error).message;
  }
}

/** Returns the exit status. */
async function play(folder: string, coordinatorUrl: string, given: readonly string[]): Promise<number> {
  const archivePath = join(folder, "archive.db");
  const input = given.length === 0 ? await demoInput(folder) : undefined;
  const sources = input?.paths ?? given;
  say(`Importing ${input?.description ?? sources.map((path) => printable(path)).join(", ")}:\n`);
  const importing = ["--archive", archivePath, "--coordinator", coordinatorUrl, "--processes", String(PROCESS_COUNT)];
  const status = await run("mbox-importer", MBOX_IMPORTER, [...sources, ...importing]);
  if (status !== 0) return status;

  using archive = new Archive(archivePath);
  const first = archive.first(SHOWN_COUNT);
  const [chosen] = first;
  if (chosen === undefined) {
    say("\nThere was no message to number.");
    return 0;
  }
  say(
    `\nThe first ${first.length === 1 ? "message and its call number" : `${first.length} messages and their call numbers`}:\n`,
  );
  for (const { callNumber, subject } of first) say(`  ${callNumber}  ${printable(subject ?? "(no subject)", 90)}`);

  say(`\n${chosen.callNumber} in the archive:\n`);
  const found = archive.findByCallNumber(chosen.callNumber);
  say(`  ${printable(found?.from ?? "(no sender)", 60)}, ${found?.date ?? "no date"}`);
  say(`  ${printable(found?.subject ?? "(no subject)", 90)}`);

  say("\nand what the coordinator knows of it:\n");
  return await run("callnumber", CALLNUMBER, ["inspect", chosen.callNumber, "--coordinator", coordinatorUrl]);
}

/** Runs a command as a user would, and shows it. Returns its exit status. */
async function run(name: string, bin: string, args: readonly string[]): Promise<number> {
  say(`  $ ${name} ${args.map((arg) => printable(arg)).join(" ")}\n`);
  const child = spawn(process.execPath, [bin, ...args], { stdio: ["ignore", "inherit", "inherit"] });
  const [status] = await once(child, "exit");
  return typeof status === "number" ? status : 1;
}

function say(text: string): void {
  process.stdout.write(`${text}\n`);
}
