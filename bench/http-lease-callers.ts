/**
 * Callers of the HTTP lease benchmark: keep-alive connections with one request in flight on each, written and read by hand, so that
 * the callers take as little as possible of a machine that they share with the server.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { type Lease, ledgerIdOf, pathOf } from "@callnumber/protocol/wire";

export interface Callers {
  /** Resolves to the latency of each call, in milliseconds. @throws Error at the first response that is no lease. */
  callFor(durationMs: number): Promise<number[]>;
  close(): void;
}

export async function connectCallers(
  serverUrl: string,
  { namespace, callerCount }: { readonly namespace: string; readonly callerCount: number },
): Promise<Callers> {
  const { hostname, port, host } = new URL(serverUrl);
  const path = pathOf("leases", { namespace });
  const head = `POST ${path} HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\ncontent-length: `;
  const callers = await Promise.all(
    Array.from({ length: callerCount }, async (_, index) => {
      const socket = connect({ host: hostname, port: Number(port), noDelay: true });
      await once(socket, "connect");
      return new Caller(socket, head, index);
    }),
  );
  return {
    async callFor(durationMs) {
      const endMs = performance.now() + durationMs;
      return (await Promise.all(callers.map((caller) => caller.callUntil(endMs)))).flat();
    },
    close() {
      for (const caller of callers) caller.close();
    },
  };
}

const END_OF_HEAD = "\r\n\r\n";

class Caller {
  readonly #socket: Socket;
  readonly #head: string;
  readonly #holder: string;
  readonly #noncePrefix = randomBytes(12).toString("base64url");
  #calls = 0;
  /** What a real importer proves: the last run that it was leased. */
  #proof = '"lastRun":null,"receipt":null';
  #received = "";
  #onResponse: (response: string) => void = () => {};

  constructor(socket: Socket, head: string, index: number) {
    this.#socket = socket;
    this.#head = head;
    const labels = { archive: "bench" };
    this.#holder = JSON.stringify({ name: `importer-${index}`, host: "bench-host", pid: 1000 + index, labels });
    socket.setEncoding("latin1");
    socket.on("data", (chunk: string) => this.#receive(chunk));
  }

  async callUntil(endMs: number): Promise<number[]> {
    const latenciesMs: number[] = [];
    for (let startedAtMs = performance.now(); startedAtMs < endMs; ) {
      this.#remember(await this.#call());
      const nowMs = performance.now();
      latenciesMs.push(nowMs - startedAtMs);
      startedAtMs = nowMs;
    }
    return latenciesMs;
  }

  close(): void {
    this.#socket.destroy();
  }

  #call(): Promise<string> {
    const nonce = `${this.#noncePrefix}-${++this.#calls}`;
    const body = `{"runCount":1,"nonce":"${nonce}","holder":${this.#holder},${this.#proof},"sentAtMs":${Date.now()}}`;
    return new Promise((resolve, reject) => {
      this.#onResponse = resolve;
      this.#socket.once("close", () => reject(new Error("the server closed the connection")));
      this.#socket.write(`${this.#head}${body.length}${END_OF_HEAD}${body}`);
    }).finally(() => this.#socket.removeAllListeners("close")) as Promise<string>;
  }

  #receive(chunk: string): void {
    this.#received += chunk;
    const headEnd = this.#received.indexOf(END_OF_HEAD);
    if (headEnd < 0) return;
    const [, bodyLength] = /content-length: (\d+)/i.exec(this.#received.slice(0, headEnd)) ?? [];
    if (this.#received.length < headEnd + END_OF_HEAD.length + Number(bodyLength)) return;
    const response = this.#received;
    this.#received = "";
    this.#onResponse(response);
  }

  #remember(response: string): void {
    if (!response.startsWith("HTTP/1.1 201")) throw new Error(`not a lease: ${response}`);
    const lease = JSON.parse(response.slice(response.indexOf(END_OF_HEAD))) as Lease;
    const lastRun = ledgerIdOf(lease.version, lease.firstRun + lease.runCount - 1);
    this.#proof = `"lastRun":${lastRun},"receipt":"${lease.receipt}"`;
  }
}
