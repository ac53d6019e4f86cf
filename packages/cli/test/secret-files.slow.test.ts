/** Every file with a secret that a command is given, under one rule: what others may read or change is not used, and the message says how to mend it. */
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { callnumber, folderForTest } from "../../../test/processes/command.js";
import { newAuthority } from "../../../test/tls/certificates.js";
import { replaceFile, writeTlsFiles } from "../../../test/tls/files.js";

/** Where nobody answers. */
const NOWHERE = "http://127.0.0.1:1";
const SERVE = ["serve", "--store", "memory:", "--port", "0"];
const TOKEN = `cn_${"A".repeat(43)}`;

let folder: string;

beforeEach(async () => {
  folder = await folderForTest();
});

interface SecretFile {
  /** Makes it, for its owner alone. */
  readonly make: () => string;
  readonly words: (file: string) => readonly string[];
  /** What is said when the file is taken: something else is wrong. */
  readonly taken: RegExp;
}

const certificate = () => writeTlsFiles(folder, newAuthority().issue());

const FILES: Readonly<Record<string, SecretFile>> = {
  "a bearer's token": {
    make: () => replaceFile(join(folder, "me.token"), `${TOKEN}\n`),
    words: (file) => ["status", "--coordinator", NOWHERE, "--token-file", file],
    taken: /coordinator_unreachable/,
  },
  "a minting bearer's token": {
    make: () => replaceFile(join(folder, "me.token"), `${TOKEN}\n`),
    words: (file) => ["next", "--coordinator", NOWHERE, "--token-file", file],
    taken: /no coordinator answers|coordinator_unreachable/,
  },
  "the tokens that are let in": {
    make: () => replaceFile(join(folder, "tokens"), "{}\n"),
    words: (file) => [...SERVE, "--tokens-file", file],
    taken: /line 1/,
  },
  "a store's URL": {
    make: () => replaceFile(join(folder, "store"), "neither:this"),
    words: (file) => ["doctor", "--store-file", file],
    taken: /is no kind of store/,
  },
  "a TLS key": {
    make: () => replaceFile(certificate().key, "no key"),
    words: (file) => [...SERVE, "--tls-key", file, "--tls-certificate", file.replace(/key$/, "crt")],
    taken: /can't be used/,
  },
  "the key for Redis": {
    make: () => replaceFile(join(folder, "redis.key"), "no key"),
    words: (file) => ["doctor", "--store", `rediss://127.0.0.1:1?certificate=${certificate().certificate}&key=${file}`],
    taken: /store_unavailable/,
  },
};

/** Of all modes there are, packages/cli/test/tokens-file.test.ts lists those that the rule allows; here it is seen to be asked. */
describe.each(Object.entries(FILES))("%s", (_, { make, words, taken }) => {
  test("is not used when others may read or change it", async () => {
    for (const mode of [0o604, 0o660]) {
      const file = make();
      chmodSync(file, mode);
      const { code, stdout, stderr } = await callnumber([...words(file)]);
      expect(code, mode.toString(8)).not.toBe(0);
      expect(stderr).toContain(`its mode is 0${mode.toString(8)}`);
      expect(stderr).toContain(`chmod 600 ${file}`);
      expect(stdout + stderr).not.toContain(TOKEN);
    }
  });

  test("is used when only its owner may, and when a group may read it", async () => {
    for (const mode of [0o600, 0o640]) {
      const file = make();
      chmodSync(file, mode);
      const { stderr } = await callnumber([...words(file)]);
      expect(stderr).toMatch(taken);
      expect(stderr).not.toContain("its mode is");
    }
  });
});
