/**
 * Callers of the HTTP lease benchmark: keep-alive connections with one request in flight on each, written and parsed here, so that the
 * callers take as little as possible of a machine that they share with the server.
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { type Lease, ledgerIdOf, pathOf } from "@callnumber/protocol/api";

export interface Callers {
  /** Resolves to the latency of each call, in milliseconds. @throws Error at the first response that is no lease. */
  callFor(durationMs: number): Promise<number[]>;
  close(): void;
}

export async function connectCallers(
  serverUrl: string,
  { namespace, callerCount }: { readonly namespace: string; readonly callerCount: number },
): Promise<Callers> {
  const url = new URL(serverUrl);
  const path = pathOf("leases", { namespace });
  const callers = await Promise.all(Array.from({ length: callerCount }, (_, index) => connectCaller(url, path, index)));
  return {
    async callFor(durationMs) {
      const endMs = performance.now() + durationMs;
      return (await Promise.all(callers.map(({ callUntil }) => callUntil(endMs)))).flat();
    },
    close() {
      for (const { socket } of callers) socket.destroy();
    },
  };
}

const END_OF_HEAD = "\r\n\r\n";

async function connectCaller({ hostname, port, host }: URL, path: string, index: number) {
  const head = `POST ${path} HTTP/1.1\r\nhost: ${host}\r\ncontent-type: application/json\r\ncontent-length: `;
  const labels = { archive: "bench" };
  const holder = JSON.stringify({ name: `importer-${index}`, host: "bench-host", pid: 1000 + index, labels });
  const noncePrefix = randomBytes(12).toString("base64url");
  /** What a real importer proves: the last run that it was leased. */
  let evidence = '"lastRun":null,"proof":null';
  let calls = 0;
  let received = "";
  let pending: { resolve(response: string): void; reject(error: Error): void } | undefined;

  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  await once(socket, "connect");
  socket.setEncoding("latin1");
  socket.on("close", () => pending?.reject(new Error("the server closed the connection")));
  socket.on("data", (chunk: string) => {
    received += chunk;
    const headEnd = received.indexOf(END_OF_HEAD);
    if (headEnd < 0) return;
    const [, bodyLength] = /content-length: (\d+)/i.exec(received.slice(0, headEnd)) ?? [];
    if (received.length < headEnd + END_OF_HEAD.length + Number(bodyLength)) return;
    const response = received;
    received = "";
    pending?.resolve(response);
  });

  const call = () => {
    const nonce = `${noncePrefix}-${++calls}`;
    const body = `{"runCount":1,"nonce":"${nonce}","holder":${holder},${evidence},"sentAtMs":${Date.now()}}`;
    return new Promise<string>((resolve, reject) => {
      pending = { resolve, reject };
      socket.write(`${head}${body.length}${END_OF_HEAD}${body}`);
    });
  };
  const callUntil = async (endMs: number) => {
    const latenciesMs: number[] = [];
    for (let startedAtMs = performance.now(); startedAtMs < endMs; ) {
      const response = await call();
      if (!response.startsWith("HTTP/1.1 201")) throw new Error(`not a lease: ${response}`);
      const lease = JSON.parse(response.slice(response.indexOf(END_OF_HEAD))) as Lease;
      evidence = `"lastRun":${ledgerIdOf(lease.version, lease.firstRun + lease.runCount - 1)},"proof":"${lease.proof}"`;
      const nowMs = performance.now();
      latenciesMs.push(nowMs - startedAtMs);
      startedAtMs = nowMs;
    }
    return latenciesMs;
  };
  return { socket, callUntil };
}
