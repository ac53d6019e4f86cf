/** Text of strangers for terminals: quoted, cut short, without characters that do something there. */
import { visible } from "../shown-text.js";

const SHOWN_CHARACTERS_MAX = 40;
const NAMES_SHOWN_MAX = 20;

/** The first of several names that others chose, in the same way. */
export function namesShown(names: readonly string[]): string {
  const more = names.length > NAMES_SHOWN_MAX ? ", …" : "";
  return `${names.slice(0, NAMES_SHOWN_MAX).map(shown).join(", ")}${more}`;
}

export function shown(text: string): string {
  const short = text.length > SHOWN_CHARACTERS_MAX ? `${text.slice(0, SHOWN_CHARACTERS_MAX)}…` : text;
  return visible(JSON.stringify(short));
}
