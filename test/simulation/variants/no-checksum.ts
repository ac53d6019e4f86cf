/** What the simulation must catch: a record that was edited by hand is believed. */
import { checksumOf, decide } from "../product.js";
import type { Variant } from "./variant.js";

/** The record without its checksum: whatever somebody wrote into one field is believed. */
export const NO_CHECKSUM: Variant = {
  name: "no-checksum",
  fault: "a record that was edited by hand is believed",
  breaks: "no run is leased twice",
  focus: { kinds: ["lease", "moment", "edit"], setting: { serverCount: 1, isOnLine: false } },
  decide(situation, command) {
    const { keys } = situation;
    const fields = { ...keys.fields, k: checksumOf(keys.fields) };
    return decide({ ...situation, keys: { ...keys, fields } }, command);
  },
};
