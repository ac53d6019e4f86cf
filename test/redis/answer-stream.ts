/**
 * The answers of one connection on their way to the client, each beside the command it answers, and what may befall one.
 * Redis answers in the order it was asked, so counting is enough. Knows nothing of sockets.
 */
import { type RespMessage, readMessage } from "./resp.js";

/**
 * `swallow`: it never comes, and the client takes the next answer for it.
 * `double`: it comes twice.
 * `hold`: it comes when the strike is released, and so do those behind it.
 * `swap`: it comes after the answer to the command that follows.
 * `cut`: the command has run, and instead of its answer the connection ends.
 */
export type AnswerFault = "swallow" | "double" | "hold" | "swap" | "cut";

export interface Strike {
  /** Resolves to the command, its words joined by spaces, once Redis has answered it and the fault has begun. */
  readonly struck: Promise<string>;
  /** Lets a held answer go. The other faults need no release. */
  release(): void;
}

export class StrikeOrder implements Strike {
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

export class AnswerStream {
  /** For each command that is not answered yet: the order it met, if any. */
  readonly #asked: (StrikeOrder | undefined)[] = [];
  readonly #commands = new Messages();
  readonly #answers = new Messages();
  /** On their way to the client, which the first one may hold up. */
  readonly #leaving: { readonly bytes: Buffer; readonly heldBy?: StrikeOrder }[] = [];
  #swapped: Buffer[] = [];

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
        FAULTS[order.fault](this, bytes, order);
        order.strike(order.command);
      } else this.pass(bytes);
    }
  }

  pass(bytes: Buffer): void {
    this.#leaving.push(...[bytes, ...this.#swapped].map((one) => ({ bytes: one })));
    this.#swapped = [];
    this.#leave();
  }

  hold(bytes: Buffer, order: StrikeOrder): void {
    this.#leaving.push({ bytes, heldBy: order });
    order.onRelease = () => this.#leave();
    this.#leave();
  }

  passAfterNext(bytes: Buffer): void {
    this.#swapped.push(bytes);
  }

  cut(): void {
    this.client.cut();
  }

  #leave(): void {
    for (let [first] = this.#leaving; first && first.heldBy?.isReleased !== false; [first] = this.#leaving) {
      this.client.write(first.bytes);
      this.#leaving.shift();
    }
  }
}

const FAULTS: Readonly<Record<AnswerFault, (stream: AnswerStream, answer: Buffer, order: StrikeOrder) => void>> = {
  swallow: () => {},
  double: (stream, answer) => {
    stream.pass(answer);
    stream.pass(answer);
  },
  hold: (stream, answer, order) => stream.hold(answer, order),
  swap: (stream, answer) => stream.passAfterNext(answer),
  cut: (stream) => stream.cut(),
};

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
