/** What is the Redis protocol passes, however it is cut; what is not is told before the Redis client reads it, which it would do for ever. */
import { createRequire } from "node:module";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { RedisFraming, UnfitAnswer } from "../src/stores/redis-framing.js";

const check = (...pieces: readonly (string | Buffer)[]) => {
  const framing = new RedisFraming();
  for (const piece of pieces) framing.passed(Buffer.from(piece as string, "latin1"));
};

const text = (length: number, bytes = "") => `$${length}\r\n${bytes}`;

describe("is refused:", () => {
  test.each<[string, readonly string[], RegExp]>([
    ["a text of -6 bytes, which the client reads for ever", ["$*\r\n$1\r\nx\r\n"], /length of a text/],
    ["a text of -6 bytes in a list", ["*3\r\n$*\r\nxx"], /length of a text/],
    ["an error of -6 bytes", ["!*\r\nxxx"], /length of a text/],
    ["a text with a format and no room for it", ["=2\r\ntx\r\n"], /length of a text/],
    ["a text of no length", ["$\r\n"], /length of a text/],
    ["a text of -2 bytes", ["$-2\r\n"], /length of a text/],
    ["nothing in the way of another type", ["%-1\r\n"], /length of a list/],
    ["a list of -6 members", ["**\r\n"], /length of a list/],
    ["a streamed list", ["*?\r\n"], /length of a list/],
    ["a text behind which more comes", [text(1, "xx\r\n")], /longer than was said/],
    ["a text behind which no line ends as lines do", [text(1, "x\n")], /ends in another way/],
    ["a line that ends without a carriage return", ["+OK\n"], /ends in another way/],
    ["a line that has one in its midst", ["+O\rK\r\n"], /none of its type/],
    ["a number that is none", [":one\r\n"], /none of its type/],
    ["a big number that is none", ["(1.5\r\n"], /none of its type/],
    ["a boolean that is none", ["#y\r\n"], /none of its type/],
    ["a null with something in it", ["_0\r\n"], /none of its type/],
    ["HTTP", ["HTTP/1.1 400 Bad Request\r\n"], /no type/],
    ["an empty line", ["\r\n"], /no type/],
    ["a name of all objects", ["toString\r\n"], /no type/],
    ["a list of more members than anybody asks for", ["*33000000\r\n"], /more than 262144 members/],
    [
      "lists that have more of them together",
      ["*2\r\n", ...Array(2).fill(`*131072\r\n${"_\r\n".repeat(131_072)}`)],
      /more than 262144 members/,
    ],
    ["a map of more", ["%131073\r\n"], /more than 262144 members/],
    ["a message in the midst of an answer", ["*2\r\n>1\r\n"], /nobody had asked/],
    ["a message that the client would subscribe by", [">3\r\n+subscribe\r\n+x\r\n:1\r\n"], /nobody had asked/],
    ["a double that is none", [",nx\r\n"], /none of its type/],
    ["lists in lists without end", ["*1\r\n".repeat(17)], /16 deep/],
    ["a text that fills the memory", [text(99_999_999)], /more than 67108864 bytes/],
    [
      "many texts that do",
      ["*9\r\n", ...Array.from({ length: 9 }, () => text(8_000_000, `${"x".repeat(8e6)}\r\n`))],
      /more than 67108864 bytes/,
    ],
    ["a line that does", Array.from({ length: 9 }, () => "+".repeat(8e6)), /more than 67108864 bytes/],
  ])("%s", (_, pieces, reason) => {
    expect(() => check(...pieces)).toThrow(reason);
    expect(() => check(...pieces)).toThrow(UnfitAnswer);
    expect(() => check(`*1\r\n+geheim\r\n${pieces[0]}`, ...pieces.slice(1))).not.toThrow(/geheim/);
  });
});

test("what servers answer is not refused", () => {
  const values = [
    "$-1\r\n",
    "*-1\r\n",
    "_\r\n",
    "*0\r\n",
    "%0\r\n",
    text(0, "\r\n"),
    ":-5\r\n",
    ":+5\r\n",
    "#t\r\n",
    ",inf\r\n",
  ];
  check(...values, "(-123456789012345678901234567890\r\n", "=6\r\ntxt:ab\r\n", "!5\r\nERR x\r\n", "-\r\n", "+\r\n");
  check(`*${values.length}\r\n`, ...values);
  check("*262100\r\n", "%1\r\n+a\r\n*1\r\n", "*1\r\n".repeat(13), text(3, "a\nb\r\n"));
  const large = text(60_000_000, `${"x".repeat(6e7)}\r\n`);
  check(large, large, `-NOSCRIPT ${"x".repeat(6e7)}\r\n`);
});

test("a line that comes byte by byte is a line", () => {
  const framing = new RedisFraming();
  const passed = Array.from("-ERR x\r\n:12\r\n", (byte) => framing.passed(Buffer.from(byte)).toString());
  expect(passed.filter((bytes) => bytes !== "")).toEqual(["-ERR x\r\n", ":12\r\n"]);
  const plus = Buffer.from("+");
  for (let count = 0; count < 1_000_000; count++) framing.passed(plus);
  expect(framing.passed(Buffer.from("\r\n:1")).length).toBe(1_000_002);
  expect(framing.passed(Buffer.from("2\r\n")).toString()).toBe(":12\r\n");
});

interface Reader {
  write(bytes: Buffer): void;
}

const { Decoder } = createRequire(import.meta.url)("ioredis/built/resp/decoder.js") as {
  readonly Decoder: new (listeners: Record<string, (value: unknown) => unknown>) => Reader;
};

/** Types as the client itself has them read, by the character that each begins with. */
const AS_IT_IS_USED = Object.fromEntries(
  Object.entries({
    "+": Buffer,
    $: Buffer,
    "=": Buffer,
    "(": String,
    ",": Buffer,
    "#": Number,
    "%": Array,
    "~": Array,
  }).map(([character, type]) => [character.charCodeAt(0), type]),
);

/** The client's own reader. It counts what it reads; beyond `countMax` it would go on for ever, and fails. */
function reader(countMax: number) {
  let count = 0;
  const read = () => {
    if (++count > countMax) throw new Error("the client reads the same again");
  };
  const decoder = new Decoder({ onReply: read, onErrorReply: read, onPush: read, getTypeMapping: () => AS_IT_IS_USED });
  return { write: (bytes: Buffer) => decoder.write(bytes), count: () => count };
}

const { value: anyValue } = fc.letrec<{ value: string; list: string }>((tie) => ({
  list: fc
    .tuple(fc.constantFrom("*", "~", "%"), fc.array(tie("value"), { maxLength: 4, depthIdentifier: "list" }))
    .map(([type, values]) => {
      const members = type === "%" ? values.flatMap((value) => ["+key\r\n", value]) : values;
      return `${type}${values.length}\r\n${members.join("")}`;
    }),
  value: fc.oneof(
    { depthIdentifier: "list", depthSize: "small", maxDepth: 6 },
    fc.string({ unit: "binary-ascii", maxLength: 9 }).map((bytes) => text(bytes.length, `${bytes}\r\n`)),
    fc.constantFrom(
      "$-1\r\n",
      "*-1\r\n",
      "_\r\n",
      "+OK\r\n",
      "-ERR x\r\n",
      "#t\r\n",
      ":-12\r\n",
      ",1.5e3\r\n",
      "(12\r\n",
      "=7\r\ntxt:a\rb\r\n",
    ),
    tie("list"),
  ),
}));

const anyCuts = fc.array(fc.nat({ max: 80 }), { maxLength: 8 });

function piecesOf(bytes: Buffer, cuts: readonly number[]): readonly Buffer[] {
  const places = [0, ...cuts.filter((at) => at <= bytes.length).toSorted((one, other) => one - other), bytes.length];
  return places
    .slice(1)
    .map((end, index) => bytes.subarray(places[index], end))
    .filter(({ length }) => length > 0);
}

test("answers pass, wherever the network cuts them, and the client reads each once", () => {
  fc.assert(
    fc.property(fc.array(anyValue, { maxLength: 4 }), anyCuts, (values, cuts) => {
      const bytes = Buffer.from(values.join(""), "latin1");
      const framing = new RedisFraming();
      const client = reader(values.length);
      for (const piece of piecesOf(bytes, cuts)) {
        client.write(framing.passed(piece));
      }
      expect(client.count()).toBe(values.length);
    }),
    { numRuns: 2_000 },
  );
});

test("of garbled answers the client reads on in nothing that passes", () => {
  const anyGarbling = fc.tuple(
    fc.nat({ max: 60 }),
    fc.nat({ max: 4 }),
    fc.constantFrom(..."$*!=%>~-+_:,(#\r\n 069x", "\r\n", "$*\r\n", "=1\r\n", "$-9\r\n"),
  );
  let refusedCount = 0;
  fc.assert(
    fc.property(
      fc.array(anyValue, { minLength: 1, maxLength: 4 }),
      fc.array(anyGarbling, { minLength: 1, maxLength: 4 }),
      anyCuts,
      (values, garblings, cuts) => {
        let garbled = values.join("");
        for (const [at, length, word] of garblings) garbled = garbled.slice(0, at) + word + garbled.slice(at + length);
        const framing = new RedisFraming();
        const client = reader(garbled.length);
        for (const piece of piecesOf(Buffer.from(garbled, "latin1"), cuts)) {
          const passed = passedOrRefused(framing, piece);
          if (passed === undefined) {
            refusedCount++;
            return;
          }
          client.write(passed);
        }
      },
    ),
    { numRuns: 5_000 },
  );
  expect(refusedCount).toBeGreaterThan(1_000);
});

function passedOrRefused(framing: RedisFraming, piece: Buffer): Buffer | undefined {
  try {
    return framing.passed(piece);
  } catch (error) {
    expect(error).toBeInstanceOf(UnfitAnswer);
    return undefined;
  }
}
