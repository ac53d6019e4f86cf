/**
 * The other caller: an importer in a process of its own that leases run after run, a few milliseconds apart, while a row is played.
 * `go` begins; `halt` ends, and is answered with how long each lease took, how many runs there were, none under way any more, and on how many
 * new connections.
 */
import { randomBytes } from "node:crypto";
import http from "node:http";
import https from "node:https";
import { setTimeout as pause } from "node:timers/promises";

const PAUSE_MS = 3;

const [, , scheme, host, port, token] = process.argv;
const { Agent, request } = scheme === "https" ? https : http;
// Nobody knows the authority of a test's certificate; whom it asks, it was told by the test.
const agent = new Agent({ keepAlive: true, maxSockets: 1, rejectUnauthorized: false });
const holder = { name: "neighbour", host: "here", pid: process.pid, labels: {} };
let halting = new AbortController();
let worked = Promise.resolve();
let tookMs = [];
let runCount = 0;
let connectionCount = 0;
let failures = [];

process.on("message", async (word) => {
  if (word === "go") {
    halting = new AbortController();
    worked = work(halting.signal);
    return;
  }
  halting.abort();
  await worked;
  process.send({ tookMs, runCount, connectionCount, failures });
  [tookMs, runCount, connectionCount, failures] = [[], 0, 0, []];
});

async function work(halt) {
  while (!halt.aborted) {
    const beganAtMs = performance.now();
    try {
      const { status, text } = await lease();
      if (status === 201) runCount++;
      else failures.push(`${status} ${text.slice(0, 200)}`);
    } catch (error) {
      failures.push(error.message);
    }
    tookMs.push(performance.now() - beganAtMs);
    await pause(PAUSE_MS);
  }
}

function lease() {
  const nonce = randomBytes(16).toString("hex");
  const body = JSON.stringify({ runCount: 1, nonce, holder, lastRun: null, receipt: null, sentAtMs: Date.now() });
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  headers.authorization = `Bearer ${token}`;
  return new Promise((resolve, reject) => {
    const asked = request(
      { host, port, method: "POST", path: "/v1/namespaces/main/leases", agent, headers },
      (answer) => {
        if (!asked.reusedSocket) connectionCount++;
        let text = "";
        answer.setEncoding("utf8").on("data", (piece) => {
          text += piece;
        });
        answer.once("end", () => resolve({ status: answer.statusCode, text })).once("error", reject);
      },
    );
    asked.once("error", reject).end(body);
  });
}
