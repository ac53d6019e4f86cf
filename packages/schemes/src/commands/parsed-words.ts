/** What `parse` says of one text: in full for one that was asked, as a line for one of many, as JSON for programs. */
import type { Reading, Scheme, Values } from "../index.js";
import type { Candidate } from "./candidates.js";
import { fieldDigits } from "./field-words.js";
import { instant } from "./figures.js";
import { broken, labelled } from "./sentences.js";

/** `text`: the number as it was found. `width`: of a line. */
export function candidatesInFull(text: string, candidates: readonly Candidate[], width: number): string {
  const [likeliest, ...others] = candidates;
  if (likeliest === undefined) return "";
  const { scheme, reading, doubt } = likeliest;
  const fields: Rows = scheme.fields.map(({ name }) => [name, String(reading.values[name])]);
  const time: Rows = reading.timeMs === undefined ? [] : [["made at", timeInWords(reading.timeMs)]];
  const spellings: Rows = scheme.spellings(reading.values).map(({ name, text: spelt }) => [name, spelt]);
  return [
    `${text}  ${others.length === 0 ? "is a number of" : "is most likely a number of"} ${scheme.name}`,
    ...broken(scheme.title, width - 2).map((line) => `  ${line}`),
    ...(doubt === "" ? [] : [`  but ${doubt}`]),
    "",
    ...labelled([...fields, ...time, ...Object.entries(reading.notes)], width),
    "",
    ...fieldDigits(scheme, reading.values, width),
    "",
    ...labelled(spellings, width),
    ...othersInWords(others, width),
  ].join("\n");
}

/** Those that can hardly be are named only: a small number is one of every scheme on its first day. */
function othersInWords(others: readonly Candidate[], width: number): readonly string[] {
  const likely = others.filter(({ doubt }) => doubt === "");
  const unlikely = [...new Set(others.filter(({ doubt }) => doubt !== "").map(({ scheme }) => scheme.name))];
  return [
    ...(likely.length === 0 ? [] : ["", "Could also be a number of", ...labelled(likely.map(otherInWords), width)]),
    ...(unlikely.length === 0
      ? []
      : ["", ...broken(`Hardly, by its time or version, of ${unlikely.join(", ")} (--scheme tells)`, width)]),
  ];
}

type Rows = readonly (readonly [label: string, text: string])[];

/** Five columns with tabs between them: the text, its likeliest scheme, the fields, the time, the other schemes. */
export function candidatesAsLine(text: string, candidates: readonly Candidate[]): string {
  const [likeliest, ...others] = candidates;
  if (likeliest === undefined) return "";
  const { scheme, reading } = likeliest;
  const fields = fieldsInALine(scheme, reading);
  const time = reading.timeMs === undefined ? "" : timeInWords(reading.timeMs);
  const names = new Set(others.map((other) => other.scheme.name).filter((name) => name !== scheme.name));
  return [text, scheme.name, fields, time, [...names].join(" ")].join("\t");
}

/** Integers beyond 2^53 are strings, as everywhere in JSON. */
export function candidatesAsJson(text: string, candidates: readonly Candidate[]): object {
  return {
    text,
    schemes: candidates.map(({ scheme, reading, isPlausible, doubt, isToday }) => ({
      scheme: scheme.name,
      plausible: isPlausible ?? null,
      doubt: doubt === "" ? null : doubt,
      spelling: reading.spelling,
      writtenAsToday: isToday,
      number: String(reading.number),
      fields: valuesAsJson(reading.values),
      timeMs: reading.timeMs ?? null,
      notes: reading.notes,
      spellings: spellingsAsJson(scheme, reading.values),
    })),
  };
}

export function valuesAsJson(values: Values): Readonly<Record<string, number | string>> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [name, typeof value === "bigint" ? String(value) : value]),
  );
}

export function spellingsAsJson(scheme: Scheme, values: Values): Readonly<Record<string, string>> {
  return Object.fromEntries(scheme.spellings(values).map(({ name, text }) => [name, text]));
}

function otherInWords({ scheme, reading, isPlausible, isToday }: Candidate): readonly [string, string] {
  const spelling = isToday
    ? ""
    : `${`as ${reading.spelling}`.replace(/^as as /, "as ")} ${fieldsInALine(scheme, reading)}`;
  const time = reading.timeMs === undefined ? "" : `made at ${timeInWords(reading.timeMs)}`;
  const unchecked = isPlausible === undefined ? "nothing in it can be checked" : "";
  return [scheme.name, [spelling, time, unchecked].filter((text) => text !== "").join("; ") || scheme.title];
}

function fieldsInALine({ fields }: Scheme, { values }: Reading): string {
  return fields.map(({ name }) => `${name}=${values[name]}`).join(" ");
}

/** A clock field of many bits reaches beyond what a `Date` can be. */
function timeInWords(timeMs: number): string {
  return Number.isNaN(new Date(timeMs).getTime()) ? `${timeMs} ms since 1970` : instant(timeMs);
}
