/** The tokens file: which rights to it are accepted, what a line may be, and that no change loses another one. */
import { writeFileSync } from "node:fs";
import { chmod, chown, mkdir, readdir, readFile, readlink, stat, symlink, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { beforeEach, describe, expect, inject, test } from "vitest";
import { mutatedBytes } from "../../../test/mutated-bytes.js";
import { folderForTest } from "../../../test/processes/command.js";
import { sized } from "../../../test/size-of-run.js";
import {
  faultOfRights,
  lineOf,
  makeToken,
  newToken,
  readTokensFile,
  recordsIn,
  TOKEN_COUNT_MAX,
  type TokenRecord,
  trustedUid,
} from "../../coordinator/src/tokens/tokens-file.js";
import { changeTokensFile } from "../src/commands/token.js";

let folder: string;
let file: string;

beforeEach(async () => {
  file = join(await folderForTest(), "tokens");
  folder = dirname(file);
});

const made = (note?: string) => makeToken({ role: "lease", namespaces: ["main"], note }, new Set(), 1_790_000_000_000);
const add = (record: TokenRecord) => (records: readonly TokenRecord[]) => [...records, record];
const addOne = () => changeTokensFile(file, add(made().record));
const invalid = (message: string | RegExp) =>
  expect.objectContaining({ code: "tokens_file_invalid", message: expect.stringMatching(message) });
const isRoot = process.getuid?.() === 0;

describe("a line", () => {
  test("a line is read as it was written", () => {
    const records = [made().record, made("importer 1").record, { ...made().record, namespaces: "all" as const }];
    expect(recordsIn(records.map(lineOf).join(""), "f")).toEqual(records);
    expect(recordsIn(records.map(lineOf).join("").trimEnd(), "f")).toEqual(records);
    expect(recordsIn("", "f")).toEqual([]);
  });

  const { record, token } = made("x");
  test.each<[what: string, line: string | object, reason: string]>([
    ["no JSON", "{", "it is not JSON"],
    ["a token", token, "it is not JSON"],
    ["a token as JSON", JSON.stringify(token), "it is not a JSON object"],
    ["a list", [record], "it is not a JSON object"],
    ["null", "null", "it is not a JSON object"],
    ["empty", " ", "it is empty"],
    ["with the token in it", { ...record, token }, "it has a field that no token has"],
    ["with the token as the name of a field", { ...record, [token]: 1 }, "it has a field that no token has"],
    ["with the token for its hash", { ...record, sha256: token }, "sha256 is not 64 hex digits"],
    ["with a hash in capitals", { ...record, sha256: record.sha256.toUpperCase() }, "sha256 is not 64"],
    ["with the id of another", { ...record, id: "00000000" }, "id is not the beginning of sha256"],
    ["without an id", { ...record, id: undefined }, "id is missing"],
    ["with another role", { ...record, role: token }, "role is not one of lease, read, operator"],
    ["with no namespaces", { ...record, namespaces: [] }, "namespaces must have at least 1 entries"],
    ["with all in a list", { ...record, namespaces: ["*"] }, "namespaces: "],
    ["with a namespace for a list", { ...record, namespaces: "main" }, "namespaces is neither"],
    ["with a negative time", { ...record, createdAtMs: -1 }, "createdAtMs must be at least 0"],
    ["with a note that acts on a terminal", { ...record, note: "\u001b[2J" }, "note: "],
  ])("a line that is %s is rejected by its number, without its text", (_, line, reason) => {
    const text = typeof line === "string" ? line : JSON.stringify(line);
    let message = "";
    try {
      recordsIn(`${lineOf(made().record)}${text}\n${lineOf(made().record)}`, "/etc/tokens");
      expect.fail("it was accepted");
    } catch (error) {
      ({ message } = error as Error);
    }
    expect(message).toContain(`/etc/tokens, line 2: ${reason}`);
    expect(message).not.toContain(token);
    expect(message).not.toContain(record.sha256);
  });

  test("a repeated line, and more lines than tokens are allowed, are rejected", () => {
    expect(() => recordsIn(lineOf(record) + lineOf(record), "f")).toThrow("f, line 2: line 1 has the same id already");
    expect(() => recordsIn("x\n".repeat(TOKEN_COUNT_MAX + 1), "f")).toThrow(`at most ${TOKEN_COUNT_MAX} tokens`);
  });
});

describe("the rights to the file", () => {
  const FILE = 0o100000;
  const UID = 1000;
  const faultOf = (mode: number, uid = UID, path = "/etc/tokens") =>
    faultOfRights({ mode: FILE | mode, uid }, path, UID);

  test("only the owner may write the file, and at most the group read it", () => {
    const allowed = Array.from({ length: 0o10000 }, (_, mode) => mode).filter((mode) => faultOf(mode) === undefined);
    expect(allowed).toEqual([0, 0o40, 0o200, 0o240, 0o400, 0o440, 0o600, 0o640]);
    expect(faultOf(0o644)).toMatch(/mode is 0644.*must be 0600, or 0640.*chmod 600 \/etc\/tokens$/);
    expect(faultOf(0o666, UID, "/it's here/t")).toMatch(/chmod 600 '\/it'\\''s here\/t'$/);
  });

  test("the file belongs to the process's user or to root", () => {
    expect(faultOf(0o600, 0)).toBeUndefined();
    expect(faultOf(0o600, 1001)).toMatch(/belongs to the user with id 1001.*chown 1000 \/etc\/tokens$/);
  });

  test("root may change any owner's file, and a coordinator trusts its own user and root alone", () => {
    expect(trustedUid(1000, 0, { keepsOwner: true })).toBe(1000);
    expect(trustedUid(1000, 0, { keepsOwner: false })).toBe(0);
    expect(trustedUid(1001, 1000, { keepsOwner: true })).toBe(1000);
    expect(trustedUid(1001, undefined, { keepsOwner: true })).toBeUndefined();
  });

  test.each([0o644, 0o602])("a file of mode %o is neither read nor changed", async (mode) => {
    await writeFile(file, lineOf(made().record));
    await chmod(file, mode);
    expect(() => readTokensFile(file)).toThrow(invalid(`mode is 0${mode.toString(8)}`));
    await expect(changeTokensFile(file, () => [])).rejects.toEqual(invalid(`chmod 600 ${file}`));
    await chmod(file, 0o640);
    expect(readTokensFile(file).records).toHaveLength(1);
  });

  test("the rights to a link are those to the file behind it", async () => {
    const behind = join(folder, "behind");
    await writeFile(behind, "");
    await chmod(behind, 0o666);
    await symlink(behind, file);
    expect(() => readTokensFile(file)).toThrow(invalid("mode is 0666"));
  });
});

test.each([
  ["a directory", () => mkdir(file), "is not a file"],
  ["text of another encoding", () => writeFile(file, Buffer.from([0xff, 0x0a]), { mode: 0o600 }), "not text in UTF-8"],
  ["a file of 4 MiB", () => writeFile(file, "x".repeat(4 * 1024 * 1024 + 1), { mode: 0o600 }), "at most 4194304"],
  ["a missing file", async () => {}, "is not there.*callnumber token create"],
])("%s is rejected", async (_, make, reason) => {
  await make();
  expect(() => readTokensFile(file)).toThrow(invalid(reason));
});

test("a mutated file is read, or rejected without any of its digests", async () => {
  const records = [made().record, made("note").record];
  const words = ["\n", "\t", "#", "{}", "null", "lease", "operator", "*", "sha256", "0".repeat(64), "{"];
  const property = fc.property(mutatedBytes([records.map(lineOf).join("")], words), (bytes) => {
    writeFileSync(file, bytes, { mode: 0o600 });
    try {
      expect(readTokensFile(file).records.length).toBeLessThanOrEqual(records.length);
    } catch (error) {
      expect(error).toEqual(invalid(/, line \d+: |is not text in UTF-8/));
      for (const { sha256 } of records) expect((error as Error).message).not.toContain(sha256);
    }
  });
  fc.assert(property, { seed: inject("seed"), numRuns: sized(200, 5_000) });
});

test("an empty file has no tokens", async () => {
  await writeFile(file, "", { mode: 0o600 });
  expect(readTokensFile(file).records).toEqual([]);
});

describe("a change", () => {
  test("a change makes the file for its owner only, and leaves nothing else behind", async () => {
    const { record } = made();
    await changeTokensFile(file, add(record));
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(readTokensFile(file).records).toEqual([record]);
    expect(await readdir(folder)).toEqual(["tokens"]);
  });

  test("concurrent changes lose no record", async () => {
    const records = Array.from({ length: 25 }, () => made().record);
    /** On a busy machine the changes before it may take longer than a change waits. */
    const addPatiently = async (record: TokenRecord): Promise<void> => {
      await changeTokensFile(file, add(record)).catch((error: Error) => {
        expect(error.message).toContain("changes the tokens file");
        return addPatiently(record);
      });
    };
    await Promise.all(records.map(addPatiently));
    const ids = readTokensFile(file).records.map(({ id }) => id);
    expect(ids.sort()).toEqual(records.map(({ id }) => id).sort());
  });

  test("a change keeps mode and group: a coordinator that reads by its group continues to read", async () => {
    await addOne();
    await chmod(file, 0o640);
    if (isRoot) await chown(file, 0, 12345);
    await addOne();
    const { mode, gid } = await stat(file);
    expect(mode & 0o777).toBe(0o640);
    if (isRoot) expect(gid).toBe(12345);
  });

  test.skipIf(!isRoot)("a change by root leaves the file to the coordinator's user", async () => {
    await addOne();
    await chown(file, 1000, 1001);
    expect(() => readTokensFile(file)).toThrow(invalid("belongs to the user with id 1000"));
    expect(readTokensFile(file, { keepsOwner: true }).records).toHaveLength(1);
    await changeTokensFile(file, () => []);
    const { uid, gid, mode } = await stat(file);
    expect({ uid, gid, mode: mode & 0o777 }).toEqual({ uid: 1000, gid: 1001, mode: 0o600 });
    await chmod(file, 0o620);
    await expect(changeTokensFile(file, () => [])).rejects.toEqual(invalid("mode is 0620"));
  });

  test("a change of a link changes the file behind it", async () => {
    const behind = join(folder, "behind");
    await writeFile(behind, "", { mode: 0o600 });
    await symlink(behind, file);
    await addOne();
    expect(await readlink(file)).toBe(behind);
    expect(readTokensFile(behind).records).toHaveLength(1);
  });

  test("a change of a dangling link makes nothing: the link would become the file", async () => {
    const target = join(folder, "unmounted", "tokens");
    await symlink(target, file);
    await expect(addOne()).rejects.toEqual(invalid("tokens is a link to .*unmounted"));
    expect(await readdir(folder)).toEqual(["tokens"]);
    expect(await readlink(file)).toBe(target);
  });

  test("a change that throws leaves the file as it was, and no lock", async () => {
    await addOne();
    const before = await readFile(file);
    const fails = changeTokensFile(file, () => {
      throw new RangeError("no");
    });
    await expect(fails).rejects.toThrow("no");
    expect(await readFile(file)).toEqual(before);
    expect(await readdir(folder)).toEqual(["tokens"]);
  });

  test("a change of a file with a wrong line is rejected: nothing of it is lost", async () => {
    await writeFile(file, `${newToken()}\n`, { mode: 0o600 });
    await expect(addOne()).rejects.toEqual(invalid("line 1: it is not JSON"));
    expect(await readFile(file, "utf8")).toMatch(/^cn_/);
  });

  test("a change in a missing directory is rejected with the system's reason", async () => {
    await expect(changeTokensFile(join(folder, "no", "tokens"), () => [])).rejects.toEqual(invalid("ENOENT"));
  });

  test("a change beyond the greatest number of tokens is rejected", async () => {
    const records = Array.from({ length: TOKEN_COUNT_MAX }, () => made().record);
    await changeTokensFile(file, () => records);
    await expect(addOne()).rejects.toEqual(invalid("revoke one first"));
    expect(readTokensFile(file).records).toHaveLength(TOKEN_COUNT_MAX);
  });

  test("a reader sees the old tokens or the new ones during a change, never a part of them", async () => {
    const done = new AbortController();
    const counts: number[] = [];
    const reading = (async () => {
      while (!done.signal.aborted) counts.push(recordsIn(await readFile(file, "utf8").catch(() => ""), file).length);
    })();
    for (let count = 0; count < 30; count++) await addOne();
    done.abort();
    await reading;
    expect(new Set(counts).size).toBeGreaterThan(1);
    expect(counts).toEqual(counts.toSorted((one, other) => one - other));
  });
});
