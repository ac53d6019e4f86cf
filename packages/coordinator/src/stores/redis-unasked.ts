/**
 * Answers that nobody asked for. The Redis client (ioredis 6.0.0) reads one of them wrongly, a null where
 * no question waits, and throws what comes of it where nobody can catch it: a server that has lost its count would end the process. Here
 * the connection ends instead; for all others, which the client tells as errors, redis-connection.ts ends it.
 */
import { createRequire } from "node:module";

interface Reader {
  readonly redis: { readonly stream: { readonly writable: boolean }; disconnect(reconnect: boolean): void };
}

/** Once for the process: the client gives no way to it for one connection. */
export function endConnectionsThatAnswerUnasked(): void {
  const { default: handler } = createRequire(import.meta.url)("ioredis/built/DataHandler.js") as {
    readonly default: { readonly prototype: { dispatch: typeof endingOnFailure } };
  };
  handler.prototype.dispatch = endingOnFailure;
}

function endingOnFailure(this: Reader, read: () => void): void {
  try {
    read();
  } catch {
    // Once: each call leaves a timer and a listener on the connection, and such answers come by ten thousands in one packet.
    if (this.redis.stream.writable) this.redis.disconnect(true);
  }
}
