/** `status`: how much is used, how much is left, how long it will last; once, over and over, or as a verdict for monitoring. */
import { statusAnswerSchema } from "@callnumber/protocol/schemas";
import { pathOf, type StatusAnswer } from "@callnumber/protocol/wire";
import { Command, Option } from "commander";
import { askCoordinator } from "./ask-coordinator.js";
import { AskError } from "./ask-error.js";
import { tokenFileOption } from "./bearer-token.js";
import { alarmsInALine, askCapacity } from "./capacity-command.js";
import { paintFor } from "./colours.js";
import { running } from "./command-io.js";
import { failureOf } from "./failure.js";
import { coordinatorOption, everyOption, namespaceOption } from "./options.js";
import { jsonLine, print, printJson, printPainted } from "./print.js";
import { shownFields } from "./shown-fields.js";
import { checkLine, EXIT_CODES, type Verdict, verdictOf, verdictWithout } from "./status-check.js";
import { statusInWords } from "./status-words.js";
import { untilStopped } from "./until-stopped.js";
import { watched } from "./watched.js";

interface Options {
  readonly coordinator: string;
  readonly tokenFile?: string | undefined;
  readonly namespace: string;
  readonly watch?: boolean;
  readonly every: number;
  readonly check?: boolean;
  readonly json?: boolean;
}

export function statusCommand(): Command {
  return new Command("status")
    .summary("high-water mark, runs left, forecast")
    .description(
      "Shows the state of a namespace. With --check: one line, and an exit code for scripts and monitoring: 0 it leases · 1 it will need " +
        "somebody · 2 it does not lease, or soon can't · 3 no coordinator answers, or none without a good token.",
    )
    .addOption(coordinatorOption())
    .addOption(tokenFileOption())
    .addOption(namespaceOption())
    .addOption(new Option("--check", "one line and an exit code, as monitoring plugins do").conflicts("watch"))
    .addOption(new Option("--watch", "look again and again, until Ctrl-C; with --json a line of JSON each time"))
    .addOption(everyOption())
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber status --watch --every 5\n  $ callnumber status --check || mail -s callnumber operator",
    )
    .action(async (options: Options) => {
      if (options.check) await check(options);
      else if (options.watch) await watch(options);
      else await show(options);
    });
}

async function show(options: Options): Promise<void> {
  const status = await statusFrom(options);
  if (options.json) printJson(status);
  else
    printPainted(
      `${statusInWords(shownFields(status), paintFor(false))}\n  alarms             ${await alarmsOf(options)}`,
    );
}

/** What is known of the state is told all the same. */
async function alarmsOf(options: Options): Promise<string> {
  return await askCapacity(options, options.namespace).then(
    ({ alarms }) => alarmsInALine(shownFields(alarms)),
    (error: Error) => `not known: ${error.message}`,
  );
}

async function check(options: Options): Promise<void> {
  const verdict = await verdictFrom(options);
  const exitCode = EXIT_CODES[verdict.state];
  running().exitCode = exitCode;
  if (options.json) print(jsonLine({ ...verdict, exitCode }));
  else print(checkLine(verdict));
}

async function verdictFrom(options: Options): Promise<Verdict> {
  try {
    const status = await statusFrom(options);
    const alarms = await askCapacity(options, options.namespace).then(
      (capacity) => capacity.alarms,
      () => [],
    );
    return verdictOf(status, alarms);
  } catch (error) {
    if (error instanceof AskError) return verdictWithout(options.namespace, error);
    throw error;
  }
}

/** A coordinator that does not answer is shown like everything else: somebody is watching for just that. */
async function watch(options: Options): Promise<void> {
  const paint = paintFor(options.json === true);
  const stopping = new AbortController();
  void untilStopped().then(() => stopping.abort());
  const look = async () => {
    try {
      const status = await statusFrom(options);
      return options.json ? jsonLine(status) : statusInWords(shownFields(status), paint);
    } catch (error) {
      if (!(error instanceof AskError)) throw error;
      return options.json ? failureOf(error, true).trimEnd() : paint("red", failureOf(error, false).trimEnd());
    }
  };
  await watched({ look, everyMs: options.every, asJson: options.json === true, signal: stopping.signal });
}

function statusFrom(options: Options): Promise<StatusAnswer> {
  return askCoordinator(options, pathOf("status", { namespace: options.namespace }), statusAnswerSchema);
}
