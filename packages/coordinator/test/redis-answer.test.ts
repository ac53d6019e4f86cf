/**
 * Malformed replies: another shape, another step's nonce, an error. The step fails, what it leased is discarded, and it is never a lease.
 * Guarantees: G4 (docs/guarantees.md).
 */
import { beforeEach, expect, test } from "vitest";
import { leasesIn, recordIn } from "../src/stores/redis/replies.js";
import { stepRepliesIn } from "../src/stores/redis/step-calls.js";
import { commandsFor, NAMESPACE, PROOF_KEY, storeIdFrom } from "./commands-for-test.js";
import { needsOwnServer, throughProxy, untilDone } from "./redis-for-test.js";

beforeEach(needsOwnServer);

const LEASE = /^evalsha \S+ 3 /i;
const CHECK = /^evalsha \S+ 1 /i;

test.each<[string, RegExp, (reply: string) => string]>([
  ["nothing", LEASE, () => "$-1\r\n"],
  ["a number", LEASE, () => ":2\r\n"],
  ["an empty list", LEASE, () => "*0\r\n"],
  ["a mark that is no number", LEASE, (reply) => reply.replace(" 2 1\r\n", " x 1\r\n")],
  ["another step's nonce", LEASE, (reply) => reply.replace(/[\w-]{36}(?= 2 1\r\n)/, "n".repeat(36))],
  ["an error of the server", LEASE, () => "-ERR it broke\r\n"],
  ["another step's refusal", LEASE, () => "-AHEAD nonce-of-another 7\r\n"],
  ["nothing to its check", CHECK, () => "$-1\r\n"],
  ["another check's nonce", CHECK, (reply) => reply.replace(/(?<=^\*4\r\n\$16\r\n)[\w-]{16}/, "n".repeat(16))],
  ["an error to its check", CHECK, () => "-ERR it broke\r\n"],
])("a lease fails and its run is discarded when the reply is %s", async (_, command, fault) => {
  const { lease, proxy, direct } = await throughProxy();
  expect((await lease()).firstRun).toBe(1);
  const replies: string[] = [];
  const { struck } = proxy.strikeNext((reply) => {
    replies.push(reply, fault(reply));
    return replies[1] as string;
  }, command);
  await expect(lease()).rejects.toMatchObject({ code: "store_unavailable" });
  await struck;
  expect(replies[1]).not.toBe(replies[0]);
  expect((await direct.read()).highWaterMark).toBe(2);
  expect((await untilDone(lease)).firstRun).toBe(3);
});

test.each(["$-1\r\n", "$1\r\n1\r\n", ":-1\r\n"])(
  "a lease fails when the count of its acknowledgements is %j",
  async (count) => {
    const { proxy, store } = await throughProxy({ quorumTimeoutMs: 20 });
    const commands = commandsFor(storeIdFrom(1));
    await store.step("two-nodes", commands.init({ nodeCount: 2 }));
    const lease = () => store.step("two-nodes", commands.lease());
    expect((await lease()).acknowledgedCount).toBe(0);
    const { struck } = proxy.strikeNext(() => count, /^wait /i);
    await expect(lease()).rejects.toMatchObject({ code: "store_unavailable" });
    await struck;
    expect((await untilDone(lease)).acknowledgedCount).toBe(0);
  },
);

const storeId = storeIdFrom(1);

test("the reply to a lease is rejected unless every part of it has its form", () => {
  const command = commandsFor(storeId).lease({ nonce: "nonce-of-the-step", runCount: 2 });
  const head = [storeId, "0", "1700000000000", "e:r:0:0", "0", "1"];
  const read = (...parts: readonly unknown[]) => stepRepliesIn(parts, [{ namespace: NAMESPACE, command }]);
  expect(read(...head, `${command.nonce} 7 2`)).toMatchObject([{ after: { highWaterMark: 7 }, runCount: 2 }]);
  expect(read(...head.with(2, ""), `${command.nonce} EXHAUSTED 0`)).toMatchObject([{ code: "EXHAUSTED" }]);
  // JavaScript would make a number of most of them.
  const noMarks = ["", "-", "NaN", "1e1", "0x7", "+7", "007", "7.0", "7\n", "1073741824", "9".repeat(20)];
  for (const mark of noMarks) expect(read(...head, `${command.nonce} ${mark} 2`), mark).toBeUndefined();
  for (const at of [1, 2, 5]) expect(read(...head.with(at, "x"), `${command.nonce} 7 2`)).toBeUndefined();
  for (const line of ["nonce-of-another 7 2", `${command.nonce} 7`, `${command.nonce} 7 2 7`])
    expect(read(...head, line)).toBeUndefined();
});

test("the reply to another step is rejected unless every part of it has its form", () => {
  const command = commandsFor(storeId).heartbeat({ nonce: "nonce-of-the-step" });
  const parts = [command.nonce, storeId, "0", "7", "1700000000000", "e", "0", "1", "0"];
  const read = (reply: unknown) => stepRepliesIn(reply, [{ namespace: NAMESPACE, command }]);
  expect(read(parts)).toMatchObject([{ after: { highWaterMark: 7, nodeCount: 1 }, runCount: 0 }]);
  for (const at of [0, 2, 3, 4, 6, 7, 8]) expect(read(parts.with(at, "x"))).toBeUndefined();
  for (const other of [null, 0, "OK", [], [null], [parts]]) expect(read(other)).toBeUndefined();
});

test("the reply to a read is rejected unless every part of it has its form", () => {
  const parts = [storeId, "0", "7", "1700000000000", "3", "0", "1", PROOF_KEY, "-"];
  expect(recordIn(parts)).toMatchObject({ storeId, firstRun: 1, highWaterMark: 7, generation: 3, seal: "-" });
  for (let at = 0; at < parts.length - 1; at++) expect(recordIn(parts.with(at, "x"))).toBeUndefined();
  expect(recordIn(parts.slice(0, 8))).toBeUndefined();
  for (const other of [null, "OK", [], ["", ""], [["1 1 1 1 n"], [7]]])
    expect(() => leasesIn(other)).toThrow(expect.objectContaining({ code: "store_corrupt" }));
  expect(leasesIn([[], []])).toEqual([]);
});
