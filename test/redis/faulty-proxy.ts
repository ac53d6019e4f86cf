/**
 * A TCP proxy between a client and a real Redis that does to replies, on order, what networks do: to the reply of one command, or to
 * all that pass. Knows which reply belongs to which command, and nothing of what they mean. Commands always arrive.
 */
import type { AddressInfo } from "node:net";
import { connect, createServer, type Socket } from "node:net";
import { messageReader } from "./resp.js";

/**
 * `hold`: it comes when the strike is released, and so do those behind it.
 * `cut`: the command has run, and instead of its reply the connection ends.
 * A function: the command has run, and what the function makes of its reply comes in its place.
 */
type AnswerFault = "hold" | "cut" | ((reply: string) => string);

interface Strike {
  /** Resolves to the command, its words joined by spaces, once Redis has replied to it and the fault has begun. */
  readonly struck: Promise<string>;
  /** Lets a held reply go. The other faults need no release. */
  release(): void;
}

export interface FaultyProxy {
  readonly port: number;
  /** From now on replies are delayed; commands still arrive. */
  holdAnswers(): void;
  /** Lets the delayed replies go, on whatever is left of their connections. */
  releaseAnswers(): void;
  /** Of the next replies only so many bytes pass; then every connection is cut, and all is as before. */
  cutInAnswers(byteCount: number): void;
  /**
   * The fault that shall happen to the reply to the next command that matches, from any client. The order counts once;
   * of several orders that match, the first one given. Not for connections that subscribe: their messages answer no command.
   * @param matching is tried on the command's words, joined by spaces. Default: any command.
   */
  strikeNext(fault: AnswerFault, matching?: RegExp): Strike;
  /** Replies pass again, on connections made from now on; the old ones are cut, and held replies and orders not yet met are dropped. */
  heal(): void;
  close(): Promise<void>;
}

interface Order {
  readonly fault: AnswerFault;
  readonly matching: RegExp;
  readonly strike: (command: string) => void;
  readonly released: Promise<void>;
}

/** What becomes of a reply. */
type Passage = (reply: Buffer, client: Socket) => void;

const PASS: Passage = (reply, client) => client.write(reply);

export async function startFaultyProxy(target: { readonly host: string; readonly port: number }): Promise<FaultyProxy> {
  const sockets = new Set<Socket>();
  const orders: Order[] = [];
  const held: (() => void)[] = [];
  let passage = PASS;

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
    /** The commands without a reply yet, and the order that each met. */
    const sent: { readonly command: string; readonly order: Order | undefined }[] = [];
    const commandsIn = messageReader();
    const repliesIn = messageReader();
    /** Settles when all replies so far have been passed on. */
    let passing = Promise.resolve();
    client.on("data", (chunk: Buffer) => {
      for (const { value } of commandsIn(chunk)) {
        const command = (value as readonly string[]).join(" ");
        const order = orders.find(({ matching }) => matching.test(command));
        if (order) orders.splice(orders.indexOf(order), 1);
        sent.push({ command, order });
      }
      upstream.write(chunk);
    });
    upstream.on("data", (chunk: Buffer) => {
      for (const { type, bytes } of repliesIn(chunk)) {
        // A RESP3 push answers no command.
        const { command = "", order } = (type === ">" ? undefined : sent.shift()) ?? {};
        const fault = order?.fault;
        if (fault === "cut") client.destroy();
        if (fault === "hold") passing = passing.then(() => order?.released);
        const reply = typeof fault === "function" ? Buffer.from(fault(bytes.toString("latin1")), "latin1") : bytes;
        passing = passing.then(() => passage(reply, client));
        order?.strike(command);
      }
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const cutAll = () => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    port: (server.address() as AddressInfo).port,
    holdAnswers() {
      passage = (reply, client) => held.push(() => PASS(reply, client));
    },
    releaseAnswers() {
      passage = PASS;
      for (const release of held.splice(0)) release();
    },
    cutInAnswers(byteCount) {
      let left = byteCount;
      passage = (reply, client) => {
        const passed = reply.subarray(0, left);
        left -= passed.length;
        if (left > 0) return PASS(passed, client);
        passage = PASS;
        // Not before the last piece has gone out.
        client.write(passed, cutAll);
      };
    },
    strikeNext(fault, matching = /^/) {
      let release = () => {};
      const released = new Promise<void>((resolve) => {
        release = resolve;
      });
      const struck = new Promise<string>((strike) => orders.push({ fault, matching, strike, released }));
      return { struck, release };
    },
    heal() {
      passage = PASS;
      held.length = 0;
      orders.length = 0;
      cutAll();
    },
    close() {
      cutAll();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}
