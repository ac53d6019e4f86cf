/** `inspect`: what a call number is, and who made it. */
import { canExist, inspectMalformed } from "@callnumber/coordinator/internal";
import { escapeForTerminal } from "@callnumber/coordinator/internal/text";
import { callNumberIn, pathOf, UnclearTextError } from "@callnumber/protocol/api";
import { CallNumberError, decodeCallNumber } from "@callnumber/protocol/codec";
import { type CallNumberHint, type InspectResponse, inspectResponseSchema } from "@callnumber/protocol/schemas";
import { Command } from "commander";
import { inputLines } from "../input.js";
import { invocation } from "../invocation.js";
import { addOptions, coordinatorOptions, type NamespaceOptions, namespaceOption } from "../options.js";
import { escapeFields, formatLabels, jsonLine, print, printJson } from "../output.js";
import { RequestError, requestJson } from "../requests.js";

interface Options extends NamespaceOptions {
  readonly neighbors?: boolean;
}

/** Requests in flight for standard input. A coordinator allows a client four times as many, so that the token can read meanwhile. */
const CONCURRENT_REQUESTS = 4;

export function makeCommand(): Command {
  const command = new Command("inspect")
    .description(
      "Asks the coordinator about call numbers, also in links and sentences that have one. Suggests which number a text may have been " +
        "meant for that can't be one of a message. The exit code is 1 when one of them can't be in an archive.",
    )
    .argument("<callnumber...>", "call numbers or links, or - to read them from standard input, one a line")
    .option("--neighbors", "show the leases that the same process got before and after")
    .addHelpText(
      "after",
      "\nExamples:\n  $ callnumber inspect 2VznWE2i\n  $ callnumber inspect https://lists.example.org/message/2VznWE2i\n" +
        "  $ callnumber inspect --json - < numbers.txt     one line of JSON for each",
    )
    .action(async (texts: readonly string[], options: Options) => {
      const isBatch = texts.length === 1 && texts[0] === "-";
      const allCanExist = isBatch ? await inspectInput(options) : await inspectEach(options, texts);
      if (!allCanExist) invocation().exitCode = 1;
    });
  return addOptions(command, [...coordinatorOptions(), namespaceOption()]);
}

/** Resolves to whether all of them can exist. */
async function inspectEach(options: Options, texts: readonly string[]): Promise<boolean> {
  const inspected: InspectResponse[] = [];
  for (const text of texts) inspected.push(await inspectText(options, text));
  if (options.json) printJson(inspected);
  else for (const one of inspected) print(formatInspection(one));
  return inspected.every(canExist);
}

/** Prints one line for each, in the order of the lines. White space around a text is ignored. Resolves to whether all of them can exist. */
async function inspectInput(options: Options): Promise<boolean> {
  const command = invocation();
  let allCanExist = true;
  const write = async (requested: Promise<InspectResponse>): Promise<void> => {
    const inspected = await requested;
    allCanExist &&= canExist(inspected);
    await command.write(`${options.json ? jsonLine(inspected) : headline(inspected)}\n`);
  };
  const written: Promise<void>[] = [];
  let last = Promise.resolve();
  for await (const line of inputLines()) {
    const text = line.trim();
    if (text === "") continue;
    if (written.length === CONCURRENT_REQUESTS) await written.shift();
    const requested = inspectText(options, text);
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
 * Inspects the call number in a text. A text without one is malformed also without a coordinator, only without hints; so is one with
 * several, which are listed.
 * @throws RequestError for a call number.
 */
async function inspectText({ neighbors, ...options }: Options, text: string): Promise<InspectResponse> {
  const { namespace } = options;
  let callNumber = text;
  const request = () => {
    const query = neighbors ? "?neighbors=yes" : "";
    return requestJson(options, pathOf("callNumber", { namespace, callNumber }) + query, inspectResponseSchema);
  };
  try {
    callNumber = callNumberIn(text) ?? text;
    decodeCallNumber(callNumber);
  } catch (problem) {
    if (!(problem instanceof CallNumberError)) throw problem;
    const malformed = inspectMalformed({ namespace, callNumber }, problem, []);
    if (problem instanceof UnclearTextError || !fitsPath(callNumber)) return malformed;
    return await request().catch((error: unknown) => {
      if (error instanceof RequestError) return malformed;
      throw error;
    });
  }
  return await request();
}

function fitsPath(text: string): boolean {
  try {
    return !NO_SEGMENTS.has(text) && encodeURIComponent(text).length <= ESCAPED_LENGTH_MAX;
  } catch {
    // Half a character.
    return false;
  }
}

const SLIPS: Readonly<Record<CallNumberHint["slip"], string>> = {
  surrounding: "without the text around it",
  look_alike: "a similar character",
  case: "in another case",
};

function headline({ callNumber, verdict, explanation }: InspectResponse): string {
  const [text, why] = [callNumber, explanation].map(escapeForTerminal);
  return `${text}  ${verdict.replaceAll("_", " ")}: ${why}`;
}

/** Returns several lines. */
function formatInspection(inspected: InspectResponse): string {
  const { callNumber } = inspected;
  const escaped = escapeFields(inspected);
  const lines = [headline(inspected)];
  if (escaped.verdict === "malformed" && escaped.position !== null) {
    // The position counts characters that are not escaped.
    lines.push(`${" ".repeat(escapeForTerminal(callNumber.slice(0, escaped.position)).length)}^`);
  }
  if ("run" in escaped) lines.push(`  version ${escaped.version}, run ${escaped.run}, sequence ${escaped.sequence}`);
  if ("hints" in escaped) lines.push(...escaped.hints.map((hint) => `  ${formatHint(hint)}`));
  if ("lease" in escaped) {
    const { lease, neighbors } = escaped;
    const labels = formatLabels(lease.holder);
    if (labels !== "") lines.push(`  labels ${labels}`);
    const byToken = lease.tokenId === undefined ? "" : `, by token ${lease.tokenId}`;
    lines.push(`  leased by coordinator ${lease.coordinator}${byToken}`);
    if (neighbors !== null) lines.push(`  ${neighbors.explanation}`);
  }
  return lines.join("\n");
}

function formatHint({ callNumber, slip, positions, holder, verdict }: CallNumberHint): string {
  const places = positions.map((position) => position + 1).join(", ");
  const where = places === "" ? "" : ` (${positions.length === 1 ? "character" : "characters"} ${places})`;
  return `perhaps ${callNumber}: ${SLIPS[slip]}${where}; leased to ${holder}, ${verdict}`;
}
