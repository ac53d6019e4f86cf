/**
 * How many requests may be in flight at a time, for each kind of request: one kind takes no slot of another. The slots of a kind are shared by
 * all clients, and a client may take one only while it has fewer than are free: one client has at most half of them, two have a third each, and
 * the last slot is for a client that has none. So no client keeps the others out, however many requests it sends.
 */
import type { ErrorCode } from "@callnumber/protocol/api";
import type { FastifyRequest } from "fastify";
import { CoordinatorError } from "../errors.js";
import type { TypedApp } from "./app.js";
import type { Permission, Principal } from "./auth.js";

/** For one client. Those who lease together wait for each other; a pool of importers that starts at once is served within milliseconds. */
export const CONCURRENT_LEASES_DEFAULT = 64;
/** For one client: every client may ask whether a call number can exist, and each request reads the store. */
export const PUBLIC_READS_MAX = 8;
/** For all clients; one alone has half. */
export const STREAM_COUNT_MAX = 64;

/** For one client: requests of routes that are not loaded yet. Only their heads are kept. */
const WAITING_REQUESTS_MAX = 256;

const RETRY_AFTER_MS = 1_000;

export function newLimits(maxConcurrentLeases: number) {
  return {
    waiting: new ConcurrencyLimit(WAITING_REQUESTS_MAX, "requests"),
    leases: new ConcurrencyLimit(maxConcurrentLeases, "leases and reports"),
    // They wait while nothing can be leased, and must not keep out the importers that lease next.
    numbers: new ConcurrencyLimit(maxConcurrentLeases, "requests for numbers"),
    // More than a browser has connections. A read of the ledger may hold up a lease for one step of its way.
    reads: new ConcurrencyLimit(16, "requests"),
    publicReads: new ConcurrencyLimit(PUBLIC_READS_MAX, "requests"),
    // An export takes minutes, and reads as fast as its client does.
    exports: new ConcurrencyLimit(2, "exports"),
    streams: new ConcurrencyLimit(STREAM_COUNT_MAX / 2, "event streams", "too_many_streams"),
  };
}

export type Limits = ReturnType<typeof newLimits>;
type Kind = keyof Limits;

declare module "fastify" {
  interface FastifyContextConfig {
    /** Whose slots a request takes. Default: by the permission of the route. */
    readonly slots?: Kind;
  }
}

/** Public requests cost the store little or nothing, where the route does not name another kind. Leases take their slots themselves. */
const KIND_OF: Readonly<Record<Permission, Kind | undefined>> = {
  public: undefined,
  lease: undefined,
  read: "reads",
  settings: "reads",
};

/** Rejects what exceeds the limits. A request frees its slot when its response is closed. Call it after `registerAuth`. */
export function limitConcurrency(app: TypedApp, limits: Limits): void {
  app.addHook("preHandler", (request, reply, done) => {
    const { permission = "public", slots = KIND_OF[permission] } = request.routeOptions.config;
    let free = () => {};
    try {
      if (slots !== undefined) free = limits[slots].take(clientKey(request));
    } catch (error) {
      done(error as Error);
      return;
    }
    if (reply.raw.closed) free();
    else reply.raw.once("close", free);
    done();
  });
}

/** Whose slots a request takes: those of its token, or else those of its address. */
function clientKey({ principal, ip }: FastifyRequest): string {
  // A closed connection has no address.
  return (principal as Principal | null)?.tokenId ?? ip ?? "";
}

export class ConcurrencyLimit {
  readonly #slotCount: number;
  readonly #what: string;
  readonly #code: ErrorCode;
  readonly #slotsOf = new Map<string, number>();
  #takenCount = 0;

  /**
   * @param countPerClient how many requests a client may have in flight that is alone; all clients together may have twice as many.
   * @param what the requests, in the plural, for the error message.
   */
  constructor(countPerClient: number, what: string, code: ErrorCode = "overloaded") {
    this.#slotCount = 2 * countPerClient;
    this.#what = what;
    this.#code = code;
  }

  /**
   * Takes a slot. Returns what frees it; further calls of that have no effect.
   * @throws CoordinatorError with the code when there is none for the client. Then nothing is taken.
   */
  take(client: string): () => void {
    const own = this.#slotsOf.get(client) ?? 0;
    if (own >= this.#slotCount - this.#takenCount) {
      const message = `Request rejected: too many ${this.#what} are in flight for this token or address. Try again in a second.`;
      throw new CoordinatorError(this.#code, message, { retryAfterMs: RETRY_AFTER_MS });
    }
    this.#add(client, 1);
    let isFreed = false;
    return () => {
      if (!isFreed) this.#add(client, -1);
      isFreed = true;
    };
  }

  #add(client: string, count: 1 | -1): void {
    this.#takenCount += count;
    const own = (this.#slotsOf.get(client) ?? 0) + count;
    if (own > 0) this.#slotsOf.set(client, own);
    else this.#slotsOf.delete(client);
  }
}
