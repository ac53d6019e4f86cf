/**
 * Callers of the HTTP lease benchmark: keep-alive connections with one request under way on each, written and read by hand, so
 * that the callers' own work takes as little as possible of a machine that they share with the server.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import type { Lease } from "@callnumber/protocol/wire";
import { ledgerIdOf, ROUTES } from "@callnumber/protocol/wire";

export interface CallsMeasured {
  readonly leaseCount: number;
  readonly durationMs: number;
  /** Of each call, ms. */
  readonly latenciesMs: readonly number[];
}

/** Calls for `durationMs` over `callerCount` connections. @throws Error at the first answer that is no lease. */
export async function callFor(
  serverUrl: string,
  { namespace, callerCount, durationMs }: { namespace: string; callerCount: number; durationMs: number },
): Promise<{ readonly run: () => Promise<CallsMeasured>; readonly end: () => void }> {
  const { hostname, port, host } = new URL(serverUrl);
  const path = ROUTES.leases.replace(/:namespace|\{namespace\}/, namespace);
  const head = `POST ${path} HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\ncontent-length: `;
  const callers = await Promise.all(
    Array.from({ length: callerCount }, async (_, index) => {
      const socket = connect({ host: hostname, port: Number(port), noDelay: true });
      await once(socket, "connect");
      return new Caller(socket, head, index);
    }),
  );
  return {
    async run() {
      const startMs = performance.now();
      const latencies = await Promise.all(callers.map((caller) => caller.callUntil(startMs + durationMs)));
      const latenciesMs = latencies.flat();
      return { leaseCount: latenciesMs.length, durationMs: performance.now() - startMs, latenciesMs };
    },
    end() {
      for (const caller of callers) caller.end();
    },
  };
}

const END_OF_HEAD = "\r\n\r\n";

class Caller {
  readonly #socket: Socket;
  readonly #head: string;
  readonly #holder: string;
  readonly #nonceStart = randomBytes(12).toString("base64url");
  #calls = 0;
  /** What a real importer proves: the last run it holds. */
  #held = '"lastRun":null,"receipt":null';
  #received = "";
  #onAnswer: (answer: string) => void = () => {};

  constructor(socket: Socket, head: string, index: number) {
    this.#socket = socket;
    this.#head = head;
    const labels = { archive: "bench" };
    this.#holder = JSON.stringify({ name: `importer-${index}`, host: "bench-host", pid: 1000 + index, labels });
    socket.setEncoding("latin1");
    socket.on("data", (part: string) => this.#hear(part));
  }

  async callUntil(endMs: number): Promise<number[]> {
    const latenciesMs: number[] = [];
    for (let nowMs = performance.now(); nowMs < endMs; ) {
      this.#keep(await this.#call());
      const answeredMs = performance.now();
      latenciesMs.push(answeredMs - nowMs);
      nowMs = answeredMs;
    }
    return latenciesMs;
  }

  end(): void {
    this.#socket.destroy();
  }

  #call(): Promise<string> {
    const nonce = `${this.#nonceStart}-${++this.#calls}`;
    const body = `{"runCount":1,"nonce":"${nonce}","holder":${this.#holder},${this.#held},"sentAtMs":${Date.now()}}`;
    return new Promise((resolve, reject) => {
      this.#onAnswer = resolve;
      this.#socket.once("close", () => reject(new Error("the server closed the connection")));
      this.#socket.write(`${this.#head}${body.length}${END_OF_HEAD}${body}`);
    }).finally(() => this.#socket.removeAllListeners("close")) as Promise<string>;
  }

  #hear(part: string): void {
    this.#received += part;
    const headEnd = this.#received.indexOf(END_OF_HEAD);
    if (headEnd < 0) return;
    const [, bodyLength] = /content-length: (\d+)/i.exec(this.#received.slice(0, headEnd)) ?? [];
    const end = headEnd + END_OF_HEAD.length + Number(bodyLength);
    if (this.#received.length < end) return;
    const answer = this.#received;
    this.#received = "";
    this.#onAnswer(answer);
  }

  #keep(answer: string): void {
    if (!answer.startsWith("HTTP/1.1 201")) throw new Error(`no lease: ${answer}`);
    const lease = JSON.parse(answer.slice(answer.indexOf(END_OF_HEAD))) as Lease;
    const lastRun = ledgerIdOf(lease.version, lease.firstRun + lease.runCount - 1);
    this.#held = `"lastRun":${lastRun},"receipt":"${lease.receipt}"`;
  }
}
