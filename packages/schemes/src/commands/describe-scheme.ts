/** Describes one scheme in full: its fields, a sample, and its facts for one load in sentences. */
import { chanceOfRepeat } from "../birthday.js";
import type { Load } from "../chances.js";
import { COORDINATIONS, type Facts, type Failure, ORDERS, REVEALED } from "../facts.js";
import {
  type Field,
  fieldsOfKind,
  fieldsSharing,
  NODE_SOURCES,
  nodeSourcesOf,
  SEQUENCE_SCOPES,
  type Source,
  type Values,
} from "../fields.js";
import type { Scheme } from "../scheme.js";
import {
  fieldDigits,
  formatChance,
  formatCount,
  formatDay,
  formatLoad,
  formatRate,
  formatSpan,
  formatTime,
  grouped,
  type LabeledRows,
  labeledLines,
  lineWidth,
  wrapped,
} from "./format.js";
import type { SchemesIo } from "./io.js";

/** @param values those of the sample. */
export function schemeInFull(scheme: Scheme, values: Values, load: Load, io: SchemesIo): string {
  const width = lineWidth(io);
  return [
    io.paint("bold", scheme.name),
    ...wrapped(scheme.title, width),
    "",
    ...labeledLines(fieldRows(scheme), width),
    "",
    io.paint("bold", "A sample, field by field, and as it is written"),
    ...fieldDigits(scheme, values, width),
    "",
    ...labeledLines(Object.entries(scheme.encodings(values)), width),
    "",
    io.paint("bold", `At ${formatLoad(load)}`),
    ...labeledLines(factRows(scheme, load), width),
  ].join("\n");
}

/** A row for each field: its name and width, and what fills it. */
function fieldRows({ fields }: Scheme): LabeledRows {
  const nameWidth = Math.max(...fields.map(({ name }) => name.length));
  return fields.map((field) => {
    const sharing = fieldsSharing(fields, field);
    const part = sharing.length === 1 ? "" : `; the ${sharing[0] === field ? "first" : "next"} part of it`;
    return [`${field.name.padEnd(nameWidth)}  ${formatWidth(field)}`, `${sourceText(field.source)}${part}`];
  });
}

function formatWidth({ width }: Field): string {
  const [count, unit] =
    "bits" in width ? [width.bits, "bit"] : "digits" in width ? [width.digits, "digit"] : [width.base62, "character"];
  return `${count} ${unit}${count === 1 ? "" : "s"}`;
}

function sourceText(source: Source): string {
  switch (source.kind) {
    case "fixed":
      return `always ${source.value}`;
    case "clock":
      return `${source.unitMs === 1 ? "milliseconds" : "seconds"} since ${formatTime(source.epochMs)}`;
    case "node":
      return NODE_SOURCES[source.from];
    case "digest":
      return "the first bits of a digest of the content";
    case "remainder":
      return `the last digits of a number drawn below ${grouped(source.drawnBelow)}`;
    case "random":
      if (source.rises) return "drawn for the first number in a unit of the clock, then rises by one";
      return `drawn from ${grouped(source.from)} to ${source.to === undefined ? "the greatest" : grouped(source.to)}`;
    case "sequence":
      return `rises by one from ${source.first === "random" ? "a random value" : source.first} ${SEQUENCE_SCOPES[source.within]}`;
    case "counter":
      return `requested from one central counter, ${source.asked}`;
  }
}

/** A row for each fact. */
function factRows(scheme: Scheme, load: Load): LabeledRows {
  const { facts } = scheme;
  const { bits, characters, order, coordination, reveals, endsMs, failures } = facts;
  const [and, then] = endsMs === undefined ? ["", ""] : [" and the second", " then"];
  const [guessed, neighbor] = [formatChance(facts.guessed(load)), formatChance(facts.neighbor(load))];
  return [
    ["size", `${Number(bits.toFixed(2))} bits: ${formatCount(2 ** bits)} numbers, in ${characters} characters`],
    ["order", ORDERS[order]],
    ["asks for", COORDINATIONS[coordination]],
    ["speed", describeSpeed(facts, load)],
    ["lasts", describeEnd(facts, load)],
    ["a repeat", describeRepeat(facts, load)],
    ["a reader", `learns ${reveals.map((what) => REVEALED[what]).join(", and ")}`],
    ["a guess", `by a person who knows the scheme${and}, but no number; that it was made${then}: ${guessed}`],
    ["another", `named by a person who knows the scheme and one number; that it was made: ${neighbor}`],
    ...failures.map(
      (failure, index) => [index === 0 ? "fails by" : "", describeFailure(failure, scheme, load)] as const,
    ),
  ];
}

function describeSpeed({ perSecond, nodes }: Facts, load: Load): string {
  const most = Number.isFinite(perSecond) ? `at most ${formatCount(perSecond)} a second` : "no bound";
  const from = Number.isFinite(nodes) ? `, from ${formatCount(nodes)} ${nodes === 1 ? "node" : "nodes"} together` : "";
  if (perSecond < load.perSecond) return `${most}${from}: too few for ${formatRate(load.perSecond)}`;
  return `${most}${from}${nodes < load.nodes ? `: too few for ${formatCount(load.nodes)} nodes` : ""}`;
}

function describeEnd({ lastsSeconds, endsMs }: Facts, { perSecond }: Load): string {
  const span = formatSpan(lastsSeconds(perSecond));
  if (endsMs !== undefined) return `its clock lasts until ${formatDay(endsMs)}, ${span} after its first moment`;
  return `at ${formatRate(perSecond)} its numbers are used up after ${span}`;
}

function describeRepeat({ repeats }: Facts, load: Load): string {
  const chance = repeats(load);
  const among = `among ${formatCount(load.perSecond * load.seconds)} numbers`;
  return chance === 0 ? `none ${among}, if it is run as intended` : `${formatChance(chance)} ${among}`;
}

function describeFailure(failure: Failure, scheme: Scheme, load: Load): string {
  const { endsMs, lastsSeconds, coordination } = scheme.facts;
  switch (failure) {
    case "clock goes back":
      return "a clock that goes back: 60 s back, it rejects until the clock is where it was";
    case "two nodes alike":
      return describeNodesAlike(scheme, load);
    case "space used up":
      return endsMs === undefined
        ? `its end, after ${formatSpan(lastsSeconds(load.perSecond))}`
        : `its end: ${formatDay(endsMs)}`;
    case "same content":
      return "the same content twice: both get one number";
    case "birthday":
      return `two draws alike: ${describeRepeat(scheme.facts, load)}`;
    case "counter set back":
      return coordination === "one request for each run"
        ? "a counter that is restored or lost: the guard of the coordinator prevents it"
        : "a counter that is restored or lost: it returns the same numbers again";
  }
}

/** Nodes that derive their number may derive the same one; those that are assigned one may be assigned the same. */
function describeNodesAlike({ fields, facts }: Scheme, { nodes }: Load): string {
  const isDrawn =
    facts.failures.includes("birthday") ||
    fieldsOfKind(fields, "sequence").some(({ source }) => source.first === "random");
  const alike = `two nodes alike: ${isDrawn ? "only chance keeps their numbers apart" : "they generate the same numbers"}`;
  const count = formatCount(facts.nodes);
  if (!nodeSourcesOf(fields).includes("mac hash")) return `${alike}; there are ${count} numbers to assign`;
  const chance = formatChance(chanceOfRepeat(facts.nodes, nodes));
  return `${alike}; of ${formatCount(nodes)} that derive one of ${count} numbers, that two are: ${chance}`;
}
