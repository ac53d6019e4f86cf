/**
 * The command mbox-importer. The only place that reads the environment, hears signals and sets the exit status.
 * stdout holds the summary, stderr everything else.
 */
import { parseCommandLine } from "./command-line.js";
import { type ErrorFacts, errorFactsOf } from "./errors.js";
import { HELP_TEXT } from "./help-text.js";
import { Import } from "./importing/import.js";
import type { Summary } from "./importing/summary.js";
import { summaryText } from "./importing/summary-text.js";
import { ignoreClosedPipes } from "./report/closed-pipe.js";
import { printable } from "./report/printable.js";
import { progressView } from "./terminal.js";

/** 128 + the signal's number, as shells have it. */
const SIGNAL_STATUSES = { SIGINT: 130, SIGTERM: 143 } as const;
type StopSignal = keyof typeof SIGNAL_STATUSES;

export async function main(): Promise<void> {
  ignoreClosedPipes();
  try {
    const { help, json, settings } = parseCommandLine(process.argv.slice(2), process.env);
    if (settings === undefined) {
      process.stdout.write(help ? HELP_TEXT : "");
      return;
    }
    const view = progressView(process.stderr);
    const running = new Import(settings, {
      onProgress: (progress) => view.show(progress),
      onNote: (note) => view.note(note),
    });
    const stopSignal = stopOnSignals(running, (note) => view.note(note));
    const summary = await running.run();
    view.end();
    if (json) process.stdout.write(`${JSON.stringify(summary, null, 2)}\n`);
    // Refused before it began: the error says it all.
    else if (summary.archiveHolds !== null) process.stdout.write(`${summaryText(summary)}\n`);
    if (summary.error !== null) writeError(summary.error);
    process.exitCode = statusOf(summary, stopSignal());
  } catch (error) {
    const facts = errorFactsOf(error);
    writeError(facts);
    process.exitCode = facts.code === "bad_usage" ? 2 : 1;
  }
}

/** Once: end in good order. Twice: end at once. Returns who asks for the signal that came, if one did. */
function stopOnSignals(running: Import, note: (text: string) => void): () => StopSignal | undefined {
  let first: StopSignal | undefined;
  for (const signal of Object.keys(SIGNAL_STATUSES) as StopSignal[]) {
    process.on(signal, () => {
      if (first !== undefined) return running.kill();
      first = signal;
      note(`${signal}: finishing what is in hand. Once more to end at once`);
      running.stop();
    });
  }
  return () => first;
}

function statusOf({ outcome, messages }: Summary, stopSignal: StopSignal | undefined): number {
  if (outcome === "stopped" && stopSignal !== undefined) return SIGNAL_STATUSES[stopSignal];
  return outcome === "complete" && messages.notStored === 0 ? 0 : 1;
}

function writeError({ code, message, remedy }: ErrorFacts): void {
  process.stderr.write(`mbox-importer: ${printable(code)}: ${linesOf(message)}\n${linesOf(remedy)}\n`);
}

function linesOf(text: string): string {
  return text
    .split("\n")
    .map((line) => printable(line, 1000))
    .join("\n");
}
