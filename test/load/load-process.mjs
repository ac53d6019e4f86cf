/**
 * Callers of a coordinator, as a process of their own: keep-alive connections, written and read by hand, so that the callers' work takes
 * as little as possible of a machine that they share with the server. The first parameter is JSON: `url`, `namespace`, `name`, and
 * `address`, the one of this machine from which it asks.
 *
 * The message `{ callers }` makes connections and is answered when the server has taken them all. The next one asks for a load over them, and is answered
 * when it is over and they are closed: `durationMs`, and `perSecond` for an open loop, in which a request is
 * sent when its time has come, however long others take; without it each caller asks again as soon as it is answered. With `isPatient` a caller that
 * is turned away stays away for as long as it is told, and at random up to as long again, as the client does.
 * The message `runs` is answered with every run that was leased to this process, as one bit each.
 */
import { randomBytes } from "node:crypto";
import { connect } from "node:net";
import process from "node:process";

const { url, namespace, name, address } = JSON.parse(process.argv[2]);
const { hostname, port, host } = new URL(url);
const HEAD = `POST /v1/namespaces/${namespace}/leases HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\ncontent-length: `;
const END_OF_HEAD = "\r\n\r\n";
const LENGTH = "content-length: ";
const CODES = ["overloaded", "rate_limited"];
/** A request that is not answered within this hangs: counted, and its connection given up. */
const HANGS_AFTER_MS = 30_000;
/** Steps of the histogram, of 2 % each, from a microsecond on. */
const STEP = Math.log(1.02);
const LATE_MS = 5;

/** Runs leased to this process, one bit each, and those that came twice. */
let runs = new Uint8Array(1 << 16);
let repeatedCount = 0;

let tally;
let callers = [];

process.on("message", async (message) => {
  if (message === "runs") process.send({ runs: Buffer.from(runs).toString("base64"), repeatedCount });
  else if (message.callers === undefined) process.send(await play(message));
  else process.send(await connectAll(message.callers));
});
process.once("disconnect", () => process.exit(0));
process.send("ready");

async function connectAll(count) {
  tally = { due: 0, sent: 0, late: 0, served: 0, runs: 0, shed: {}, unanswered: 0, ms: [] };
  callers = await Promise.all(Array.from({ length: count }, (_, index) => Caller.connected(index)));
  return "connected";
}

async function play({ durationMs, perSecond, isPatient }) {
  const startMs = performance.now();
  if (perSecond === undefined) await Promise.all(callers.map((caller) => caller.askUntil(startMs + durationMs)));
  else await askByTheClock({ startMs, durationMs, perSecond, isPatient });
  const tookMs = performance.now() - startMs;
  for (const caller of callers) caller.end();
  return { ...tally, tookMs };
}

async function askByTheClock({ startMs, durationMs, perSecond, isPatient }) {
  const free = [...callers];
  const asked = new Set();
  for (;;) {
    const nowMs = performance.now();
    const elapsedMs = Math.min(nowMs - startMs, durationMs);
    const due = Math.floor((elapsedMs * perSecond) / 1_000);
    while (tally.due < due) {
      const dueMs = startMs + (tally.due * 1_000) / perSecond;
      tally.due++;
      const caller = free.pop();
      // All wait for an answer: what is not sent has nobody who could be told anything.
      if (caller === undefined) continue;
      if (nowMs - dueMs > LATE_MS) tally.late++;
      const answered = caller.ask().then(() => {
        asked.delete(answered);
        if (caller.isBroken) return;
        const pauseMs = isPatient ? caller.pauseMs() : 0;
        if (pauseMs === 0) free.unshift(caller);
        else setTimeout(() => free.unshift(caller), pauseMs).unref();
      });
      asked.add(answered);
    }
    if (elapsedMs >= durationMs) break;
    await new Promise((resolve) => setTimeout(resolve, 1));
  }
  await Promise.all(asked);
}

class Caller {
  isBroken = false;
  #socket;
  #holder;
  #nonceStart = randomBytes(12).toString("base64url");
  #calls = 0;
  /** What a real importer proves: the last run that it holds. */
  #held = '"lastRun":null,"receipt":null';
  #received = "";
  #sentAtMs = 0;
  #toldToWaitMs = 0;
  #onAnswered = () => {};

  static connected(index) {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: hostname, port: Number(port), localAddress: address, noDelay: true });
      socket.once("connect", () => {
        const caller = new Caller(socket, index);
        caller.#greet().then(() => resolve(caller));
      });
      socket.once("error", reject);
    });
  }

  constructor(socket, index) {
    this.#socket = socket;
    this.#holder = JSON.stringify({ name: `${name}-${index}`, host: "load", pid: 1000 + index, labels: {} });
    socket.setEncoding("latin1");
    socket.on("data", (part) => this.#hear(part));
    socket.on("error", () => {});
    socket.on("close", () => this.#break());
    socket.setTimeout(HANGS_AFTER_MS, () => socket.destroy());
  }

  /** Node takes one new connection in each turn of its event loop: connected is only who was answered once. */
  #greet() {
    return new Promise((resolve) => {
      this.#onAnswered = resolve;
      this.#socket.write(`GET /healthz HTTP/1.1\r\nhost: ${host}${END_OF_HEAD}`, "latin1");
    });
  }

  async askUntil(endMs) {
    while (performance.now() < endMs && !this.isBroken) await this.ask();
  }

  /** Resolves when it is answered, or never will be. */
  ask() {
    tally.sent++;
    const nonce = `${this.#nonceStart}${(this.#calls++).toString(36).padStart(6, "0")}`;
    const body = `{"runCount":1,"nonce":"${nonce}","holder":${this.#holder},${this.#held},"sentAtMs":${Date.now()}}`;
    return new Promise((resolve) => {
      this.#onAnswered = resolve;
      this.#sentAtMs = performance.now();
      this.#socket.write(`${HEAD}${body.length}${END_OF_HEAD}${body}`, "latin1");
    });
  }

  /** How long to stay away after the last answer. */
  pauseMs() {
    return this.#toldToWaitMs * (1 + Math.random());
  }

  end() {
    this.#onAnswered = () => {};
    this.isBroken = true;
    this.#socket.destroy();
  }

  #hear(part) {
    this.#received += part;
    const headEnd = this.#received.indexOf(END_OF_HEAD);
    if (headEnd < 0) return;
    const bodyAt = headEnd + END_OF_HEAD.length;
    const length = Number.parseInt(this.#received.slice(this.#received.indexOf(LENGTH) + LENGTH.length, headEnd), 10);
    if (this.#received.length < bodyAt + length) return;
    const status = this.#received.slice(9, 12);
    const body = this.#received.slice(bodyAt);
    this.#received = "";
    this.#toldToWaitMs = status === "201" ? 0 : (JSON.parse(body).retryAfterMs ?? 0);
    if (status === "201") this.#keep(JSON.parse(body));
    else if (status !== "200") this.#noteShed(status, body);
    this.#onAnswered();
  }

  #keep({ version, firstRun, runCount, receipt }) {
    tally.served++;
    tally.runs += runCount;
    const step = Math.max(Math.round(Math.log((performance.now() - this.#sentAtMs) * 1_000) / STEP), 0);
    tally.ms[step] = (tally.ms[step] ?? 0) + 1;
    for (let run = firstRun; run < firstRun + runCount; run++) noteRun(run);
    this.#held = `"lastRun":${version * 2 ** 30 + firstRun + runCount - 1},"receipt":"${receipt}"`;
  }

  #noteShed(status, body) {
    const known = CODES.find((one) => body.includes(`"code":"${one}"`));
    const told = known ?? `${status} ${body.slice(0, 200)}`;
    tally.shed[told] = (tally.shed[told] ?? 0) + 1;
  }

  #break() {
    if (this.isBroken) return;
    this.isBroken = true;
    tally.unanswered++;
    this.#onAnswered();
  }
}

function noteRun(run) {
  const [place, bit] = [run >>> 3, 1 << (run & 7)];
  if (place >= runs.length) {
    const larger = new Uint8Array(Math.max(runs.length * 2, place + 1));
    larger.set(runs);
    runs = larger;
  }
  if ((runs[place] & bit) !== 0) repeatedCount++;
  runs[place] |= bit;
}
