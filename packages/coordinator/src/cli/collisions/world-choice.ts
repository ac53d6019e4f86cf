/** The world that somebody named. */
import { WORLDS, type World } from "@callnumber/schemes/collisions";
import { quoted } from "../../shown-text.js";
import { similarNames } from "../similar-names.js";

/** @throws RangeError with the names that are near, and with all. */
export function worldOf(name: string): World {
  const found = WORLDS.find((world) => world.name === name.toLowerCase());
  if (found !== undefined) return found;
  const names = WORLDS.map((world) => world.name);
  const near = similarNames(name, names);
  const meant = near.length === 0 ? "" : `Did you mean ${near.join(" or ")}?\n`;
  throw new RangeError(`there is no world ${quoted(name)}. ${meant}The worlds are ${names.join(", ")}`);
}
