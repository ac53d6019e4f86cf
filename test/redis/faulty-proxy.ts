/** A TCP proxy between a client and a real Redis that does to answers, on order, what networks do. Knows nothing of what passes through. */

import type { AddressInfo } from "node:net";
import { connect, createServer, type Socket } from "node:net";

export interface FaultyProxy {
  readonly port: number;
  /** From now on answers are swallowed; commands still arrive. */
  swallowAnswers(): void;
  /** From now on answers are held back; commands still arrive. */
  holdAnswers(): void;
  /** Lets the answers go that were held back, on whatever is left of their connections. */
  releaseAnswers(): void;
  /** From now on each answer is given once more, in front of the next one. */
  repeatAnswers(): void;
  /** Of the next answers only so many bytes pass; then every connection is cut, and all is as before. */
  cutInAnswers(byteCount: number): void;
  /** Answers pass again, on connections made from now on; the old ones are cut. */
  heal(): void;
  close(): Promise<void>;
}

/** What becomes of a piece of an answer. */
type Fault = (chunk: Buffer, client: Socket) => void;

const PASS: Fault = (chunk, client) => client.write(chunk);

export async function startFaultyProxy(target: { readonly host: string; readonly port: number }): Promise<FaultyProxy> {
  const sockets = new Set<Socket>();
  const held: (() => void)[] = [];
  let fault = PASS;
  const server = createServer((client) => {
    const upstream = connect(target.port, target.host);
    for (const socket of [client, upstream]) {
      sockets.add(socket);
      socket.on("error", () => {});
      socket.on("close", () => {
        sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    client.on("data", (chunk) => upstream.write(chunk));
    upstream.on("data", (chunk) => fault(chunk, client));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const cutAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    swallowAnswers() {
      fault = () => {};
    },
    holdAnswers() {
      fault = (chunk, client) => held.push(() => PASS(chunk, client));
    },
    releaseAnswers() {
      fault = PASS;
      for (const release of held.splice(0)) release();
    },
    repeatAnswers() {
      const before = new Map<Socket, Buffer>();
      fault = (chunk, client) => {
        client.write(Buffer.concat([before.get(client) ?? Buffer.alloc(0), chunk]));
        before.set(client, chunk);
      };
    },
    cutInAnswers(byteCount) {
      let left = byteCount;
      fault = (chunk, client) => {
        const passed = chunk.subarray(0, left);
        left -= passed.length;
        if (left > 0) return PASS(passed, client);
        fault = PASS;
        // Not before the last piece has gone out.
        client.write(passed, cutAll);
      };
    },
    heal() {
      fault = PASS;
      cutAll();
    },
    close() {
      cutAll();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
