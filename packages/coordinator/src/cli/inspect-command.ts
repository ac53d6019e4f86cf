/** `inspect`: what a call number is, and who made it. */
import type { InspectAnswer } from "@callnumber/protocol/wire";
import { Command } from "commander";
import { canExist } from "../inspection.js";
import { READS_AT_ONCE } from "../limits/concurrency-limits.js";
import { tokenFileOption } from "./bearer-token.js";
import { running } from "./command-io.js";
import { inputLines } from "./input-lines.js";
import { type Asking, inspectText } from "./inspect-asking.js";
import { inWords, tableHead, tableRow } from "./inspect-words.js";
import { coordinatorOption, namespaceOption } from "./options.js";
import { jsonLine, print, printJson } from "./print.js";

interface Options {
  readonly coordinator: string;
  readonly tokenFile?: string | undefined;
  readonly namespace: string;
  readonly json?: boolean;
}

/** Lines of standard input that are asked about at the same time: a quarter of what a client may have in flight, so that the same token can read something else meanwhile. */
const ASKED_AT_ONCE = READS_AT_ONCE / 4;

export function inspectCommand(): Command {
  return new Command("inspect")
    .summary("what is this call number, and who made it?")
    .description(
      "Asks the coordinator about call numbers, or the addresses of pages that end with one. For what can't be a number of a " +
        "message it says what it may have been meant for. The exit code is 1 when one of them can't be in an archive.",
    )
    .argument("<callnumber...>", "call numbers or URLs, or - to read them from standard input, one a line")
    .addOption(coordinatorOption())
    .addOption(tokenFileOption())
    .addOption(namespaceOption())
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber inspect 2VznWE2i\n  $ callnumber inspect https://lists.example.org/message/2VznWE2i\n" +
        "  $ callnumber inspect --json - < numbers.txt     one line of JSON for each",
    )
    .action(async (texts: readonly string[], { coordinator, tokenFile, namespace, json = false }: Options) => {
      const asking = { coordinator, tokenFile, namespace };
      const isBatch = texts.length === 1 && texts[0] === "-";
      const allCanExist = isBatch ? await inspectInput(asking, json) : await inspectEach(asking, texts, json);
      if (!allCanExist) running().exitCode = 1;
    });
}

type Place = Omit<Asking, "withNeighbours">;

/** Answers whether all of them can exist. */
async function inspectEach(place: Place, texts: readonly string[], asJson: boolean): Promise<boolean> {
  const answers: InspectAnswer[] = [];
  for (const text of texts) answers.push(await inspectText({ ...place, withNeighbours: true }, text));
  if (asJson) printJson(answers);
  else for (const answer of answers) print(inWords(answer));
  return answers.every(canExist);
}

/** Answers in the order of the lines, each as soon as those before it are answered. White space around a text is passed over. */
async function inspectInput(place: Place, asJson: boolean): Promise<boolean> {
  const command = running();
  const { stdout } = command.io;
  const width = (stdout.isTTY ? stdout.columns : undefined) ?? Number.POSITIVE_INFINITY;
  let allCanExist = true;
  const tell = async (asked: Promise<InspectAnswer>): Promise<void> => {
    const answer = await asked;
    allCanExist &&= canExist(answer);
    const text = asJson ? jsonLine(answer) : tableRow(answer, width);
    await command.write(`${text}\n`);
  };
  if (!asJson) print(tableHead(width));
  const telling: Promise<void>[] = [];
  let last = Promise.resolve();
  for await (const line of inputLines()) {
    const text = line.trim();
    if (text === "") continue;
    if (telling.length === ASKED_AT_ONCE) await telling.shift();
    const asked = inspectText({ ...place, withNeighbours: false }, text);
    last = last.then(() => tell(asked));
    // Whoever fails is heard at its turn.
    for (const promise of [asked, last]) promise.catch(() => {});
    telling.push(last);
  }
  await last;
  return allCanExist;
}
