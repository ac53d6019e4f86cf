/** A coordinator that asks for tokens: the importer bears one from a file, and none that it bears is told. */
import { execFileSync } from "node:child_process";
import { chmod, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { LedgerEntry } from "@callnumber/protocol/wire";
import { describe, expect, it } from "vitest";
import { bearerOf } from "../src/importing/bearer.js";
import { callnumber, runImporter, startCoordinator, temporaryFolder } from "./importing.js";

const LETTERS = fileURLToPath(new URL("../sample/letters.mbox", import.meta.url));

describe("an import", () => {
  it("bears the token of a file; without one, or with one for something else, it says what is missing", async () => {
    const folder = await temporaryFolder();
    const tokensFile = join(folder, "tokens");
    const tokenFor = async (role: string) => {
      const file = join(folder, `${role}.token`);
      const create = ["token", "create", "--tokens-file", tokensFile, "--role", role, "--namespace", "main"];
      await writeFile(file, await callnumber(...create), { mode: 0o600 });
      return file;
    };
    const [leaseFile, readFile] = [await tokenFor("lease"), await tokenFor("read")];
    const coordinator = await startCoordinator(`sqlite:${join(folder, "store.db")}`, 0, ["--tokens-file", tokensFile]);
    const options = [
      LETTERS,
      "--archive",
      join(folder, "letters.db"),
      "--coordinator",
      coordinator.url,
      "--processes",
      "2",
    ];

    const without = await runImporter(...options);
    expect(without).toMatchObject({ status: 1, stderr: expect.stringContaining("--token-file") });
    const other = await runImporter(...options, "--token-file", readFile);
    expect(other).toMatchObject({ status: 1, stderr: expect.stringContaining("token for leasing in this namespace") });
    const done = await runImporter(...options, "--token-file", leaseFile);
    expect(done.status).toBe(0);
    expect(done.summary?.messages.stored).toBeGreaterThan(0);

    const asked = ["--coordinator", coordinator.url, "--token-file", readFile, "--json"];
    const [listed, leases] = [
      JSON.parse(await callnumber("token", "list", "--tokens-file", tokensFile, "--json")),
      JSON.parse(await callnumber("runs", ...asked)) as LedgerEntry[],
    ];
    expect(leases.length).toBeGreaterThan(0);
    expect(new Set(leases.map(({ tokenId }) => tokenId))).toEqual(new Set([listed[0].id]));
  });
});

it("repeats no token that stands where a file is named, as JSON or in words", async () => {
  const token = `cn_${"AbCdEfGhIjKlMnOpQrStUvWxYz0123456789-_abcdefg"}`;
  const archive = ["--archive", join(await temporaryFolder(), "a.db"), "--coordinator", "http://127.0.0.1:9"];
  for (const args of [
    [LETTERS, ...archive, "--token-file", token],
    [LETTERS, ...archive, "--token-file", token.slice(0, 30)],
    [token, ...archive],
    [LETTERS, "--archive", `/nonexistent/${token}/a.db`],
    [LETTERS, ...archive, "--namespace", token],
  ]) {
    const { status, summary, stderr } = await runImporter(...args);
    expect(status).not.toBe(0);
    expect(stderr).toContain("cn_(token)");
    expect(stderr).not.toContain(token.slice(0, 12));
    expect(JSON.stringify(summary?.error ?? null)).not.toContain(token.slice(0, 12));
  }
});

describe("the bearer", () => {
  const unusable = expect.objectContaining({ code: "token_unusable" });

  it("reads the file each time, so that a token can be exchanged under a running import", async () => {
    const tokenFile = join(await temporaryFolder(), "token");
    await writeFile(tokenFile, "first\n", { mode: 0o600 });
    const { token } = bearerOf({ token: "other", tokenFile });
    const ask = token as () => string;
    expect(ask()).toBe("first");
    await writeFile(tokenFile, "second");
    expect(ask()).toBe("second");
    await writeFile(tokenFile, "");
    expect(ask).toThrow(unusable);
  });

  it.each(["cn_secret cn_secret", "cn_secret\ncn_secret", "", "Bearer cn_secret"])(
    "refuses what is no token, and does not show it: %j",
    async (text) => {
      const tokenFile = join(await temporaryFolder(), "token");
      await writeFile(tokenFile, text, { mode: 0o600 });
      for (const given of [
        { token: undefined, tokenFile },
        { token: text, tokenFile: undefined },
      ]) {
        let message = "";
        try {
          bearerOf(given);
        } catch (error) {
          expect(error).toEqual(unusable);
          ({ message } = error as Error);
        }
        expect(message).not.toBe("");
        expect(message).not.toContain("cn_secret");
      }
    },
  );

  it("refuses a file that others may read, before anything is asked, and one that becomes so later", async () => {
    const tokenFile = join(await temporaryFolder(), "token");
    await writeFile(tokenFile, "cn_secret", { mode: 0o600 });
    const { token } = bearerOf({ token: undefined, tokenFile });
    for (const mode of [0o644, 0o604, 0o620, 0o660, 0o700]) {
      await chmod(tokenFile, mode);
      for (const ask of [token as () => string, () => bearerOf({ token: undefined, tokenFile })]) {
        expect(ask, mode.toString(8)).toThrow(
          expect.objectContaining({
            code: "token_unusable",
            message: expect.stringContaining(`mode 0${mode.toString(8)}`),
            remedy: expect.stringContaining(`chmod 600 ${tokenFile}`),
          }),
        );
      }
    }
    // A group's read is how services get their secrets.
    await chmod(tokenFile, 0o640);
    expect((token as () => string)()).toBe("cn_secret");
  });

  it("waits for nobody who may write to a pipe, and reads a file by its link", async () => {
    const folder = await temporaryFolder();
    const [pipe, file, link] = [join(folder, "pipe"), join(folder, "token"), join(folder, "link")];
    execFileSync("mkfifo", ["-m", "600", pipe]);
    // In a process of its own: it would hold up this one.
    const refused = await runImporter(LETTERS, "--archive", join(folder, "letters.db"), "--token-file", pipe);
    expect(refused).toMatchObject({ status: 1, stderr: expect.stringContaining(`${pipe} is no file`) });
    await writeFile(file, "cn_secret", { mode: 0o600 });
    await symlink(file, link);
    expect((bearerOf({ token: undefined, tokenFile: link }).token as () => string)()).toBe("cn_secret");
  });

  it("says which file is not there, and is none where nothing was given", async () => {
    const tokenFile = join(await temporaryFolder(), "none");
    expect(() => bearerOf({ token: undefined, tokenFile })).toThrow(/none can't be read \(ENOENT\)/);
    expect(bearerOf({ token: undefined, tokenFile: undefined })).toEqual({});
  });
});
