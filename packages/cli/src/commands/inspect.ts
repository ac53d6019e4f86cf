/** `inspect`: what a call number is, and who made it. */
import { canExist, inspectMalformed } from "@callnumber/coordinator/operator";
import { escapeForTerminal } from "@callnumber/coordinator/text";
import { callNumberIn } from "@callnumber/protocol/call-number-in";
import { CallNumberError, decodeCallNumber } from "@callnumber/protocol/codec";
import { inspectResponseSchema } from "@callnumber/protocol/schemas";
import { type CallNumberHint, type InspectResponse, pathOf } from "@callnumber/protocol/wire";
import { Command } from "commander";
import { running } from "../command-io.js";
import { inputLines } from "../input.js";
import { addOptions, type CoordinatorOptions, coordinatorOptions, namespaceOption } from "../options.js";
import { escapeFields, formatLabels, formatTime, jsonLine, print, printJson } from "../output.js";
import { RequestError, requestJson } from "../requests.js";

interface Options extends CoordinatorOptions {
  readonly namespace: string;
  readonly json?: boolean;
  readonly neighbors?: boolean;
}

/** Requests in flight for standard input. A coordinator allows a client four times as many, so that the token can read meanwhile. */
const CONCURRENT_REQUESTS = 4;

export function inspectCommand(): Command {
  const command = new Command("inspect")
    .summary("what is this call number, and who made it?")
    .description(
      "Asks the coordinator about call numbers, or the addresses of pages that end with one. For what can't be a number of a " +
        "message it says what it may have been meant for. The exit code is 1 when one of them can't be in an archive.",
    )
    .argument("<callnumber...>", "call numbers or URLs, or - to read them from standard input, one a line")
    .option("--neighbors", "Show the leases that the same process got before and after")
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber inspect 2VznWE2i\n  $ callnumber inspect https://lists.example.org/message/2VznWE2i\n" +
        "  $ callnumber inspect --json - < numbers.txt     one line of JSON for each",
    )
    .action(async (texts: readonly string[], { json = false, neighbors = false, ...place }: Options) => {
      const isBatch = texts.length === 1 && texts[0] === "-";
      const allCanExist = isBatch ? await inspectInput(place, json) : await inspectEach(place, texts, json, neighbors);
      if (!allCanExist) running().exitCode = 1;
    });
  return addOptions(command, [...coordinatorOptions(), namespaceOption()]);
}

type Place = Omit<Options, "json" | "neighbors">;

/** Resolves to whether all of them can exist. */
async function inspectEach(
  place: Place,
  texts: readonly string[],
  asJson: boolean,
  withNeighbors: boolean,
): Promise<boolean> {
  const answers: InspectResponse[] = [];
  for (const text of texts) answers.push(await inspectText(place, text, { withNeighbors }));
  if (asJson) printJson(answers);
  else for (const answer of answers) print(formatInspection(answer));
  return answers.every(canExist);
}

/** Prints in the order of the lines. White space around a text is ignored. Resolves to whether all of them can exist. */
async function inspectInput(place: Place, asJson: boolean): Promise<boolean> {
  const command = running();
  let allCanExist = true;
  const write = async (requested: Promise<InspectResponse>): Promise<void> => {
    const answer = await requested;
    allCanExist &&= canExist(answer);
    await command.write(`${asJson ? jsonLine(answer) : tableRow(answer)}\n`);
  };
  if (!asJson) print(row(HEADINGS));
  const written: Promise<void>[] = [];
  let last = Promise.resolve();
  for await (const line of inputLines()) {
    const text = line.trim();
    if (text === "") continue;
    if (written.length === CONCURRENT_REQUESTS) await written.shift();
    const requested = inspectText(place, text, { withNeighbors: false });
    last = last.then(() => write(requested));
    // A failure is thrown at its turn.
    for (const promise of [requested, last]) promise.catch(() => {});
    written.push(last);
  }
  await last;
  return allCanExist;
}

/** The coordinator's router accepts no longer text. */
const ESCAPED_LENGTH_MAX = 256;
/** What a path resolves away, however it is escaped. */
const NO_SEGMENTS: ReadonlySet<string> = new Set(["", ".", ".."]);

/**
 * Inspects a text, or the URL of a page. A text that is no call number is malformed also without a coordinator, only without hints.
 * @throws RequestError for a call number.
 */
async function inspectText(
  place: Place,
  text: string,
  { withNeighbors }: { readonly withNeighbors: boolean },
): Promise<InspectResponse> {
  const { namespace } = place;
  const callNumber = callNumberIn(text) ?? text;
  const request = () => {
    const query = withNeighbors ? "?neighbors=yes" : "";
    return requestJson(place, pathOf("callNumber", { namespace, callNumber }) + query, inspectResponseSchema);
  };
  const problem = problemOf(callNumber);
  if (problem === undefined) return await request();
  const malformed = inspectMalformed({ namespace, callNumber }, problem, []);
  if (!fitsPath(callNumber)) return malformed;
  try {
    return await request();
  } catch (error) {
    if (error instanceof RequestError) return malformed;
    throw error;
  }
}

function problemOf(callNumber: string): CallNumberError | undefined {
  try {
    decodeCallNumber(callNumber);
    return undefined;
  } catch (error) {
    if (error instanceof CallNumberError) return error;
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

/** Returns several lines. */
function formatInspection(given: InspectResponse): string {
  const answer = escaped(given);
  const lines = [
    `${escapeForTerminal(answer.callNumber)}  ${answer.verdict.replaceAll("_", " ")}: ${answer.explanation}`,
  ];
  if (answer.verdict === "malformed" && answer.position !== null) {
    lines.push(`${" ".repeat(escapeForTerminal(answer.callNumber.slice(0, answer.position)).length)}^`);
  }
  if ("run" in answer) lines.push(`  version ${answer.version}, run ${answer.run}, sequence ${answer.sequence}`);
  if ("hints" in answer) lines.push(...answer.hints.map((hint) => `  ${formatHint(hint)}`));
  if ("lease" in answer) {
    const { lease, neighbors } = answer;
    const labels = formatLabels(lease.holder);
    if (labels !== "") lines.push(`  labels ${labels}`);
    const byToken = lease.tokenId === undefined ? "" : `, by token ${lease.tokenId}`;
    lines.push(`  leased by coordinator ${lease.coordinator}${byToken}`);
    if (neighbors !== null) lines.push(`  ${neighbors.explanation}`);
  }
  return lines.join("\n");
}

function tableRow(given: InspectResponse): string {
  const answer = escaped(given);
  return row({
    text: escapeForTerminal(answer.callNumber),
    verdict: answer.verdict.replaceAll("_", " "),
    run: "run" in answer ? String(answer.run) : "",
    sequence: "sequence" in answer ? String(answer.sequence) : "",
    time: "lease" in answer ? formatTime(answer.lease.leasedAtMs).replace(/\.\d+Z$/, "Z") : "",
    who: holderOrReason(answer),
  });
}

function holderOrReason(answer: InspectResponse): string {
  if ("lease" in answer) {
    const { name, host, pid } = answer.lease.holder;
    return `${name} on ${host}, pid ${pid} ${formatLabels(answer.lease.holder)}`;
  }
  const [hint] = "hints" in answer ? answer.hints : [];
  return hint === undefined ? answer.explanation : formatHint(hint);
}

function formatHint({ callNumber, slip, positions, holder, verdict }: CallNumberHint): string {
  const places = positions.map((position) => position + 1).join(", ");
  const where = places === "" ? "" : ` (${positions.length === 1 ? "character" : "characters"} ${places})`;
  return `perhaps ${callNumber}: ${SLIPS[slip]}${where}; leased to ${holder}, ${verdict}`;
}

/** Rows have fixed widths: a million of them need no memory. */
function row({ text, verdict, run, sequence, time, who }: Readonly<Record<keyof typeof HEADINGS, string>>): string {
  const shortText = text.length <= TEXT_WIDTH ? text : `${text.slice(0, TEXT_WIDTH - 1)}…`;
  const cells = [shortText.padEnd(TEXT_WIDTH), verdict.padEnd(13), run.padStart(10), sequence.padStart(5)];
  return [...cells, time.padEnd(TIME_WIDTH), who].join("  ").trimEnd();
}

/** Keeps the call number as it was typed: positions count its own characters. */
function escaped(answer: InspectResponse): InspectResponse {
  return { ...escapeFields(answer), callNumber: answer.callNumber };
}
