/**
 * How the Redis client is connected to a server: nothing that comes is read before it is seen to be the Redis protocol, and the connection ends
 * where it is not. The client (ioredis 6.0.0) hears one error of each connection; a second, as a broken TLS handshake can bring, would be
 * nobody's and end the process. The first one has said all.
 */
import { connect as connectPlainly, type Socket } from "node:net";
import { type ConnectionOptions, connect as connectByTls } from "node:tls";
import { AbstractConnector } from "ioredis";
import { RedisFraming } from "./redis-framing.js";

/** Those of the client's options that it reads. */
interface Options {
  readonly host: string;
  readonly port: number;
  readonly tls?: ConnectionOptions;
  readonly disconnectTimeout: number;
}

export class RedisConnector extends AbstractConnector {
  readonly #options: Options;

  constructor(options: unknown) {
    super((options as Options).disconnectTimeout);
    this.#options = options as Options;
  }

  /** A socket that is about to connect. @throws Error when it was to be given up meanwhile. */
  override async connect(): Promise<Socket> {
    const { host, port, tls } = this.#options;
    this.connecting = true;
    // The client listens from its next turn on, and may be told to end before that.
    await new Promise((resolve) => process.nextTick(resolve));
    // In its own words: it knows by them that nothing has failed.
    if (!this.connecting) throw new Error("Connection is closed.");
    const socket = tls === undefined ? connectPlainly({ host, port }) : connectByTls({ host, port, ...tls });
    this.stream = socket;
    socket.once("error", (error) => {
      this.firstError = error;
    });
    socket.on("error", () => {});
    endWhereItIsNotRedis(socket);
    return socket;
  }
}

/** Ahead of every reader, whoever comes first among them. */
function endWhereItIsNotRedis(socket: Socket): void {
  const framing = new RedisFraming();
  const push = socket.push.bind(socket);
  socket.push = (bytes: Buffer | null, ...others) => {
    if (bytes === null) return push(bytes, ...others);
    if (socket.destroyed) return false;
    try {
      const passed = framing.passed(bytes);
      return passed.length === 0 || push(passed, ...others);
    } catch (error) {
      socket.destroy(error as Error);
      return false;
    }
  };
}
