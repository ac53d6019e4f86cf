/**
 * An answer that can't be: another shape, another step's nonce, an error. The step fails, what it leased is discarded, and it is never a lease.
 * Guarantees: G4 (docs/guarantees.md).
 */
import { describe, expect, onTestFinished, test } from "vitest";
import { startFaultyProxy } from "../../../test/redis/faulty-proxy.js";
import { storeUrlAt } from "../../../test/redis/shipped-users.js";
import { leasesIn, recordIn } from "../src/stores/redis/replies.js";
import { stepRepliesIn } from "../src/stores/redis/step-calls.js";
import { commandsFor, NAMESPACE, RECEIPT_KEY, storeIdFrom } from "./commands-for-test.js";
import { ownServer, storeAt, throughProxy, untilDone } from "./redis-for-test.js";

const LEASE = /^evalsha \S+ 3 /i;
const LOOK = /^evalsha \S+ 1 /i;

test.for<[string, RegExp, (answer: string) => string]>([
  ["nothing", LEASE, () => "$-1\r\n"],
  ["a number", LEASE, () => ":2\r\n"],
  ["no words", LEASE, () => "*0\r\n"],
  ["a mark that is no number", LEASE, (answer) => answer.replace(" 2 1\r\n", " x 1\r\n")],
  ["another step's nonce", LEASE, (answer) => answer.replace(/[\w-]{36}(?= 2 1\r\n)/, "n".repeat(36))],
  ["an error of the server", LEASE, () => "-ERR it broke\r\n"],
  ["another step's refusal", LEASE, () => "-AHEAD nonce-of-another 7\r\n"],
  ["nothing to the look behind it", LOOK, () => "$-1\r\n"],
  ["another look's nonce", LOOK, (answer) => answer.replace(/(?<=^\*4\r\n\$16\r\n)[\w-]{16}/, "n".repeat(16))],
  ["an error to the look behind it", LOOK, () => "-ERR it broke\r\n"],
])("a lease that is answered with %s fails, and its run is discarded", async ([, asked, fault], { skip }) => {
  const { lease, proxy, direct } = await throughProxy(skip);
  expect((await lease()).firstRun).toBe(1);
  const answers: string[] = [];
  const { struck } = proxy.strikeNext((answer) => {
    answers.push(answer, fault(answer));
    return answers[1] as string;
  }, asked);
  await expect(lease()).rejects.toMatchObject({ code: "store_unavailable" });
  await struck;
  expect(answers[1]).not.toBe(answers[0]);
  expect((await direct.read()).highWaterMark).toBe(2);
  expect((await untilDone(lease)).firstRun).toBe(3);
});

test("a lease fails when the count of its acknowledgements is no number", async ({ skip }) => {
  const proxy = await startFaultyProxy(await ownServer({}, skip));
  onTestFinished(() => proxy.close());
  const store = await storeAt(storeUrlAt("127.0.0.1", proxy.port));
  const commands = commandsFor(storeIdFrom(1));
  await store.step(NAMESPACE, commands.init({ nodeCount: 2 }));
  expect((await store.step(NAMESPACE, commands.lease())).acknowledgedCount).toBe(0);
  for (const count of ["$-1\r\n", "$1\r\n1\r\n", ":-1\r\n"]) {
    const { struck } = proxy.strikeNext(() => count, /^wait /i);
    await expect(store.step(NAMESPACE, commands.lease())).rejects.toMatchObject({ code: "store_unavailable" });
    await struck;
    await untilDone(() => store.step(NAMESPACE, commands.lease()));
  }
});

describe("what can't be is no answer", () => {
  const storeId = storeIdFrom(1);
  const head = [storeId, "0", "1700000000000", "e:r:0:0", "0", "1"];

  test("to a lease", () => {
    const command = commandsFor(storeId).lease({ nonce: "nonce-of-the-step", runCount: 2 });
    const read = (...words: readonly unknown[]) => stepRepliesIn(words, [{ namespace: NAMESPACE, command }]);
    expect(read(...head, `${command.nonce} 7 2`)).toMatchObject([{ after: { highWaterMark: 7 }, runCount: 2 }]);
    expect(read(...head.with(2, ""), `${command.nonce} EXHAUSTED 0`)).toMatchObject([{ word: "EXHAUSTED" }]);
    // JavaScript would make a number of most of them.
    for (const mark of [
      "",
      "-",
      "NaN",
      "1e1",
      "0x7",
      "+7",
      "007",
      "7.0",
      "7\n",
      "1073741824",
      "99999999999999999999",
    ]) {
      expect(read(...head, `${command.nonce} ${mark} 2`), mark).toBeUndefined();
    }
    for (const at of [1, 2, 5]) expect(read(...head.with(at, "x"), `${command.nonce} 7 2`)).toBeUndefined();
    for (const line of ["nonce-of-another 7 2", `${command.nonce} 7`, `${command.nonce} 7 2 7`]) {
      expect(read(...head, line)).toBeUndefined();
    }
  });

  test("to another step", () => {
    const command = commandsFor(storeId).heartbeat({ nonce: "nonce-of-the-step" });
    const words = [command.nonce, storeId, "0", "7", "1700000000000", "e", "0", "1", "0"];
    const read = (given: unknown) => stepRepliesIn(given, [{ namespace: NAMESPACE, command }]);
    expect(read(words)).toMatchObject([{ after: { highWaterMark: 7, nodeCount: 1 }, runCount: 0 }]);
    for (const at of [0, 2, 3, 4, 6, 7, 8]) expect(read(words.with(at, "x"))).toBeUndefined();
    for (const other of [null, 0, "OK", [], [null], [words]]) expect(read(other)).toBeUndefined();
  });

  test("to a read", () => {
    const words = [storeId, "0", "7", "1700000000000", "3", "0", "1", RECEIPT_KEY, "-"];
    expect(recordIn(words)).toMatchObject({ storeId, firstRun: 1, highWaterMark: 7, generation: 3, seal: "-" });
    for (let at = 0; at < words.length - 1; at++) expect(recordIn(words.with(at, "x"))).toBeUndefined();
    expect(recordIn(words.slice(0, 8))).toBeUndefined();
    for (const other of [null, "OK", [], ["", ""], [["1 1 1 1 n"], [7]]]) {
      expect(() => leasesIn(other)).toThrow(expect.objectContaining({ code: "store_corrupt" }));
    }
    expect(leasesIn([[], []])).toEqual([]);
  });
});
