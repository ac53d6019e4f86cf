/** The scheme that somebody named. */
import type { Scheme } from "@callnumber/schemes";
import { quoted } from "../../shown-text.js";
import { similarNames } from "../similar-names.js";

/** @throws RangeError with the names that are near, or with all. */
export function schemeOf(name: string, schemes: readonly Scheme[]): Scheme {
  const found = schemes.find((scheme) => scheme.name === name.toLowerCase());
  if (found !== undefined) return found;
  const names = schemes.map((scheme) => scheme.name);
  const near = similarNames(name, names);
  const meant = near.length === 0 ? "" : `Did you mean ${near.join(" or ")}?\n`;
  throw new RangeError(`there is no scheme ${quoted(name)}. ${meant}The schemes are ${names.join(", ")}`);
}
