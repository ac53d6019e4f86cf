/**
 * A TCP proxy between a client and a real Redis that loses, doubles, holds and reorders answers, on order.
 * Knows which answer belongs to which command, and nothing of what they mean. Commands always arrive.
 */

import type { AddressInfo } from "node:net";
import { connect, createServer, type Socket } from "node:net";
import { type AnswerFault, AnswerStream, type Strike, StrikeOrder } from "./answer-stream.js";

export interface FaultyProxy {
  readonly port: number;
  /** From now on answers are swallowed; commands still arrive. */
  swallowAnswers(): void;
  /**
   * The fault that shall happen to the answer of the next command that matches, whoever sends it. The order counts once;
   * of several orders that match, the first one given. Not for connections that subscribe: their messages answer no command.
   * @param matching is tried on the command's words, joined by spaces. Default: any command.
   */
  strikeNext(fault: AnswerFault, matching?: RegExp): Strike;
  /** Answers pass again, on connections made from now on; the old ones are cut, and orders not yet met are forgotten. */
  heal(): void;
  close(): Promise<void>;
}

export async function startFaultyProxy(target: { readonly host: string; readonly port: number }): Promise<FaultyProxy> {
  const sockets = new Set<Socket>();
  const orders: StrikeOrder[] = [];
  let swallows = false;

  const orderFor = (command: string) => {
    const index = orders.findIndex(({ matching }) => matching.test(command));
    return index < 0 ? undefined : orders.splice(index, 1)[0];
  };
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
    const stream = new AnswerStream(orderFor, {
      write: (bytes) => void client.write(bytes),
      cut: () => void client.destroy(),
    });
    client.on("data", (chunk) => {
      stream.commandBytes(chunk);
      upstream.write(chunk);
    });
    upstream.on("data", (chunk) => {
      if (!swallows) stream.answerBytes(chunk);
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
    strikeNext(fault, matching = /^/) {
      const order = new StrikeOrder(fault, matching);
      orders.push(order);
      return order;
    },
    heal() {
      swallows = false;
      orders.length = 0;
      cutAll();
    },
    close() {
      cutAll();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
