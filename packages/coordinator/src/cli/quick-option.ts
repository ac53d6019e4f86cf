/**
 * Options of the commands that need no coordinator, and start at once: no schema library is loaded for them.
 */
import { InvalidArgumentError, Option } from "commander";

/** `read` throws a RangeError whose message ends the sentence "is invalid". A flag that may be given again gets what came before. */
export function quickOption<T>(flags: string, description: string, read: (text: string, before?: T) => T): Option {
  return new Option(flags, description).argParser<T>((text, before) => {
    try {
      return read(text, before);
    } catch (error) {
      if (error instanceof RangeError) throw new InvalidArgumentError(error.message);
      throw error;
    }
  });
}

/** Digits, in groups where that helps: `30000`, `30,000`, `30_000`. @throws RangeError */
export function wholeNumberIn(min: number, max: number): (text: string) => number {
  return (text) => {
    const digits = text.replace(/(?<=\d)[_,](?=\d)/g, "");
    const value = /^\d{1,16}$/.test(digits) ? Number(digits) : Number.NaN;
    if (value >= min && value <= max) return value;
    throw new RangeError(`must be a whole number from ${min} to ${max.toLocaleString("en-US")}`);
  };
}
