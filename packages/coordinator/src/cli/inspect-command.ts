/** `inspect`: what a call number is, and who made it. */
import { callNumberIn } from "@callnumber/protocol/call-number-in";
import { CallNumberError } from "@callnumber/protocol/codec";
import { inspectAnswerSchema } from "@callnumber/protocol/schemas";
import { type CallNumberHint, type InspectAnswer, pathOf } from "@callnumber/protocol/wire";
import { Command } from "commander";
import { callNumberFieldsIn, canExist, inspectMalformed } from "../inspect/verdicts.js";
import { READS_AT_ONCE } from "../limits/concurrency-limits.js";
import { escapeForTerminal, withoutTokens } from "../text.js";
import { askCoordinator } from "./ask-coordinator.js";
import { AskError } from "./ask-error.js";
import { tokenFileOption } from "./bearer-token.js";
import { running } from "./command-io.js";
import { inputLines } from "./input-lines.js";
import { coordinatorOption, namespaceOption } from "./options.js";
import { instant, jsonLine, labelsInWords, print, printJson } from "./print.js";
import { shownFields } from "./shown-fields.js";

interface Options {
  readonly coordinator: string;
  readonly tokenFile?: string | undefined;
  readonly namespace: string;
  readonly json?: boolean;
  readonly neighbors?: boolean;
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
    .option("--neighbors", "Show the leases that the same process got before and after")
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber inspect 2VznWE2i\n  $ callnumber inspect https://lists.example.org/message/2VznWE2i\n" +
        "  $ callnumber inspect --json - < numbers.txt     one line of JSON for each",
    )
    .action(
      async (
        texts: readonly string[],
        { coordinator, tokenFile, namespace, json = false, neighbors = false }: Options,
      ) => {
        const asking = { coordinator, tokenFile, namespace };
        const isBatch = texts.length === 1 && texts[0] === "-";
        const allCanExist = isBatch
          ? await inspectInput(asking, json)
          : await inspectEach({ ...asking, withNeighbours: neighbors }, texts, json);
        if (!allCanExist) running().exitCode = 1;
      },
    );
}

interface Place {
  readonly coordinator: string;
  readonly tokenFile?: string | undefined;
  readonly namespace: string;
}

interface Asking extends Place {
  /** Whether to ask for the leases of the same process before and after. */
  readonly withNeighbours: boolean;
}

/** Answers whether all of them can exist. */
async function inspectEach(asking: Asking, texts: readonly string[], asJson: boolean): Promise<boolean> {
  const answers: InspectAnswer[] = [];
  for (const text of texts) answers.push(await inspectText(asking, text));
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

/** A longer text finds no way into the coordinator. */
const ESCAPED_LENGTH_MAX = 256;
/** What a path resolves away, however it is escaped. */
const NO_SEGMENTS: ReadonlySet<string> = new Set(["", ".", ".."]);

/**
 * What a text, or the URL of a page, stands for. What no call number is spelt like is malformed also when no coordinator
 * answers; then nobody knows what it may have been meant for.
 * @throws AskError for a text that is well spelt.
 */
async function inspectText(asking: Asking, text: string): Promise<InspectAnswer> {
  const { namespace, withNeighbours } = asking;
  // It would go into an address.
  const callNumber = withoutTokens(callNumberIn(text) ?? text);
  const ask = () => {
    const query = withNeighbours ? "?neighbours=yes" : "";
    return askCoordinator(asking, pathOf("callNumber", { namespace, callNumber }) + query, inspectAnswerSchema);
  };
  const fields = callNumberFieldsIn(callNumber);
  if (!(fields instanceof CallNumberError)) return await ask();
  const malformed = inspectMalformed({ namespace, callNumber }, fields, []);
  if (!fitsPath(callNumber)) return malformed;
  try {
    return await ask();
  } catch (error) {
    if (error instanceof AskError) return malformed;
    throw error;
  }
}

function fitsPath(text: string): boolean {
  try {
    return !NO_SEGMENTS.has(text) && encodeURIComponent(text).length <= ESCAPED_LENGTH_MAX;
  } catch {
    // Half a character.
    return false;
  }
}

const TEXT_WIDTH = 12;
const TIME_WIDTH = 20;
/** Where a table is narrower, it tells no times. */
const WIDTH_WITH_TIME = 100;
const HEADINGS = {
  text: "CALL NUMBER",
  verdict: "VERDICT",
  run: "RUN",
  sequence: "SEQ",
  time: "LEASED AT",
  who: "WHO, OR WHY NOT",
};

const SLIPS: Readonly<Record<CallNumberHint["slip"], string>> = {
  surrounding: "without what stands around it",
  look_alike: "a look-alike",
  case: "in another case",
};

/** Several lines. */
function inWords(given: InspectAnswer): string {
  const answer = shownAnswer(given);
  const lines = [
    `${escapeForTerminal(answer.callNumber)}  ${answer.verdict.replaceAll("_", " ")}: ${answer.explanation}`,
  ];
  if (answer.verdict === "malformed" && answer.position !== null) {
    lines.push(`${" ".repeat(escapeForTerminal(answer.callNumber.slice(0, answer.position)).length)}^`);
  }
  if ("run" in answer) lines.push(`  version ${answer.version}, run ${answer.run}, sequence ${answer.sequence}`);
  if ("hints" in answer) lines.push(...answer.hints.map((hint) => `  ${hintInWords(hint)}`));
  if ("lease" in answer) {
    const { lease, neighbours } = answer;
    const labels = labelsInWords(lease.holder);
    if (labels !== "") lines.push(`  labels ${labels}`);
    const byToken = lease.tokenId === undefined ? "" : `, by token ${lease.tokenId}`;
    lines.push(`  leased by coordinator ${lease.coordinator}${byToken}`);
    if (neighbours !== null) lines.push(`  ${neighbours.explanation}`);
  }
  return lines.join("\n");
}

/** Rows of one width each, so that a million of them need no memory. `width`: of the terminal; infinite for none. */
function tableHead(width: number): string {
  return row(HEADINGS, width);
}

function tableRow(given: InspectAnswer, width: number): string {
  const answer = shownAnswer(given);
  const { callNumber, verdict } = answer;
  return row(
    {
      text: escapeForTerminal(callNumber),
      verdict: verdict.replaceAll("_", " "),
      run: "run" in answer ? String(answer.run) : "",
      sequence: "sequence" in answer ? String(answer.sequence) : "",
      time: "lease" in answer ? instant(answer.lease.leasedAtMs).replace(/\.\d+Z$/, "Z") : "",
      who: whoOrWhyNot(answer),
    },
    width,
  );
}

function whoOrWhyNot(answer: InspectAnswer): string {
  if ("lease" in answer) {
    const { name, host, pid } = answer.lease.holder;
    return `${name} on ${host}, pid ${pid} ${labelsInWords(answer.lease.holder)}`;
  }
  const [hint] = "hints" in answer ? answer.hints : [];
  return hint === undefined ? answer.explanation : hintInWords(hint);
}

function hintInWords({ callNumber, slip, positions, holder, verdict }: CallNumberHint): string {
  const places = positions.map((position) => position + 1).join(", ");
  const where = places === "" ? "" : ` (${positions.length === 1 ? "character" : "characters"} ${places})`;
  return `perhaps ${callNumber}: ${SLIPS[slip]}${where}; leased to ${holder}, ${verdict}`;
}

type Cells = Readonly<Record<keyof typeof HEADINGS, string>>;

function row({ text, verdict, run, sequence, time, who }: Cells, width: number): string {
  const cells = [cut(text, TEXT_WIDTH).padEnd(TEXT_WIDTH), verdict.padEnd(13), run.padStart(10), sequence.padStart(5)];
  if (width >= WIDTH_WITH_TIME) cells.push(time.padEnd(TIME_WIDTH));
  return cut([...cells, who].join("  ").trimEnd(), width);
}

function cut(text: string, length: number): string {
  return text.length <= length ? text : `${text.slice(0, length - 1)}…`;
}

/** What was typed stays: a place in it is counted in its own characters. */
function shownAnswer(answer: InspectAnswer): InspectAnswer {
  return { ...shownFields(answer), callNumber: answer.callNumber };
}
