import { expect, test } from "vitest";
import { inThreads, type Threaded } from "../src/reader/threads.js";

/** As `a`, `b<a` (answers a) or `c<a,b` (with references), in the order of their dates. */
function mails(...texts: readonly string[]): Threaded[] {
  return texts.map((text, index) => {
    const [messageId = "", ids] = text.split("<");
    const references = ids === undefined ? null : ids.replaceAll(",", " ");
    const date = `2005-01-01T00:00:${String(index).padStart(2, "0")}Z`;
    return { messageId, inReplyTo: references?.split(" ").at(-1) ?? null, references, date };
  });
}

const drawn = (messages: readonly Threaded[]) =>
  inThreads(messages).map(({ message, depth }) => `${".".repeat(depth)}${message.messageId}`);

test.each<[what: string, given: readonly string[], expected: readonly string[]]>([
  ["answers follow what they answer, by date", ["a", "x", "b<a", "c<a", "d<a,b"], ["a", ".b", "..d", ".c", "x"]],
  ["an answer to a missing message follows the nearest known one", ["a", "c<a,b"], ["a", ".c"]],
  ["an answer to nothing that is known begins a thread", ["c<b", "a"], ["c", "a"]],
  ["of two that answer each other the earlier one begins", ["a<b", "b<a"], ["a", ".b"]],
  ["a message that answers itself begins a thread", ["a<a"], ["a"]],
  ["a long circle keeps each message once", ["a<d", "b<a", "c<b", "d<c"], ["a", ".b", "..c", "...d"]],
  ["of two with one Message-ID the earlier one is answered", ["a", "a", "b<a"], ["a", ".b", "a"]],
])("%s", (_, given, expected) => {
  expect(drawn(mails(...given))).toEqual(expected);
  expect(drawn(mails(...given).toReversed())).toEqual(expected);
});

test("messages without Message-ID or date are kept, those without a date in front", () => {
  const bare = { messageId: null, inReplyTo: null, references: null };
  const placed = inThreads([
    { ...bare, date: "2005-01-01" },
    { ...bare, date: null },
  ]);
  expect(placed.map(({ message, depth }) => [message.date, depth])).toEqual([
    [null, 0],
    ["2005-01-01", 0],
  ]);
});

test("a thread of 2,000 answers below each other is no deeper call, and takes no long time", () => {
  const texts = Array.from({ length: 2_000 }, (_, index) => (index === 0 ? "m0" : `m${index}<m${index - 1}`));
  expect(inThreads(mails(...texts)).at(-1)?.depth).toBe(1_999);
});
