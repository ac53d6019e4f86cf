/**
 * Malformed replies: another shape, another script's nonce, an error. The step fails, what it leased is discarded, and it is never a lease.
 * Guarantees: G4 (docs/guarantees.md).
 */
import { beforeEach, expect, test } from "vitest";
import { appliedIn, observedIn } from "../src/stores/redis/changes.js";
import { scriptNamed } from "../src/stores/redis/scripts.js";
import { commandsFor, PROOF_KEY, storeIdFrom } from "./commands-for-test.js";
import { needsOwnServer, throughProxy, untilDone } from "./redis-for-test.js";
import { withNamespace } from "./store-in-hand.js";

beforeEach(needsOwnServer);

const [APPLY, READ] = (["apply", "read"] as const).map(
  (name) => new RegExp(`^evalsha ${scriptNamed(name).sha1} `, "i"),
);
/** The nonce, as the first of a list. */
const NONCE = /(?<=^\*\d+\r\n\$16\r\n)[\w-]{16}/;
const OTHER_NONCE = "n".repeat(16);

test.each<[string, (reply: string) => string]>([
  ["nothing", () => "$-1\r\n"],
  ["a number", () => ":2\r\n"],
  ["an empty list", () => "*0\r\n"],
  ["a mark that is not a number", (reply) => reply.replace("done\r\n$1\r\n2\r\n", "done\r\n$1\r\nx\r\n")],
  ["another script's nonce", (reply) => reply.replace(NONCE, OTHER_NONCE)],
  ["neither done nor found", (reply) => reply.replace("\r\ndone\r\n", "\r\ngone\r\n")],
  ["what was found, without all that it has", (reply) => reply.replace("\r\n$4\r\ndone\r\n", "\r\n$5\r\nfound\r\n")],
  ["an error of the server", () => "-ERR it broke\r\n"],
])("a lease fails and its run is discarded when the reply is %s", async (_, fault) => {
  const { lease, proxy, direct } = await throughProxy();
  expect((await lease()).firstRun).toBe(1);
  const replies: string[] = [];
  const { struck } = proxy.strikeNext((reply) => {
    replies.push(reply, fault(reply));
    return replies[1] as string;
  }, APPLY);
  await expect(lease()).rejects.toMatchObject({ code: "store_unavailable" });
  await struck;
  expect(replies[1]).not.toBe(replies[0]);
  expect((await direct.read()).highWaterMark).toBe(2);
  expect((await untilDone(lease)).firstRun).toBe(3);
});

test.each<[string, RegExp | undefined, (reply: string) => string]>([
  ["its acknowledgements are nothing", /^wait /i, () => "$-1\r\n"],
  ["its acknowledgements are a text", /^wait /i, () => "$1\r\n1\r\n"],
  ["its acknowledgements are less than none", /^wait /i, () => ":-1\r\n"],
  ["there is no reply to its check", READ, () => "$-1\r\n"],
  ["its check has another script's nonce", READ, (reply) => reply.replace(NONCE, OTHER_NONCE)],
  ["its check is an error", READ, () => "-ERR it broke\r\n"],
])("a lease that waits for other nodes fails when %s", async (_, command, fault) => {
  const { proxy, store } = await throughProxy({ quorumTimeoutMs: 20 });
  const storeId = storeIdFrom(1);
  const commands = commandsFor(storeId);
  const read = store.read.bind(store);
  // The replica leaves right after the namespace was made.
  store.read = async (namespace) => {
    const { keys, server } = await read(namespace);
    return { keys, server: { ...server, connectedReplicas: 1 } };
  };
  const one = await withNamespace(store, { storeId, namespace: "counts-two", nodeCount: 2 });
  store.read = read;
  const lease = () => one.step(commands.lease());
  expect((await lease()).acknowledgedCount).toBe(0);
  const { struck } = proxy.strikeNext(fault, command);
  await expect(lease()).rejects.toMatchObject({ code: "store_unavailable" });
  await struck;
  expect(await untilDone(lease)).toMatchObject({ acknowledgedCount: 0, after: { highWaterMark: 3 } });
});

const NUMBERS_OF_OTHERS = ["", "-", "NaN", "1e1", "0x7", "+7", "007", "7.0", "7\n", "9".repeat(20)];

test("the reply to a change is rejected unless every part of it has its form", () => {
  const parts = ["nonce-1", "done", "7", "1700000000000"];
  expect(appliedIn(parts, "nonce-1")).toEqual({ highWaterMark: 7, changedAtMs: 1_700_000_000_000 });
  // JavaScript would make a number of most of them.
  for (const text of [...NUMBERS_OF_OTHERS, "1073741824"])
    expect(appliedIn(parts.with(2, text), "nonce-1"), text).toBeUndefined();
  for (const text of NUMBERS_OF_OTHERS) expect(appliedIn(parts.with(3, text), "nonce-1"), text).toBeUndefined();
  for (const other of [null, 0, "OK", [], [null], [parts], parts.slice(0, 3), [...parts, "7"], parts.with(1, "Done")])
    expect(appliedIn(other, "nonce-1")).toBeUndefined();
  expect(appliedIn(parts, "nonce-2")).toBeUndefined();
});

test("the reply with what was found is rejected unless every part of it has its form", () => {
  const storeId = storeIdFrom(1);
  const fields = ["2", "main", storeId, "0", "7", "1", "r:i:1:2", "3", "0", "1", PROOF_KEY, "-", "k"];
  const parts = [
    "nonce-1",
    "found",
    "1700000000000",
    "hash",
    "stream",
    "none",
    "0",
    "7",
    "master",
    "r",
    "i",
    "1",
    "2",
    "0",
    "fingerprint",
    ...fields,
  ];
  const read = (reply: unknown) => observedIn(reply, "nonce-1");
  expect(read(parts)).toMatchObject({
    keys: {
      record: "hash",
      fields: { c: "7", k: "k" },
      expires: false,
      ledger: "stream",
      ledgerMark: 7,
      holders: "none",
    },
    server: { timeMs: 1_700_000_000_000, role: "master", epoch: "r:i:1:2", connectedReplicas: 0 },
  });
  for (const at of [0, 1, 2, 7]) expect(read(parts.with(at, "x"))).toBeUndefined();
  for (const other of [null, "OK", [], parts.slice(1), [...parts, "x"], [parts]]) expect(read(other)).toBeUndefined();
  // What the server does not report is not known, and nothing is leased without it.
  for (let at = 8; at < 14; at++) expect(read(parts.with(at, null as never))?.server.epoch).toBeUndefined();
  expect(read(parts.with(6, "1"))?.keys.expires).toBe(true);
  for (const at of [3, 4, 5]) {
    const { record, ledger, holders } = read(parts.with(at, "zset"))?.keys ?? {};
    expect([record, ledger, holders].indexOf("other")).toBe(at - 3);
  }
  expect("c" in (read(parts.with(19, null as never))?.keys.fields ?? { c: "" })).toBe(false);
});
