/** `callnumber-archive import`: signals, progress and the exit status. The summary goes to stdout, everything else to stderr. */
import { createInterface } from "node:readline/promises";
import { ArchiveError, errorDetails, PERSON_NEEDED } from "../errors.js";
import { type ImportSettings, importMail } from "../importing/import.js";
import type { NumberedMessage } from "../importing/range-importer.js";
import { type Summary, summaryText } from "../importing/summary.js";
import { STDIN } from "../sources/source.js";
import { printable, quantity, writeError, writeLine, writeText } from "../terminal.js";
import type { Command } from "./command.js";
import { HELP_TEXT, parseCommandLine } from "./import-options.js";

/** 128 + the signal's number, as shells have it. */
const SIGNAL_STATUSES = { SIGINT: 130, SIGTERM: 143 } as const;
type StopSignal = keyof typeof SIGNAL_STATUSES;

const PROGRESS_INTERVAL_MS = 5_000;

/** EX_TEMPFAIL of sysexits.h: a mail program keeps the message and tries again. */
const TRY_AGAIN_STATUS = 75;

/** A supervisor must not start the import again: a new process knows no run of the one that stopped, and would go on. */
const STOPPED_STATUS = 3;

export const command: Command = { help: HELP_TEXT, run };

async function run(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<void> {
  try {
    await importAll(args, environment);
  } catch (error) {
    if (!args.includes(STDIN)) throw error;
    writeError(errorDetails(error));
    process.exitCode = TRY_AGAIN_STATUS;
  }
}

async function importAll(args: readonly string[], environment: NodeJS.ProcessEnv): Promise<void> {
  const { json, asks, settings } = parseCommandLine(args, environment);
  if (asks && !process.stdin.isTTY) {
    const message = "--same-content ask needs a terminal to ask on. Pass skip or number.";
    throw new ArchiveError("bad_usage", message);
  }
  // A date without a zone is UTC, on every machine.
  process.env["TZ"] = "UTC";
  const stopping = stopOnSignals();
  // Some mail programs take any output for a failure.
  const isDelivered = settings.sources.includes(STDIN);
  const importWith = async (changed: Partial<ImportSettings>) => {
    const progress = progressWriter();
    if (isDelivered) progress.stop();
    const listener = {
      onProgress: progress.onProgress,
      onNote: isDelivered ? () => {} : writeLine,
      onNumbered: settings.follow === undefined ? () => {} : json ? printJsonLine : printMessage,
      onCaughtUp: () => {
        progress.stop();
        writeLine("read to the end; waits for more");
      },
    };
    const summary = await importMail({ ...settings, ...changed }, listener, stopping);
    progress.stop();
    if (json && settings.follow !== undefined) printJsonLine(summary);
    else if (json) process.stdout.write(`${JSON.stringify(summary, null, 2)}\n`);
    // An import that was rejected before it began has nothing but its error.
    else if (summary.archiveHolds !== null && !isDelivered) writeText(process.stdout, summaryText(summary));
    if (summary.error !== null) writeError(summary.error);
    else if (isDelivered) {
      const shown = summary.problems.filter(({ stored }) => !stored || process.stderr.isTTY);
      for (const { reason } of shown) writeLine(`callnumber-archive: ${reason}`);
    }
    process.exitCode = exitStatus(summary, stopping.reason as StopSignal, settings.follow !== undefined);
    if (isDelivered && summary.outcome !== "complete") process.exitCode = TRY_AGAIN_STATUS;
    return summary;
  };
  const { outcome, messages } = await importWith({});
  if (asks && outcome === "complete" && messages.sameContent > 0 && (await confirms(messages.sameContent))) {
    await importWith({ sameContent: "number" });
  }
}

/** Asks whether skipped messages are to be numbered. */
async function confirms(messageCount: number): Promise<boolean> {
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  // The end of the input, or Ctrl-C.
  const closed = new Promise<string>((resolve) => terminal.once("close", () => resolve("")));
  const question = `\nNumber the skipped ${quantity(messageCount, "message")} again? [y/N] `;
  const answer = await Promise.race([terminal.question(question), closed]);
  terminal.close();
  return /^y(es)?$/i.test(answer.trim());
}

/** Returns a signal for the import; its reason is the name of the signal that the process received. */
function stopOnSignals(): AbortSignal {
  const controller = new AbortController();
  for (const name of Object.keys(SIGNAL_STATUSES) as StopSignal[]) {
    process.on(name, () => {
      if (!controller.signal.aborted) writeLine(`${name}: finishing the current transactions`);
      controller.abort(name);
    });
  }
  return controller.signal;
}

/** What is followed may be read later: a part that was not stored is no failure then. */
function exitStatus({ outcome, messages, error }: Summary, stopSignal: StopSignal, isFollowed: boolean): number {
  if (outcome === "stopped") return SIGNAL_STATUSES[stopSignal];
  if (error !== null && PERSON_NEEDED.has(error.code)) return STOPPED_STATUS;
  return outcome === "complete" && (isFollowed || messages.notStored === 0) ? 0 : 1;
}

function printMessage({ callNumber, source, number, subject }: NumberedMessage): void {
  const text = `${callNumber}  ${source}, message ${number}: ${subject ?? "(no subject)"}`;
  process.stdout.write(`${printable(text, 500)}\n`);
}

function printJsonLine(value: unknown): void {
  process.stdout.write(`${JSON.stringify(value)}\n`);
}

/** Writes a line every five seconds, also when nothing happens. A message that was already there counts as read. */
function progressWriter() {
  let [share, count, countBefore] = [0, 0, 0];
  const timer = setInterval(() => {
    const perSecond = Math.round(((count - countBefore) * 1000) / PROGRESS_INTERVAL_MS);
    const rate = count === 0 ? "" : `, ${perSecond} a second`;
    writeLine(`${Math.floor(share * 100)} %, ${quantity(count, "message")} read${rate}`);
    countBefore = count;
  }, PROGRESS_INTERVAL_MS).unref();
  return {
    onProgress: (newShare: number, newCount: number) => {
      [share, count] = [newShare, newCount];
    },
    stop: () => clearInterval(timer),
  };
}
