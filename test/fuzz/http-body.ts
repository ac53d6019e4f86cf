/**
 * JSON that clients send to a coordinator: valid bodies made wrong, place by place and byte by byte. Each response is one of ours, a lease
 * is only granted to a request for one, no run is leased twice, and without a valid token nothing is done.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { ERROR_RULES, isErrorCode, type Lease } from "@callnumber/protocol/wire";
import { callnumber, folderForTest, serve } from "../processes/command.js";
import { type Draw, type FuzzTarget, mutated } from "./inputs.js";

const NONCE = "nonce-0123456789";
const HOLDER = { name: "importer", host: "mail-1", pid: 4711, labels: { archive: "lists" } };
const LEASE = { runCount: 2, nonce: NONCE, holder: HOLDER, lastRun: null, proof: null, sentAtMs: 1_700_000_000_000 };
const REPORT = { nonce: NONCE, lastSequence: 7, state: "open" };
const NAMESPACE = "/v1/namespaces/main";
/** The first one more often: it moves the high-water mark. */
const REQUESTS = [
  { path: `${NAMESPACE}/leases`, body: LEASE },
  { path: `${NAMESPACE}/leases`, body: { ...LEASE, runCount: 64, lastRun: 1, spareRunCount: 0 } },
  { path: `${NAMESPACE}/leases`, body: { ...LEASE, report: { run: 1, ...REPORT } } },
  { path: `${NAMESPACE}/runs/1/report`, body: REPORT },
];

export const httpBody: FuzzTarget = {
  name: "http-body",
  shortCount: 1_000,
  async start() {
    const open = await serve("memory:", "--log-level", "silent");
    const tokens = ["--tokens-file", join(await folderForTest(), "tokens")];
    const { stdout } = await callnumber(["token", "create", ...tokens, "--role", "lease", "--namespace", "main"]);
    const closed = await serve("memory:", "--log-level", "silent", ...tokens);
    const wrong = wrongAuthorizations(stdout.trim());
    let lastRun = 0;
    return {
      input,
      async check(bytes) {
        const [request = 0, authorization = 0] = bytes;
        const { path } = REQUESTS[request % REQUESTS.length] as (typeof REQUESTS)[number];
        const body = bytes.subarray(2);
        const { status, text } = await post(open.url + path, body);
        mustBeOurs(status, text);
        if (status === 201 && path.endsWith("/leases")) {
          const lease = JSON.parse(text) as Lease;
          verifyRequestedCount(lease, JSON.parse(body.toString("utf8")));
          assert(lease.firstRun > lastRun, `run ${lease.firstRun} was leased after run ${lastRun}`);
          lastRun = lease.firstRun + lease.runCount - 1;
        }
        assert.equal(({} as { polluted?: unknown }).polluted, undefined, "the prototype of all objects was changed");
        const headers = wrong[authorization % wrong.length] ?? {};
        assert.equal((await post(closed.url + path, body, headers)).status, 401);
        assert.equal((await fetch(`${open.url}/healthz`)).status, 200);
      },
    };
  },
};

/** The number of the request, that of the authorization, and the body. */
function input(draw: Draw): Buffer {
  const request = draw.onceIn(2) ? 0 : draw.below(REQUESTS.length);
  return Buffer.concat([Buffer.of(request, draw.below(256)), mutatedJson(REQUESTS[request]?.body, draw)]);
}

function wrongAuthorizations(token: string): readonly Record<string, string>[] {
  const almost = token.slice(0, -1);
  const words = [almost, `${token}A`, token.toUpperCase(), `${almost}${token.endsWith("A") ? "B" : "A"}`, "", "cn_"];
  const bearers = words.map((word) => ({ authorization: `Bearer ${word}` }));
  return [{}, ...bearers, { authorization: token }, { authorization: `Basic ${token}` }];
}

async function post(url: string, body: Buffer, headers: Readonly<Record<string, string>> = {}) {
  const response = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: new Uint8Array(body),
  });
  return { status: response.status, text: await response.text() };
}

/** @throws Error for a response that no client understands, and for an internal error. */
function mustBeOurs(status: number, text: string): void {
  if (status < 400) return;
  const { code } = JSON.parse(text) as { code?: unknown };
  assert(isErrorCode(code), `${status}: "${String(code)}" is no error code`);
  assert.notEqual(code, "internal_error", text);
  assert.equal(ERROR_RULES[code].httpStatus, status);
}

/** What the API promises of a lease, checked without its schema. */
function verifyRequestedCount({ runCount, nonce }: Lease, asked: typeof LEASE): void {
  assert(Number.isInteger(asked.runCount) && asked.runCount >= 1 && asked.runCount <= 64);
  assert(runCount >= 1 && runCount <= asked.runCount);
  assert.equal(nonce, asked.nonce);
  assert.match(nonce, /^[\w-]{16,64}$/);
  for (const text of [asked.holder.name, asked.holder.host]) assert.doesNotMatch(text, /^$|\p{Cc}/u);
  assert.deepEqual(Object.keys(asked.holder).sort(), Object.keys(HOLDER).sort());
}

/**
 * A JSON value as it is written: an object's members in order, so that a key may be in it twice. It can be what `JSON.stringify` never
 * writes, as the key `__proto__`.
 */
type Written = string | Written[] | { members: Member[] };
type Member = [key: string, value: Written];

/** In place of any value: as JSON text. */
const ODD_NUMBERS = "-0 -1 0 1 0.5 1e400 1e2 64 65 16384 1073741824 9007199254740992".split(" ");
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
function mutatedJson(value: unknown, draw: Draw): Buffer {
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
