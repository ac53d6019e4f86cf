/** One scheme, all that there is to tell: fields, a sample in every spelling, each fact in a sentence; or the same as JSON. */
import type { Scheme } from "@callnumber/schemes";
import { paintFor } from "../colours.js";
import { evenChanceAfter } from "./even-chance.js";
import { factSentences } from "./fact-words.js";
import { fieldDigits, filledBy, greatestOf, widthInWords } from "./field-words.js";
import { type Load, loadInWords } from "./load.js";
import { spellingsAsJson, valuesAsJson } from "./parsed-words.js";
import { sampleOf } from "./sample.js";
import { broken, labelled, lineWidth } from "./sentences.js";

export function schemeInFull(scheme: Scheme, load: Load): string {
  const paint = paintFor(false);
  const { values } = sampleOf(scheme);
  return [
    paint("bold", scheme.name),
    ...broken(scheme.title, lineWidth()),
    "",
    ...fieldLines(scheme),
    "",
    paint("bold", "A sample, field by field, and as it is written"),
    ...fieldDigits(scheme, values),
    "",
    ...labelled(scheme.spellings(values).map(({ name, text }) => [name, text] as const)),
    "",
    paint("bold", `At ${loadInWords(load)}`),
    ...labelled(factSentences(scheme, load)),
  ].join("\n");
}

/** What is without a bound is null: JSON has no Infinity. */
export function schemeAsJson(scheme: Scheme, load: Load): object {
  const { name, title, fields, facts } = scheme;
  const { text, values } = sampleOf(scheme);
  return {
    name,
    title,
    fields: fields.map((field) => ({
      name: field.name,
      width: field.width,
      source: field.source,
      greatest: String(greatestOf(field)),
    })),
    bits: facts.bits,
    characters: facts.characters,
    order: facts.order,
    coordination: facts.coordination,
    reveals: facts.reveals,
    nodesMost: bounded(facts.nodes),
    perSecondMost: bounded(facts.perSecond),
    clockEndsMs: facts.endsMs ?? null,
    lastsSeconds: bounded(facts.lastsSeconds(load.perSecond)),
    repeatChance: facts.repeats(load),
    repeatLikelyAfterSeconds: evenChanceAfter(facts, load) ?? null,
    guessChance: facts.guessed(load),
    neighbourChance: facts.neighbour(load),
    failures: facts.failures,
    sample: { text, fields: valuesAsJson(values), spellings: spellingsAsJson(scheme, values) },
  };
}

function fieldLines(scheme: Scheme): readonly string[] {
  const nameWidth = Math.max(...scheme.fields.map(({ name }) => name.length));
  return labelled(
    scheme.fields.map(
      (field) => [`${field.name.padEnd(nameWidth)}  ${widthInWords(field)}`, filledBy(field, scheme)] as const,
    ),
  );
}

function bounded(value: number): number | null {
  return Number.isFinite(value) ? value : null;
}
