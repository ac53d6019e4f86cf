/**
 * What people type and edit by hand: store URLs, store ids, and the tokens file. Misuse is reported as misuse, a description of a store names
 * the same place again, and neither a password nor a token's digest is printed.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseStoreId } from "../../packages/coordinator/src/guard/store-id.js";
import {
  describeStore,
  parseStoreUrl,
  placeOf,
  type StoreAddress,
} from "../../packages/coordinator/src/stores/store-url.js";
import { callnumber, folderForTest } from "../processes/command.js";
import { type Draw, type FuzzTarget, mutated } from "./inputs.js";

/** Long and of no grammar, so that it is found wherever it is printed. */
const PASSWORD = "Zq9Xw7Kv";
const SEEDS = [
  "memory:",
  "sqlite:folder/file.db",
  "sqlite:///folder/file.db",
  `redis://user:${PASSWORD}@host:6379/3?prefix=mine:`,
  `rediss://:${PASSWORD}@[::1]:6380`,
  `redis-sentinel://user:${PASSWORD}@a:1,b,[::2]:3/mymaster/0?prefix=p&sentinelUsername=s&sentinelPassword=${PASSWORD}`,
  `rediss-cluster://user:${PASSWORD}@a,b:7000,c/0?prefix=p`,
  "035c99bf-da8e-4d21-9235-b2fa0238433d.1.1700000000000.16",
  "035c99bf-da8e-4d21-9235-b2fa0238433d.1073741825.1700000000000.2",
].map((text) => Buffer.from(text));
const WORDS =
  "redis:// rediss:// redis-sentinel:// redis-cluster:// sqlite: // / ? # @ : , & = % %40 %zz [ ] [::1] prefix= 65535 65536 0 99999 ~ .. \0".split(
    " ",
  );

export const storeUrl: FuzzTarget = {
  name: "store-url",
  shortCount: 20_000,
  start: () => ({ input, check }),
};

function input(draw: Draw): Buffer {
  return mutated(draw.oneOf(SEEDS), draw, { words: WORDS.map((word) => Buffer.from(word)), countMax: 3 });
}

function check(bytes: Buffer): void {
  const text = bytes.toString("utf8");
  const id = parseStoreId(text);
  if (id !== undefined) {
    const numbers = text.split(".").slice(1).map(Number);
    assert.deepEqual([id.firstVersion * 2 ** 30 + id.firstRun, id.initializedAtMs, id.rate], numbers);
    assert(
      id.firstVersion >= 0 &&
        id.firstVersion <= 7 &&
        id.firstRun >= 1 &&
        id.firstRun < 2 ** 30 &&
        id.rate >= 1 &&
        id.rate <= 16,
    );
  }
  const address = addressIn(text);
  if (address === undefined) return;
  const described = describeStore(address);
  if (address.kind === "memory") return;
  if (address.kind !== "sqlite") {
    const password = address.password ?? "";
    const isSecret = password.length >= PASSWORD.length && text.split(password).length === 2;
    if (isSecret) assert(!described.includes(password), "a password is printed");
    assert(Number.isInteger(address.database) && address.database >= 0);
  }
  assert.deepEqual(sortedPlace(parseStoreUrl(described)), sortedPlace(address));
}

/** Hosts are in their own order. */
function sortedPlace(address: StoreAddress) {
  const { group, addresses } = placeOf(address);
  return { group, addresses: addresses.toSorted() };
}

/** Undefined for what is rejected. */
function addressIn(text: string) {
  try {
    return parseStoreUrl(text);
  } catch (error) {
    assert(error instanceof TypeError, String(error));
    // Where the URL was one, but for something else in it.
    const isWhole = text.includes(`:${PASSWORD}@`) && text.indexOf(PASSWORD) === text.lastIndexOf(PASSWORD);
    if (isWhole) assert(!error.message.includes(PASSWORD), "a password is printed");
    return undefined;
  }
}

/** Of the tokens file. */
const TOKENS_WORDS = [
  "\n",
  "\t",
  " ",
  "#",
  "{}",
  "null",
  "lease",
  "operator",
  "main",
  "*",
  "sha256",
  "0".repeat(64),
  "{",
];

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
    const words = TOKENS_WORDS.map((word) => Buffer.from(word));
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
