/**
 * The way to the server that holds a key: looked up once, kept, and looked up anew when something shows that it may lead
 * elsewhere. Nothing of the guard rests on it: wherever a step is sent, it is judged there and afterwards.
 */
import { CoordinatorError } from "../../errors.js";
import { type Endpoint, endpointText, type RedisLogin } from "./address.js";
import { RedisConnection } from "./connection.js";

/** Which server holds which key, as it was found at one moment. */
export interface Chart {
  /** @throws CoordinatorError `store_unavailable` when no server holds it. */
  endpointOf(key: string): Endpoint;
  /** All servers that hold keys. */
  readonly endpoints: readonly Endpoint[];
}

export type LookUp = () => Promise<Chart>;

/** What WAIT holds up must not hold up others, and it counts what its own connection wrote: steps go alone. */
export const PURPOSES = ["steps", "reads"] as const;
type Purpose = (typeof PURPOSES)[number];

/** Nobody is asked more often than this, however many requests fail, ms. */
const LOOK_UP_EVERY_MS = 200;

export interface RedisRouteOptions {
  readonly lookUp: LookUp;
  readonly login: RedisLogin;
}

export class RedisRoute {
  readonly #options: RedisRouteOptions;
  #chart: Chart | undefined;
  #isDoubted = false;
  #lookedUpAtMs = Number.NEGATIVE_INFINITY;
  #lookingUp: Promise<Chart> | undefined;
  /** By purpose and server. Each mends itself when it breaks, until the way leads elsewhere. */
  readonly #connections = new Map<string, Promise<RedisConnection>>();
  #isClosed = false;

  constructor(options: RedisRouteOptions) {
    this.#options = options;
  }

  /**
   * The connection to the server that holds a key: the same one as long as the way leads there.
   * @throws CoordinatorError `store_unavailable` when the way can't be found, or a new connection can't be made.
   */
  async connectionFor(key: string, purpose: Purpose): Promise<RedisConnection> {
    const chart = await this.#newestChart();
    return this.#connectionTo(chart.endpointOf(key), purpose);
  }

  /**
   * Uses the connection to the server of a key. What fails is never tried again here; but when another server may be the right
   * one by now, the next use looks for it.
   */
  async use<T>(key: string, purpose: Purpose, send: (connection: RedisConnection) => Promise<T>): Promise<T> {
    try {
      return await send(await this.connectionFor(key, purpose));
    } catch (error) {
      const code = error instanceof CoordinatorError ? error.code : undefined;
      if (code === "store_unavailable" || code === "store_is_replica") this.doubt();
      throw error;
    }
  }

  /** What was asked on this way failed so that another server may be the right one now. */
  doubt(): void {
    this.#isDoubted = true;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#keepOnly([]);
  }

  async #newestChart(): Promise<Chart> {
    const known = this.#chart;
    if (known !== undefined && !(this.#isDoubted && this.#mayLookUp())) return known;
    try {
      return await this.#lookUpOnce();
    } catch (error) {
      // Nobody tells of another way: then the known one is as good as before.
      if (known === undefined) throw error;
      return known;
    }
  }

  #mayLookUp(): boolean {
    return this.#lookingUp !== undefined || performance.now() - this.#lookedUpAtMs >= LOOK_UP_EVERY_MS;
  }

  /** However many requests wait for it. */
  #lookUpOnce(): Promise<Chart> {
    this.#lookingUp ??= this.#lookUp().finally(() => {
      this.#lookedUpAtMs = performance.now();
      this.#lookingUp = undefined;
    });
    return this.#lookingUp;
  }

  async #lookUp(): Promise<Chart> {
    const chart = await this.#options.lookUp();
    this.#chart = chart;
    this.#isDoubted = false;
    // One of those that are left may be hanging: nobody waits for its end.
    void this.#keepOnly(chart.endpoints);
    return chart;
  }

  #connectionTo(endpoint: Endpoint, purpose: Purpose): Promise<RedisConnection> {
    if (this.#isClosed) throw new CoordinatorError("store_unavailable", "the store is closed");
    const name = `${purpose} ${endpointText(endpoint)}`;
    const known = this.#connections.get(name);
    if (known !== undefined) return known;
    const opening = RedisConnection.open({ ...this.#options.login, ...endpoint });
    this.#connections.set(name, opening);
    opening.catch(() => {
      if (this.#connections.get(name) === opening) this.#connections.delete(name);
    });
    return opening;
  }

  async #keepOnly(endpoints: readonly Endpoint[]): Promise<void> {
    const kept = new Set(endpoints.map(endpointText));
    const left = [...this.#connections].filter(([name]) => !kept.has(name.slice(name.indexOf(" ") + 1)));
    for (const [name] of left) this.#connections.delete(name);
    await Promise.all(left.map(([, opening]) => opening.then((connection) => connection.close()).catch(() => {})));
  }
}
