/** JSON values made wrong, place by place, and written as text: also what `JSON.stringify` never writes, as the key `__proto__`. */
import type { Draw } from "./campaign.js";
import { mutated } from "./mutation.js";

/** A value as it is written: an object's members in order, so that a key may be in it twice. */
type Written = string | Written[] | { members: Member[] };
type Member = [key: string, value: Written];

/** In place of any value: as JSON text. */
const ODD_NUMBERS = [
  "-0",
  "-1",
  "0",
  "1",
  "0.5",
  "1e400",
  "1e2",
  "64",
  "65",
  "16384",
  "1073741824",
  "9007199254740992",
];
const ODD_TEXTS = [
  "",
  " ",
  "64",
  "0x10",
  "\u0000",
  "\u001b[31m",
  "\u202e",
  "\ufeff",
  "é",
  "😀",
  "__proto__",
  "a=b",
  "../",
];
const ODD_VALUES = [
  "null",
  "true",
  "[]",
  "[null]",
  "{}",
  '"\\ud800"',
  '{"polluted":true}',
  ...ODD_NUMBERS,
  ...ODD_TEXTS.map((text) => JSON.stringify(text)),
];
const KEYS = ["__proto__", "constructor", "prototype", "toString", "", "0", "x", "A", "nonce", "run"];
const LETTERS = ["a", "-", "é", "😀", " ", "\\u0007"];
const LENGTHS = [1, 15, 16, 32, 33, 43, 44, 63, 64, 65, 253, 254, 1_000, 5_000];
/** Within the 4 KiB of a body. */
const DEPTH = 1_500;

/** Returns the value with up to three of its places changed, as JSON text; sometimes with its bytes changed, too. */
export function mutatedJson(value: unknown, draw: Draw): Buffer {
  const root = { members: [["", writtenOf(value)]] as Member[] };
  for (let count = draw.below(4); count > 0; count--) changeSomewhere(root, draw);
  const text = Buffer.from(textOf(root.members[0]?.[1] ?? "null"));
  return draw.onceIn(10) ? mutated(text, draw) : text;
}

function writtenOf(value: unknown): Written {
  if (Array.isArray(value)) return value.map(writtenOf);
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  return { members: Object.entries(value).map(([key, member]) => [key, writtenOf(member)]) };
}

function textOf(written: Written): string {
  if (typeof written === "string") return written;
  if (Array.isArray(written)) return `[${written.map(textOf).join(",")}]`;
  return `{${written.members.map(([key, value]) => `${JSON.stringify(key)}:${textOf(value)}`).join(",")}}`;
}

/** Goes down into the value for as long as the draws say so, and changes the member that it has come to. */
function changeSomewhere(object: { members: Member[] }, draw: Draw): void {
  const member = object.members[draw.below(object.members.length)];
  if (member === undefined) return;
  const [key, value] = member;
  if (typeof value === "object" && !Array.isArray(value) && !draw.onceIn(3)) return changeSomewhere(value, draw);
  const changes: readonly (() => void)[] = [
    () => (member[1] = draw.oneOf(ODD_VALUES)),
    () => (member[1] = String(draw.oneOf([0, 64, 16_383, 2 ** 30, 2 ** 33]) + draw.below(3) - 1)),
    () => (member[1] = `"${draw.oneOf(LETTERS).repeat(draw.oneOf(LENGTHS))}${draw.oneOf(["", "!", "\\n"])}"`),
    () => (member[1] = [value]),
    () => (member[1] = `${"[".repeat(DEPTH)}${"]".repeat(DEPTH)}`),
    () => (member[0] = draw.oneOf(KEYS)),
    () => void object.members.splice(object.members.indexOf(member), 1),
    () => object.members.push([draw.onceIn(2) ? key : draw.oneOf(KEYS), draw.oneOf(ODD_VALUES)]),
  ];
  draw.oneOf(changes)();
}
