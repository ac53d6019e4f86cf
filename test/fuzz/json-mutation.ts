/** JSON values made wrong, place by place, and written as text: also what `JSON.stringify` never writes, as the key `__proto__`. */
import type { Draw } from "./draw.js";
import { mutated } from "./mutation.js";

/** A value as it is written: an object's members in order, so that keys may stand in it twice, and any of them may. */
type Written = string | Written[] | { members: [key: string, value: Written][] };

/** In place of any value: as JSON text. */
const ODD_TEXTS: readonly string[] = [
  "null",
  "true",
  "false",
  "0",
  "-0",
  "-1",
  "1",
  "0.5",
  "1e400",
  "-1e400",
  "1e-400",
  "1e2",
  "2147483648",
  "4294967296",
  "1073741823",
  "1073741824",
  "8589934591",
  "8589934592",
  "9007199254740992",
  "1e21",
  "16383",
  "16384",
  "64",
  "65",
  "[]",
  "[null]",
  "{}",
  '""',
  '" "',
  '"0"',
  '"64"',
  '"65"',
  '"1e2"',
  '"0x10"',
  '" 1 "',
  '"Infinity"',
  '"yes"',
  '"csv"',
  '"\\u0000"',
  '"\\u001b[31m"',
  '"\\ud800"',
  '"\\u202e"',
  '"\\u2028"',
  '"\\n"',
  '"\\u200b"',
  '"\\ue000"',
  '"\\ufeff"',
  '"é"',
  '"号"',
  '"😀"',
  '"__proto__"',
  '"constructor"',
  '"a=b=c"',
  '"="',
  '"a="',
  '"exhausted"',
  '"burnt"',
  '"../"',
  '"{*}"',
];
const KEYS = [
  "__proto__",
  "constructor",
  "prototype",
  "toString",
  "hasOwnProperty",
  "",
  "0",
  "x",
  "a.b",
  "A",
  "nonce",
  "run",
];
const LENGTHS = [1, 15, 16, 17, 32, 33, 43, 44, 62, 63, 64, 65, 253, 254, 4_096, 100_000] as const;
const LETTERS = ["a", "A", "0", "-", "_", "é", "😀", " ", ".", "\\u0007"] as const;
const BORDERS = [0, 64, 500, 16_383, 2 ** 30 - 1, 2 ** 32 - 1, 2 ** 33 - 1];
const DEEP = 5_000;
const SOME_MEMBERS = [1, 8, 9, 100] as const;

/** The value with some of its places changed, as JSON text; now and then with its bytes changed, too. */
export function mutatedJson(value: unknown, draw: Draw): Buffer {
  const root = { members: [["", writtenOf(value)]] as [string, Written][] };
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

interface Holder {
  members: [key: string, value: Written][];
}

function changeSomewhere(root: Holder, draw: Draw): void {
  let holder: Holder = root;
  for (;;) {
    const at = draw.below(holder.members.length);
    const member = holder.members[at];
    if (member === undefined) return;
    const inner = member[1];
    const isObject = typeof inner === "object" && !Array.isArray(inner);
    if (!isObject || draw.onceIn(3)) {
      draw.oneOf(holder === root ? ROOT_CHANGES : CHANGES)(holder, at, draw);
      return;
    }
    if (inner.members.length === 0 || draw.onceIn(4)) {
      addMember(inner, at, draw);
      return;
    }
    holder = inner;
  }
}

type Change = (holder: Holder, at: number, draw: Draw) => void;

const setOdd: Change = (holder, at, draw) => set(holder, at, draw.oneOf(ODD_TEXTS));
const setBorder: Change = (holder, at, draw) => set(holder, at, String(draw.oneOf(BORDERS) + draw.below(3) - 1));
const setLong: Change = (holder, at, draw) => set(holder, at, `"${draw.oneOf(LETTERS).repeat(draw.oneOf(LENGTHS))}"`);
const setLongTail: Change = (holder, at, draw) => {
  set(
    holder,
    at,
    `"${draw.oneOf(LETTERS).repeat(draw.oneOf(LENGTHS))}${draw.oneOf(["!", " ", "\\n", "=", "\\u0000"])}"`,
  );
};
const wrap: Change = (holder, at) => set(holder, at, [holder.members[at]?.[1] ?? "null"]);
const nestDeep: Change = (holder, at) => set(holder, at, `${"[".repeat(DEEP)}${"]".repeat(DEEP)}`);
const takeOut: Change = (holder, at) => void holder.members.splice(at, 1);
const rename: Change = (holder, at, draw) => {
  const member = holder.members[at];
  if (member !== undefined) member[0] = draw.oneOf(KEYS);
};
const addMember: Change = (holder, _at, draw) => {
  const isPoison = draw.onceIn(4);
  const value = isPoison ? '{"polluted":true}' : draw.onceIn(2) ? '"x"' : draw.oneOf(ODD_TEXTS);
  for (let count = draw.onceIn(3) ? draw.oneOf(SOME_MEMBERS) : 1; count > 0; count--) {
    const key = count === 1 ? draw.oneOf(KEYS) : `k${count}`;
    holder.members.splice(draw.below(holder.members.length + 1), 0, [key, value]);
  }
};
const twice: Change = (holder, at, draw) => {
  const [key = "x"] = holder.members[at] ?? [];
  holder.members.push([key, draw.oneOf(ODD_TEXTS)]);
};

const ROOT_CHANGES: readonly Change[] = [setOdd, wrap, nestDeep];
const CHANGES: readonly Change[] = [
  setOdd,
  setOdd,
  setBorder,
  setBorder,
  setLong,
  setLong,
  setLongTail,
  wrap,
  nestDeep,
  takeOut,
  rename,
  addMember,
  twice,
];

function set(holder: Holder, at: number, value: Written): void {
  const member = holder.members[at];
  if (member !== undefined) member[1] = value;
}
