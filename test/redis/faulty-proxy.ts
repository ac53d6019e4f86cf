/**
 * A TCP proxy between a client and a real Redis that does to answers, on order, what networks do: to the answer of one command, or to
 * whatever passes. Knows which answer belongs to which command, and nothing of what they mean. Commands always arrive.
 */
import type { AddressInfo } from "node:net";
import { connect, createServer, type Socket } from "node:net";
import { type RespMessage, readMessage } from "./resp.js";

/**
 * `hold`: it comes when the strike is released, and so do those behind it.
 * `cut`: the command has run, and instead of its answer the connection ends.
 * A function: the command has run, and what the function makes of its answer comes in its place.
 */
type AnswerFault = "hold" | "cut" | ((answer: string) => string);

interface Strike {
  /** Resolves to the command, its words joined by spaces, once Redis has answered it and the fault has begun. */
  readonly struck: Promise<string>;
  /** Lets a held answer go. The other faults need no release. */
  release(): void;
}

export interface FaultyProxy {
  readonly port: number;
  /** From now on answers are swallowed; commands still arrive. */
  swallowAnswers(): void;
  /** From now on answers are held back; commands still arrive. */
  holdAnswers(): void;
  /** Lets the answers go that were held back, on whatever is left of their connections. */
  releaseAnswers(): void;
  /** Of the next answers only so many bytes pass; then every connection is cut, and all is as before. */
  cutInAnswers(byteCount: number): void;
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

/** What becomes of a piece of an answer. */
type Fault = (chunk: Buffer, client: Socket) => void;

const PASS: Fault = (chunk, client) => client.write(chunk);

export async function startFaultyProxy(target: { readonly host: string; readonly port: number }): Promise<FaultyProxy> {
  const sockets = new Set<Socket>();
  const orders: StrikeOrder[] = [];
  const held: (() => void)[] = [];
  let fault = PASS;

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
      write: (bytes) => fault(bytes, client),
      cut: () => void client.destroy(),
    });
    client.on("data", (chunk) => {
      stream.commandBytes(chunk);
      upstream.write(chunk);
    });
    upstream.on("data", (chunk) => stream.answerBytes(chunk));
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
    strikeNext(fault, matching = /^/) {
      const order = new StrikeOrder(fault, matching);
      orders.push(order);
      return order;
    },
    heal() {
      fault = PASS;
      orders.length = 0;
      cutAll();
    },
    close() {
      cutAll();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

class StrikeOrder implements Strike {
  readonly struck: Promise<string>;
  command = "";
  isReleased = false;
  strike: (command: string) => void = () => {};
  onRelease: () => void = () => {};

  constructor(
    readonly fault: AnswerFault,
    readonly matching: RegExp,
  ) {
    this.struck = new Promise((resolve) => {
      this.strike = resolve;
    });
  }

  release(): void {
    this.isReleased = true;
    this.onRelease();
  }
}

interface ClientSide {
  write(bytes: Buffer): void;
  cut(): void;
}

/** A RESP3 push answers no command. */
const PUSH = ">";

class AnswerStream {
  /** For each command that is not answered yet: the order it met, if any. */
  readonly #asked: (StrikeOrder | undefined)[] = [];
  readonly #commands = new Messages();
  readonly #answers = new Messages();
  /** On their way to the client, which the first one may hold up. */
  readonly #leaving: { readonly bytes: Buffer; readonly heldBy?: StrikeOrder }[] = [];

  constructor(
    private readonly orderFor: (command: string) => StrikeOrder | undefined,
    private readonly client: ClientSide,
  ) {}

  /** What the client sends. It must have come by here before Redis can answer it. */
  commandBytes(chunk: Buffer): void {
    for (const { value } of this.#commands.in(chunk)) {
      const command = (value as readonly string[]).join(" ");
      const order = this.orderFor(command);
      if (order) order.command = command;
      this.#asked.push(order);
    }
  }

  /** What Redis answers. */
  answerBytes(chunk: Buffer): void {
    for (const { type, bytes } of this.#answers.in(chunk)) {
      const order = type === PUSH ? undefined : this.#asked.shift();
      if (order) {
        this.#strike(bytes, order);
        order.strike(order.command);
      } else this.#pass({ bytes });
    }
  }

  #strike(bytes: Buffer, order: StrikeOrder): void {
    const { fault } = order;
    if (fault === "cut") this.client.cut();
    else if (fault === "hold") {
      order.onRelease = () => this.#leave();
      this.#pass({ bytes, heldBy: order });
    } else this.#pass({ bytes: Buffer.from(fault(bytes.toString("latin1")), "latin1") });
  }

  #pass(answer: { readonly bytes: Buffer; readonly heldBy?: StrikeOrder }): void {
    this.#leaving.push(answer);
    this.#leave();
  }

  #leave(): void {
    for (let [first] = this.#leaving; first && first.heldBy?.isReleased !== false; [first] = this.#leaving) {
      this.client.write(first.bytes);
      this.#leaving.shift();
    }
  }
}

/** Cuts a stream of bytes into messages. */
class Messages {
  #rest: Buffer = Buffer.alloc(0);

  /** The messages that end in this chunk, and the bytes of each. */
  *in(chunk: Buffer): Generator<RespMessage & { readonly bytes: Buffer }> {
    this.#rest = Buffer.concat([this.#rest, chunk]);
    for (let message = readMessage(this.#rest); message; message = readMessage(this.#rest)) {
      const bytes = this.#rest.subarray(0, message.end);
      this.#rest = this.#rest.subarray(message.end);
      yield { ...message, bytes };
    }
  }
}
