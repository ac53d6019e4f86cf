/**
 * The answers of one connection on their way to the client, each beside the command it answers, and what may happen to one.
 * Redis answers in the order it was asked, so counting is enough. Knows nothing of sockets.
 */
import { type RespMessage, readMessage } from "./resp.js";

/**
 * `hold`: it comes when the strike is released, and so do those behind it.
 * `cut`: the command has run, and instead of its answer the connection ends.
 * A function: the command has run, and what the function makes of its answer comes in its place.
 */
export type AnswerFault = "hold" | "cut" | ((answer: string) => string);

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
