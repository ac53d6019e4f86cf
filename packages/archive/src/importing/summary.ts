/** What an import did, and what the archive has afterwards: as data for `--json`, and as text for people. */
import { NOTHING_STORED } from "../archive/archive.js";
import type { SameContent } from "../archive/same-messages.js";
import type { ErrorDetails } from "../errors.js";
import type { Relation, SameRule } from "../message/sameness.js";
import type { Problem, ScannedSource } from "../sources/source.js";
import { grouped, printable, quantity } from "../terminal.js";

/** `complete`: every message of every source was read · `stopped`: by a signal · `failed`: by an error. */
type Outcome = "complete" | "stopped" | "failed";

/** Filled while the import goes on. */
export interface Summary {
  outcome: Outcome;
  error: ErrorDetails | null;
  archive: string;
  /** The file of numbers that was kept; null without one. */
  numbersFile: string | null;
  coordinator: string;
  namespace: string;
  /**
   * Messages of this import. `notStored` are listed among the problems. `sameContent`: their bytes were stored before from
   * another place; of these, those that got a number are among `stored`, too.
   */
  messages: { stored: number; alreadyThere: number; sameContent: number; notStored: number };
  sameContent: SameContent;
  /** Those of `messages.sameContent`, by the strongest rule that matched. */
  copies: Record<SameRule, number>;
  /** Of the stored messages, how many have the Message-ID of an earlier one, by how they are related. */
  relations: Record<Relation, number>;
  /** Of the stored messages, how many got the number that they had before, from the file of numbers. */
  restored: number;
  runsLeased: number;
  processes: number;
  seconds: number;
  /** How many messages the archive has in the end; null when it could not be opened. */
  archiveHolds: number | null;
  /** The store that the archive's numbers come from; null before the first one. */
  storeId: string | null;
  sources: ScannedSource[];
  problemCount: number;
  /** The first `PROBLEM_COUNT_MAX`; those of stored messages are also in the column `problem`. */
  problems: Problem[];
}

/** A summary must fit in memory whatever the sources contain. */
export const PROBLEM_COUNT_MAX = 10_000;
const SHOWN_PROBLEM_COUNT_MAX = 20;

/** Returns the summary of an import that has done nothing yet. */
export function emptySummary(
  settings: Pick<Summary, "archive" | "coordinator" | "namespace" | "sameContent"> & {
    readonly numbersFile?: string | undefined;
  },
): Summary {
  const { archive, numbersFile = null, coordinator, namespace, sameContent } = settings;
  return {
    outcome: "complete",
    error: null,
    archive,
    numbersFile,
    coordinator,
    namespace,
    messages: { stored: 0, alreadyThere: 0, sameContent: 0, notStored: 0 },
    sameContent,
    copies: { ...NOTHING_STORED.copies },
    relations: { ...NOTHING_STORED.relations },
    restored: 0,
    runsLeased: 0,
    processes: 0,
    seconds: 0,
    archiveHolds: null,
    storeId: null,
    sources: [],
    problemCount: 0,
    problems: [],
  };
}

const HEADINGS: Readonly<Record<Outcome, string>> = {
  complete: "Imported into",
  stopped: "Stopped before the end of the import into",
  failed: "Failed before the end of the import into",
};

/** Formats the summary for a terminal. */
export function summaryText(summary: Summary): string {
  const { outcome, archive, numbersFile, messages, sources } = summary;
  const { runsLeased, processes, seconds, archiveHolds, storeId, namespace } = summary;
  const rows: [name: string, value: string][] = [
    ["stored now", quantity(messages.stored, "message")],
    ...(summary.restored > 0
      ? [["with its old number", quantity(summary.restored, "message")] as [string, string]]
      : []),
    ["already there", quantity(messages.alreadyThere, "message")],
    ["runs leased", String(runsLeased)],
    ["time", `${seconds.toFixed(1)} s with ${quantity(processes, "process", "processes")}`],
  ];
  const skipped = summary.sameContent === "skip" ? messages.sameContent : 0;
  const read = messages.stored + messages.alreadyThere + skipped;
  // The time of a failure is that of its cause.
  if (outcome !== "failed" && read > 0) rows.push(["read a second", rateText(read / seconds)]);
  rows.push(["archive holds", quantity(archiveHolds ?? 0, "message")]);
  rows.push([
    "file of numbers",
    numbersFile === null ? "none: see --numbers, without it a lost archive ends all links" : printable(numbersFile),
  ]);
  if (messages.notStored > 0) rows.push(["NOT stored", `${quantity(messages.notStored, "part")}: see the problems`]);
  if (storeId !== null) rows.push(["numbered by", printable(`store ${storeId}, namespace ${namespace}`)]);
  return [
    `${HEADINGS[outcome]} ${printable(archive)}`,
    ...rows.map(([name, value]) => `  ${name.padEnd(20)}${value}`),
    ...sameContentLines(summary),
    ...(sources.length === 0 ? [] : ["", "Sources", ...sources.map(sourceLine)]),
    ...problemLines(summary),
  ].join("\n");
}

function rateText(perSecond: number): string {
  const rate = Number(perSecond.toPrecision(3));
  return `${Number.isInteger(rate) ? grouped(rate) : rate} ${rate === 1 ? "message" : "messages"}`;
}

const RULE_TEXTS: Readonly<Record<SameRule, string>> = {
  "separator-and-bytes": "exactly the same bytes",
  bytes: "the same bytes, another separator",
  "message-id-and-bytes": "the same message, other marks of a store or reader",
  "message-id-and-body": "the same Message-ID and body, another header",
};
const RELATION_TEXTS: Readonly<Record<Relation, string>> = {
  "cross-posted": "cross-posted to another list",
  redelivered: "the same body with another header",
  "footer-added": "the same text with something added",
  "other-content": "other content",
};

function sameContentLines({ messages: { sameContent: count }, sameContent, copies, relations }: Summary): string[] {
  const outcome = sameContent === "skip" ? "skipped: the message has" : "numbered again: the message had";
  const related = Object.values(relations).reduce((sum, value) => sum + value, 0);
  return [
    ...(count === 0
      ? []
      : ["", `${quantity(count, "message")} ${outcome} a number already`, ...rows(copies, RULE_TEXTS)]),
    ...(count === 0 || sameContent === "number" ? [] : ["  List them: select * from copies"]),
    ...(related === 0 ? [] : ["", `${quantity(related, "message")} stored with the Message-ID of an earlier one`]),
    ...(related === 0 ? [] : [...rows(relations, RELATION_TEXTS), "  List them: select * from relations"]),
  ];
}

function rows<T extends string>(found: Readonly<Record<T, number>>, texts: Readonly<Record<T, string>>): string[] {
  const names = (Object.keys(texts) as T[]).filter((name) => found[name] > 0);
  return names.map((name) => `  ${grouped(found[name]).padStart(7)}  ${texts[name]}`);
}

function sourceLine({ path, messages, notices }: ScannedSource): string {
  return `  ${[`${printable(path)}: ${quantity(messages, "message")}`, ...notices.map((text) => printable(text))].join("; ")}`;
}

function problemLines({ problems, problemCount }: Summary): string[] {
  if (problemCount === 0) return [];
  const lines = problems.slice(0, SHOWN_PROBLEM_COUNT_MAX).map((problem) => {
    const { source, number, byteOffset, reason, stored, isNoMail } = problem;
    const place = number > 0 ? `, message ${number}, byte ${byteOffset}` : "";
    return `  ${printable(source)}${place}: ${printable(reason)}${stored || isNoMail ? "" : " (NOT stored)"}`;
  });
  const hidden = problemCount - lines.length;
  if (hidden > 0) lines.push(`  and ${hidden} more: see --json, or the column problem of the archive`);
  return ["", `Problems: ${problemCount}`, ...lines];
}
