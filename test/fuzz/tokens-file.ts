/** The tokens file, which people edit by hand: it is read, or rejected with a reason, and no token's digest is printed. */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { callnumber, folderForTest } from "../processes/command.js";
import type { FuzzTarget } from "./campaign.js";
import { mutated } from "./mutation.js";

const WORDS = ["\n", "\t", " ", "#", "{}", "null", "lease", "operator", "main", "*", "sha256", "0".repeat(64), "{"];

export const tokensFile: FuzzTarget = {
  name: "tokens-file",
  shortCount: 500,
  async start() {
    const path = join(await folderForTest(), "tokens");
    for (const role of ["lease", "read", "operator"]) {
      await callnumber(["token", "create", "--tokens-file", path, "--role", role, "--namespace", "main"]);
    }
    const valid = readFileSync(path);
    const digests = valid.toString("latin1").match(/[0-9a-f]{64}/g) ?? [];
    assert.equal(digests.length, 3);
    const words = WORDS.map((word) => Buffer.from(word));
    return {
      input: (draw) => mutated(valid, draw, { words }),
      async check(bytes) {
        writeFileSync(path, bytes);
        const { code, stdout, stderr } = await callnumber(["token", "list", "--tokens-file", path, "--json"]);
        if (code === 0) JSON.parse(stdout);
        else assert.notEqual(stderr, "", "the file is rejected without a reason");
        assert.doesNotMatch(stderr, /^\s+at .*:\d+:\d+/m, "a stack was printed");
        for (const digest of digests) assert(!`${stdout}${stderr}`.includes(digest), "a digest was printed");
      },
    };
  },
};
