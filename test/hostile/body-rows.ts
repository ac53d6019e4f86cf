/** Bodies that are no JSON, or JSON that can be read in two ways, or no lease: on the route that moves the mark. */
import { leaseBody, type Row, request, rightLease, rowOf } from "./row.js";

const right = leaseBody();
const name = (text: string) => leaseBody({ holder: { ...rightLease().holder, name: text } });
const holder = (changed: object) => leaseBody({ holder: { ...rightLease().holder, ...changed } });
/** The JSON of a right lease, with a text put into it as it is. */
const spliced = (text: string) => leaseBody().replace(/^\{/, `{${text},`);
const bytesInName = (bytes: number[]) => {
  const [before = "", after = ""] = name("@@").split("@@");
  return Buffer.concat([Buffer.from(before), Buffer.from(bytes), Buffer.from(after)]);
};
const nested = (open: string, close: string, depth: number) => open.repeat(depth) + close.repeat(depth);

const MALFORMED: readonly [input: string, body: string | Buffer, status?: number][] = [
  ["nothing", ""],
  ["blanks only", "   \r\n\t "],
  ["null", "null"],
  ["true", "true"],
  ["a number", "1"],
  ["a text", '"lease"'],
  ["an array", "[]"],
  ["an array around a lease", `[${right}]`],
  ["an opening brace", "{"],
  ["a lease cut in half", right.slice(0, right.length / 2)],
  ["a lease without its last brace", right.slice(0, -1)],
  ["a lease, and a brace more", `${right}}`],
  ["two leases in one body", right + right],
  ["a comma before the end", right.replace(/\}$/, ",}")],
  ["a comment", `${right}// run`],
  ["single quotes", right.replaceAll('"', "'")],
  ["NaN", right.replace('"runCount":1', '"runCount":NaN')],
  ["a hexadecimal number", right.replace('"runCount":1', '"runCount":0x1')],
  ["a number with a zero before it", right.replace('"runCount":1', '"runCount":01')],
  ["a byte order mark", `\uFEFF${right}`],
  ["UTF-16", Buffer.from(right, "utf16le")],
  ["a form", "runCount=1&nonce=0123456789abcdef"],
  ["XML", "<lease runCount='1'/>"],
  ["zeros", Buffer.alloc(64)],
  ["arrays, 2,000 deep", nested("[", "]", 2_000)],
  ["objects, 600 deep", `${'{"a":'.repeat(600)}1${"}".repeat(600)}`],
  ["arrays, 4,000 deep and never closed", "[".repeat(4_000)],
  ["4,097 bytes", right.padEnd(4_097), 413],
  ["a megabyte", right.padEnd(1_048_576), 413],
];

const KEYS: readonly [input: string, body: string][] = [
  ["runCount twice", spliced('"runCount":64')],
  ["runCount twice, once escaped", spliced('"run\\u0043ount":64')],
  ["a nonce twice", spliced(`"nonce":"${"b".repeat(32)}"`)],
  ["a holder's pid twice", leaseBody().replace('"pid":666', '"pid":666,"pid":1')],
  ["__proto__", spliced('"__proto__":{"runCount":64}')],
  ["__proto__, escaped", spliced('"\\u005f_proto__":{"runCount":64}')],
  ["__proto__ among labels", holder({}).replace('"labels":{}', '"labels":{"__proto__":"x"}')],
  ["constructor.prototype", spliced('"constructor":{"prototype":{"runCount":64}}')],
  ["an unknown key", spliced('"extra":1')],
  ["an unknown key of the holder", holder({ role: "operator" })],
  ["an empty key", spliced('"":1')],
  ["runCount in another case", right.replace("runCount", "runcount")],
];

const VALUES: readonly [input: string, body: string][] = [
  ...([0, -1, 65, 1.5, "1", null, true, [], {}, Number.MAX_SAFE_INTEGER] as const).map(
    (runCount) => [`runCount ${JSON.stringify(runCount)}`, leaseBody({ runCount })] as [string, string],
  ),
  ["runCount 1e999", right.replace('"runCount":1', '"runCount":1e999')],
  ["no runCount", leaseBody({ runCount: undefined })],
  ["a nonce of 15 characters", leaseBody({ nonce: "a".repeat(15) })],
  ["a nonce of 65 characters", leaseBody({ nonce: "a".repeat(65) })],
  ["a nonce with a brace", leaseBody({ nonce: "{aaaaaaaaaaaaaaaa}" })],
  ["a nonce that is a number", leaseBody({ nonce: 1234567890123456 })],
  ["no holder", leaseBody({ holder: null })],
  ["a holder's name of 65 characters", name("x".repeat(65))],
  ["a holder without a name", name("")],
  ["a host of 254 characters", holder({ host: "x".repeat(254) })],
  ["pid -1", holder({ pid: -1 })],
  ["pid 2^32", holder({ pid: 2 ** 32 })],
  ["nine labels", holder({ labels: Object.fromEntries([..."abcdefghi"].map((key) => [key, "x"])) })],
  ["a label's name with a blank", holder({ labels: { "a b": "x" } })],
  ["a label that is a number", holder({ labels: { a: 1 } })],
  ["labels that are an array", holder({ labels: ["a"] })],
  ["spareRunCount -1", leaseBody({ spareRunCount: -1 })],
  ["sentAtMs as a text", leaseBody({ sentAtMs: "now" })],
];

const TEXTS: readonly [input: string, body: string | Buffer][] = [
  ["the byte FF in a name", bytesInName([0xff])],
  ["an overlong slash in a name", bytesInName([0xc0, 0xaf])],
  ["a character cut short in a name", bytesInName([0xe2, 0x82])],
  ["an encoded surrogate in a name", bytesInName([0xed, 0xa0, 0x80])],
  ["beyond Unicode in a name", bytesInName([0xf4, 0x90, 0x80, 0x80])],
  ["a lone high surrogate in a name", right.replace('"hostile"', '"\\ud800"')],
  ["a lone low surrogate in a name", right.replace('"hostile"', '"\\udc00x"')],
  ["text turned right to left in a name", name("a\u202Egnp.exe")],
  ["an ANSI sequence in a name", name("\u001b[31mred\u001b[0m")],
  ["a C1 sequence in a name", name("\u009b2Jgone")],
  ["a line break in a name", name('a\n{"level":50,"msg":"forged"}')],
  ["NUL in a name", name("a\u0000b")],
  ["a line separator in a name", name("a\u2028b")],
  ["a character without width in a name", name("a\u200bb")],
  ["an ANSI sequence in an unknown key", spliced(`${JSON.stringify("\u001b[2J")}:1`)],
  ["a raw C1 sequence in an unknown key", spliced('"\u009b2J\u009bH":1')],
  ["a line break in an unknown key", spliced('"a\\n{\\"level\\":50}":1')],
  ["text turned right to left in an unknown key", spliced('"\u202Egnp.exe\u2066":1')],
  ["a lone surrogate in an unknown key", spliced('"\\udfff":1')],
  ["an unknown key of 3,000 characters", spliced(`"${"k".repeat(3_000)}":1`)],
  ["a raw line break in a text", right.replace('"hostile"', '"a\nb"')],
];

export const BODY_ROWS: readonly Row[] = [
  ...MALFORMED.map(([input, body, status = 400]) =>
    rowOf("body", input, status, (target) => request(target, { body })),
  ),
  ...KEYS.map(([input, body]) => rowOf("keys", input, 400, (target) => request(target, { body }))),
  ...VALUES.map(([input, body]) => rowOf("values", input, 400, (target) => request(target, { body }))),
  ...TEXTS.map(([input, body]) => rowOf("text", input, 400, (target) => request(target, { body }))),
];
