import { checksumOf, decide } from "../product.js";
/** The record without its checksum: whatever somebody wrote into one field is believed. */
export const NO_CHECKSUM = {
    name: "no-checksum",
    fault: "a record that was edited by hand is believed",
    decide(situation, command) {
        const { keys } = situation;
        const fields = { ...keys.fields, k: checksumOf(keys.fields) };
        return decide({ ...situation, keys: { ...keys, fields } }, command);
    },
};
//# sourceMappingURL=no-checksum.js.map