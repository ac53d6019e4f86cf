/** A TCP proxy between a client and a real Redis that loses answers on order. Knows nothing of what passes through. */

import type { AddressInfo } from "node:net";
import { connect, createServer, type Socket } from "node:net";

export interface FaultyProxy {
  readonly port: number;
  /** From now on answers are swallowed; commands still arrive. */
  swallowAnswers(): void;
  /** Answers pass again, on connections made from now on; the old ones are cut. */
  heal(): void;
  close(): Promise<void>;
}

export async function startFaultyProxy(target: { readonly host: string; readonly port: number }): Promise<FaultyProxy> {
  const sockets = new Set<Socket>();
  let swallows = false;
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
    upstream.on("data", (chunk) => {
      if (!swallows) client.write(chunk);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const cutAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    swallowAnswers() {
      swallows = true;
    },
    heal() {
      swallows = false;
      cutAll();
    },
    close() {
      cutAll();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
