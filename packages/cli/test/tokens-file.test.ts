/** The tokens file: who may have rights to it, what a line may be, and that no change loses another one. */
import {
  chmod,
  chown,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  readlink,
  rm,
  stat,
  symlink,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { anyCharacter } from "../../../test/any-character.js";
import {
  lineOf,
  makeToken,
  newToken,
  recordsIn,
  TOKEN_COUNT_MAX,
  type TokenRecord,
} from "../../coordinator/dist/tokens/token.js";
import {
  faultOfRights,
  readKeptTokensFile,
  readTokensFile,
  trustedUid,
} from "../../coordinator/dist/tokens/tokens-file.js";
import { changeTokensFile } from "../src/change-tokens-file.js";

let folder: string;
let file: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "callnumber-tokens-"));
  file = join(folder, "tokens");
});

afterEach(() => rm(folder, { recursive: true }));

const made = (note?: string) => makeToken({ role: "lease", namespaces: ["main"], note }, new Set(), 1_790_000_000_000);
const add = (record: TokenRecord) => (records: readonly TokenRecord[]) => [...records, record];
const unusable = (message: string | RegExp) =>
  expect.objectContaining({ code: "tokens_file_invalid", message: expect.stringMatching(message) });

describe("a line", () => {
  test("reads as it was written", () => {
    const records = [made().record, made("importer 1").record, { ...made().record, namespaces: "all" as const }];
    expect(recordsIn(records.map(lineOf).join(""), "f")).toEqual(records);
    expect(recordsIn(records.map(lineOf).join("").trimEnd(), "f")).toEqual(records);
    expect(recordsIn("", "f")).toEqual([]);
  });

  const { record, token } = made("x");
  test.each([
    ["no JSON", "{", "it is no JSON"],
    ["a token", token, "it is no JSON"],
    ["a token as JSON", JSON.stringify(token), "it is no JSON object"],
    ["a list", JSON.stringify([record]), "it is no JSON object"],
    ["null", "null", "it is no JSON object"],
    ["empty", " ", "it is empty"],
    ["with the token in it", JSON.stringify({ ...record, token }), "it has a field that no token has"],
    [
      "with the token as the name of a field",
      JSON.stringify({ ...record, [token]: 1 }),
      "it has a field that no token has",
    ],
    ["with the token for its hash", JSON.stringify({ ...record, sha256: token }), "sha256: is not 64 hex digits"],
    [
      "with a hash in capitals",
      JSON.stringify({ ...record, sha256: record.sha256.toUpperCase() }),
      "sha256: is not 64",
    ],
    ["with the id of another", JSON.stringify({ ...record, id: "00000000" }), "id: is not the beginning of sha256"],
    ["without an id", JSON.stringify({ ...record, id: undefined }), "id: "],
    ["with another role", JSON.stringify({ ...record, role: token }), "role: is not one of lease, read, operator"],
    ["with no namespaces", JSON.stringify({ ...record, namespaces: [] }), "namespaces: "],
    ["with all in a list", JSON.stringify({ ...record, namespaces: ["*"] }), "namespaces: "],
    ["with a namespace for a list", JSON.stringify({ ...record, namespaces: "main" }), "namespaces: is neither"],
    ["with a time that is none", JSON.stringify({ ...record, createdAtMs: -1 }), "createdAtMs: "],
    ["with a note that a terminal obeys", JSON.stringify({ ...record, note: "\u001b[2J" }), "note: "],
  ])("that is %s is refused by its number, without what stands there", (_, line, reason) => {
    const text = `${lineOf(made().record)}${line}\n${lineOf(made().record)}`;
    let message = "";
    try {
      recordsIn(text, "/etc/tokens");
      expect.fail("it was taken");
    } catch (error) {
      ({ message } = error as Error);
    }
    expect(message).toContain(`/etc/tokens, line 2: ${reason}`);
    expect(message).not.toContain(token);
    expect(message).not.toContain(record.sha256);
  });

  test("that is there twice is refused", () => {
    expect(() => recordsIn(lineOf(record) + lineOf(record), "f")).toThrow("f, line 2: line 1 has the same id already");
  });

  test("too many are refused", () => {
    expect(() => recordsIn("x\n".repeat(TOKEN_COUNT_MAX + 1), "f")).toThrow(`at most ${TOKEN_COUNT_MAX} tokens`);
  });

  test("of whatever text: what is taken writes itself down again, and nothing else happens than a refusal", () => {
    const text = fc.oneof(
      fc.string({ unit: anyCharacter }),
      fc.json(),
      fc.tuple(fc.nat(lineOf(record).length), fc.string({ maxLength: 2 })).map(([at, put]) => {
        const line = lineOf(record);
        return line.slice(0, at) + put + line.slice(at + put.length);
      }),
    );
    fc.assert(
      fc.property(text, (given) => {
        try {
          const records = recordsIn(given, "f");
          expect(recordsIn(records.map(lineOf).join(""), "f")).toEqual(records);
        } catch (error) {
          expect(error).toMatchObject({ code: "tokens_file_invalid" });
        }
      }),
      { numRuns: 1_000 },
    );
  });
});

describe("the rights to the file", () => {
  const FILE = 0o100000;
  const OURS = { uid: 1000, path: "/etc/tokens" };
  const faultOf = (mode: number, uid = OURS.uid) => faultOfRights({ mode: FILE | mode, uid }, OURS.path, OURS.uid);

  test("may be every mode that lets only the owner write and at most the group read, and no other", () => {
    const allowed = Array.from({ length: 0o10000 }, (_, mode) => mode).filter((mode) => faultOf(mode) === undefined);
    expect(allowed).toEqual([0, 0o40, 0o200, 0o240, 0o400, 0o440, 0o600, 0o640]);
  });

  test("that are too wide are refused with the mode, the right one, and the command", () => {
    expect(faultOf(0o644)).toMatch(/mode is 0644.*must be 0600, or 0640.*chmod 600 \/etc\/tokens$/);
    expect(faultOfRights({ mode: FILE | 0o666, uid: 0 }, "/it's here/t", 0)).toMatch(/chmod 600 '\/it'\\''s here\/t'$/);
  });

  test("must be those of the process's user or of root", () => {
    expect(faultOf(0o600, 0)).toBeUndefined();
    expect(faultOf(0o600, 1001)).toMatch(/belongs to the user with id 1001.*chown 1000 \/etc\/tokens$/);
  });

  test("are root's to change whoever has the file, and a coordinator's of its own user and root alone", () => {
    expect(trustedUid(1000, 0, { isKept: true })).toBe(1000);
    expect(trustedUid(1000, 0, { isKept: false })).toBe(0);
    expect(trustedUid(1001, 1000, { isKept: true })).toBe(1000);
    expect(trustedUid(1001, undefined, { isKept: true })).toBeUndefined();
  });

  test.each([0o644, 0o660, 0o604, 0o700, 0o602])("are looked at when it is read: %o", async (mode) => {
    await writeFile(file, lineOf(made().record));
    await chmod(file, mode);
    await expect(readTokensFile(file)).rejects.toEqual(unusable(`mode is 0${mode.toString(8)}`));
    await expect(changeTokensFile(file, () => [])).rejects.toEqual(unusable(`chmod 600 ${file}`));
    await chmod(file, 0o640);
    expect((await readTokensFile(file)).records).toHaveLength(1);
  });

  test("of a link are those of the file behind it", async () => {
    const behind = join(folder, "behind");
    await writeFile(behind, "", { mode: 0o666 });
    await chmod(behind, 0o666);
    await symlink(behind, file);
    await expect(readTokensFile(file)).rejects.toEqual(unusable("mode is 0666"));
  });
});

describe("reading", () => {
  test.each([
    ["a folder", () => mkdir(file), "is no file"],
    ["text of another coding", () => writeFile(file, Buffer.from([0xff, 0x0a]), { mode: 0o600 }), "no text in UTF-8"],
    [
      "more than any tokens need",
      () => writeFile(file, "x".repeat(4 * 1024 * 1024 + 1), { mode: 0o600 }),
      "at most 4194304",
    ],
    ["nothing at that name", async () => {}, "is not there.*callnumber token create"],
  ])("%s is refused", async (_, make, reason) => {
    await make();
    await expect(readTokensFile(file)).rejects.toEqual(unusable(reason));
  });

  test("a file that is empty gives no tokens", async () => {
    await writeFile(file, "", { mode: 0o600 });
    expect((await readTokensFile(file)).records).toEqual([]);
  });
});

describe("a change", () => {
  test("makes the file for its owner only, and leaves nothing else behind", async () => {
    const { record } = made();
    await changeTokensFile(file, add(record));
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await readTokensFile(file)).records).toEqual([record]);
    expect(await readdir(folder)).toEqual(["tokens"]);
  });

  test("many at once lose none", async () => {
    const records = Array.from({ length: 25 }, () => made().record);
    await Promise.all(records.map(addPatiently));
    const ids = (await readTokensFile(file)).records.map(({ id }) => id);
    expect(ids.sort()).toEqual(records.map(({ id }) => id).sort());
  });

  /** On a busy machine the changes before it may take longer than a change waits. */
  async function addPatiently(record: TokenRecord): Promise<void> {
    for (;;) {
      try {
        return await changeTokensFile(file, add(record));
      } catch (error) {
        expect((error as Error).message).toContain("changes the tokens file");
      }
    }
  }

  test("keeps mode, owner and group: a coordinator that reads by its group goes on reading", async () => {
    await changeTokensFile(file, add(made().record));
    await chmod(file, 0o640);
    const isRoot = process.getuid?.() === 0;
    if (isRoot) await chown(file, 0, 12345);
    await changeTokensFile(file, add(made().record));
    const { mode, gid } = await stat(file);
    expect(mode & 0o777).toBe(0o640);
    if (isRoot) expect(gid).toBe(12345);
  });

  test.skipIf(process.getuid?.() !== 0)(
    "by root leaves the file to the coordinator's user, who reads it on",
    async () => {
      await changeTokensFile(file, add(made().record));
      await chown(file, 1000, 1001);
      await expect(readTokensFile(file)).rejects.toEqual(unusable("belongs to the user with id 1000"));
      expect((await readKeptTokensFile(file)).records).toHaveLength(1);
      await changeTokensFile(file, () => []);
      const { uid, gid, mode } = await stat(file);
      expect({ uid, gid, mode: mode & 0o777 }).toEqual({ uid: 1000, gid: 1001, mode: 0o600 });
      await chmod(file, 0o620);
      await expect(changeTokensFile(file, () => [])).rejects.toEqual(unusable("mode is 0620"));
    },
  );

  test("goes through a link, which stays one", async () => {
    const behind = join(folder, "behind");
    await writeFile(behind, "", { mode: 0o600 });
    await symlink(behind, file);
    await changeTokensFile(file, add(made().record));
    expect(await readlink(file)).toBe(behind);
    expect((await readTokensFile(behind)).records).toHaveLength(1);
  });

  test("through a link that leads nowhere makes nothing: the link would become the file", async () => {
    await symlink(join(folder, "unmounted", "tokens"), file);
    await expect(changeTokensFile(file, add(made().record))).rejects.toEqual(
      unusable("tokens is a link to .*unmounted"),
    );
    expect(await readdir(folder)).toEqual(["tokens"]);
    expect(await readlink(file)).toBe(join(folder, "unmounted", "tokens"));
  });

  test("that throws leaves the file as it was, and no lock", async () => {
    await changeTokensFile(file, add(made().record));
    const before = await readFile(file);
    const fails = changeTokensFile(file, () => {
      throw new RangeError("no");
    });
    await expect(fails).rejects.toThrow("no");
    expect(await readFile(file)).toEqual(before);
    expect(await readdir(folder)).toEqual(["tokens"]);
  });

  test("of a file that is wrong is refused: nothing of it is lost", async () => {
    await writeFile(file, `${newToken()}\n`, { mode: 0o600 });
    await expect(changeTokensFile(file, add(made().record))).rejects.toEqual(unusable("line 1: it is no JSON"));
    expect(await readFile(file, "utf8")).toMatch(/^cn_/);
  });

  test("in a folder that is not there is told with the system's reason", async () => {
    await expect(changeTokensFile(join(folder, "no", "tokens"), () => [])).rejects.toEqual(unusable("ENOENT"));
  });

  test("beyond the most that there may be is refused", async () => {
    const records = Array.from({ length: TOKEN_COUNT_MAX }, () => made().record);
    await changeTokensFile(file, () => records);
    await expect(changeTokensFile(file, add(made().record))).rejects.toEqual(unusable("revoke one first"));
    expect((await readTokensFile(file)).records).toHaveLength(TOKEN_COUNT_MAX);
  });

  test("shows whoever reads meanwhile the old tokens or the new ones, never a part of them", async () => {
    const done = new AbortController();
    const counts: number[] = [];
    const reading = (async () => {
      while (!done.signal.aborted) counts.push(recordsIn(await readFile(file, "utf8").catch(() => ""), file).length);
    })();
    for (let count = 0; count < 30; count++) await changeTokensFile(file, add(made().record));
    done.abort();
    await reading;
    expect(new Set(counts).size).toBeGreaterThan(1);
    expect(counts).toEqual(counts.toSorted((one, other) => one - other));
  });
});
