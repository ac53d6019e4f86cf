/** Takes texts apart: every number that one may stand for, the first of them in the spelling that is used today. */
import type { Declaration } from "./declaration.js";
import { type Placed, split } from "./layout.js";
import type { Parsed, Reading, Values } from "./scheme.js";

/**
 * What `parse` of this declaration is. Never throws, and the reason never repeats the text: it comes from strangers.
 * @param greatest the greatest number of the scheme.
 */
export function readerOf(
  declaration: Declaration,
  placed: readonly Placed[],
  greatest: bigint,
): (text: string) => Parsed {
  const unshuffled = declaration.shuffle?.unshuffled ?? ((number) => number);
  const looks = declaration.spellings.map(({ looksLike }) => looksLike);
  return (text) => {
    const readings = new Map<bigint, Reading>();
    let reason = `it is none of: ${[...new Set(looks)].join("; ")}`;
    for (const rule of declaration.spellings) {
      for (const number of rule.read(text)) {
        if (readings.has(number)) continue;
        if (number > greatest) {
          reason = `as ${rule.name} it is beyond the greatest number, ${rule.write(greatest)}`;
          continue;
        }
        if (rule.write(number) !== text) continue;
        const values = split(placed, unshuffled(number));
        const wrong = wrongField(placed, values);
        if (wrong === undefined) readings.set(number, reading(declaration, number, values, rule.name));
        else reason = wrong;
      }
    }
    const [first, ...otherReadings] = readings.values();
    return first === undefined ? { matches: false, reason } : { matches: true, ...first, otherReadings };
  };
}

function wrongField(placed: readonly Placed[], values: Values): string | undefined {
  for (const { field } of placed) {
    const { name, source } = field;
    if (source.kind !== "fixed" || source.others === "read") continue;
    if (Number(values[name]) !== source.value) return `${name} is ${values[name]}, and ${source.value} in every number`;
  }
  return undefined;
}

function reading(declaration: Declaration, number: bigint, values: Values, spelling: string): Reading {
  const timeMs = (declaration.timeMs ?? timeOfClockField(declaration))(values);
  const notes = declaration.notes?.(values, number) ?? {};
  return { values, number, spelling, ...(timeMs === undefined ? {} : { timeMs }), notes };
}

function timeOfClockField({ fields }: Declaration): (values: Values) => number | undefined {
  for (const { name, source } of fields) {
    if (source.kind === "clock") return (values) => source.epochMs + Number(values[name]) * source.unitMs;
  }
  return () => undefined;
}
