/** Builds a scheme from its declaration: the one place where layout, spellings, minting, reading and facts meet. */
import type { Declaration } from "./declaration.js";
import { factsOf } from "./facts-of.js";
import { greatestOf, joined, placedFields } from "./layout.js";
import { minterOf } from "./minting.js";
import { readerOf } from "./reading.js";
import type { Scheme, Spelling, Values } from "./scheme.js";
import { SchemeError } from "./scheme-error.js";

export function defineScheme(declaration: Declaration): Scheme {
  const { name, title, fields, spellings, adjust = (values) => values } = declaration;
  const placed = placedFields(fields);
  const greatest = declaration.greatest ?? greatestOf(placed);
  const shuffled = declaration.shuffle?.shuffled ?? ((number) => number);
  const mintStep = minterOf(name, fields);
  const [today] = spellings as [Declaration["spellings"][number]];

  const numberOf = (values: Values): bigint => {
    const number = shuffled(joined(placed, values));
    if (number <= greatest) return number;
    throw new RangeError(`${number} is beyond the greatest number, ${greatest}`);
  };

  return {
    name,
    title,
    fields,
    mint: (context) => {
      const step = mintStep(context);
      if (step.outcome === "wait") return step;
      const values = adjust(step.values);
      const number = shuffled(joined(placed, values));
      if (number <= greatest) return { outcome: "minted", text: today.write(number) as string, values };
      throw new SchemeError("space_used_up", `${number} is beyond the greatest number, ${greatest}`);
    },
    parse: readerOf(declaration, placed, greatest),
    format: (values) => today.write(numberOf(values)) as string,
    spellings: (values) => {
      const number = numberOf(values);
      return spellings.flatMap(({ name, write }): Spelling[] => {
        const text = write(number);
        return text === undefined ? [] : [{ name, text }];
      });
    },
    facts: factsOf(declaration, greatest),
  };
}
