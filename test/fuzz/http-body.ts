/**
 * JSON that clients send to a coordinator: valid bodies made wrong, place by place and byte by byte. Each response is one of ours, a lease
 * is only granted to a request that asks for one, no run is leased twice, and without a valid token nothing is done.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { ERROR_RULES, isErrorCode, type Lease } from "@callnumber/protocol/wire";
import { callnumber, folderForTest, serve } from "../processes/command.js";
import type { Draw, FuzzTarget } from "./campaign.js";
import { mutatedJson } from "./json-body.js";

const NONCE = "nonce-0123456789";
const HOLDER = { name: "importer", host: "mail-1", pid: 4711, labels: { archive: "lists" } };
const LEASE = { runCount: 2, nonce: NONCE, holder: HOLDER, lastRun: null, receipt: null, sentAtMs: 1_700_000_000_000 };
const NAMESPACE = "/v1/namespaces/main";
/** The first one more often: it moves the high-water mark. */
const REQUESTS = [
  { path: `${NAMESPACE}/leases`, body: LEASE },
  { path: `${NAMESPACE}/leases`, body: { ...LEASE, runCount: 64, lastRun: 1, spareRunCount: 0 } },
  { path: `${NAMESPACE}/runs/1/report`, body: { nonce: NONCE, lastSequence: 7, state: "open" } },
  { path: `${NAMESPACE}/labels`, body: { labels: { archive: "lists" } } },
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
