/** An answer of a coordinator, as people may be shown it: each text of it in one line, and without what acts on a terminal. */
import { escapeForTerminal } from "../text.js";

/** For words; programs are given it as it came. Names of fields are ours, those of labels were checked. */
export function shownFields<T>(value: T): T {
  return shownValue(value) as T;
}

function shownValue(value: unknown): unknown {
  if (typeof value === "string") return escapeForTerminal(value);
  if (Array.isArray(value)) return value.map(shownValue);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, shownValue(field)]));
}
