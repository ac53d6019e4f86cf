/** What `inspect` says of one text: in words for one that was asked, as a row for one of many. */
import type { CallNumberHint, InspectAnswer } from "@callnumber/protocol/wire";
import { visible } from "../shown-text.js";
import { instant, labelsInWords } from "./print.js";
import { shownFields } from "./shown-fields.js";

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
export function inWords(given: InspectAnswer): string {
  const answer = shownAnswer(given);
  const lines = [`${visible(answer.callNumber)}  ${answer.verdict.replaceAll("_", " ")}: ${answer.explanation}`];
  if (answer.verdict === "malformed" && answer.position !== null) {
    lines.push(`${" ".repeat(visible(answer.callNumber.slice(0, answer.position)).length)}^`);
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
export function tableHead(width: number): string {
  return row(HEADINGS, width);
}

export function tableRow(given: InspectAnswer, width: number): string {
  const answer = shownAnswer(given);
  const { callNumber, verdict } = answer;
  return row(
    {
      text: visible(callNumber),
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
