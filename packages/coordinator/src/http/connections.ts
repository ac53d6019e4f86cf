/**
 * The open connections of one server. A connection is unknown until a request on it needs a permission and gets it. Unknown ones may be half of
 * all at most, and the address that has most of them loses its oldest first: a peer without a token keeps no other out, however many
 * connections it opens, and importers behind one address count no more once they have leased.
 */
import type { Socket } from "node:net";
import type { Log } from "../log.js";

/** Without a connection that had to be closed for so long, there is room again. */
const FREE_AFTER_MS = 60_000;

export interface ConnectionsOptions {
  /** At a time. */
  readonly countMax: number;
  readonly log: Log;
}

export class Connections {
  readonly #options: ConnectionsOptions;
  readonly #open = new Set<Socket>();
  /** By address and port, since TLS has another object for the same connection. Oldest first. */
  readonly #unknown = new Map<string, Socket>();
  #closedCount = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: ConnectionsOptions) {
    this.#options = options;
  }

  /** Takes a new connection, and closes an older unknown one where there are too many. */
  add(socket: Socket): void {
    const key = keyOf(socket);
    this.#open.add(socket);
    this.#unknown.set(key, socket);
    socket.once("close", () => {
      this.#open.delete(socket);
      this.#unknown.delete(key);
    });
    const { countMax } = this.#options;
    const isFull = this.#open.size >= countMax && this.#unknown.size > 1;
    if (isFull || this.#unknown.size > countMax / 2) this.#closeUnknown();
  }

  /** A request on the connection needed a permission and got it. */
  know(socket: Socket): void {
    this.#unknown.delete(keyOf(socket));
  }

  isUnknown(socket: Socket): boolean {
    return this.#unknown.has(keyOf(socket));
  }

  /** A connection was closed before it came here: all others are known. */
  noteDropped(remoteAddress: string | undefined): void {
    const { countMax } = this.#options;
    const reason =
      `all ${countMax} connections are in use by clients that were granted access, and further ones are closed. ` +
      "Start another coordinator on the same store, or raise --max-connections";
    this.#note(reason, remoteAddress);
  }

  closeAll(): void {
    for (const socket of this.#open) socket.destroy();
  }

  /** Leaves no timer. */
  end(): void {
    clearTimeout(this.#timer);
    this.closeAll();
  }

  #closeUnknown(): void {
    const counts = new Map<string, number>();
    let [most, mostCount] = ["", 0];
    for (const { remoteAddress = "" } of this.#unknown.values()) {
      const count = (counts.get(remoteAddress) ?? 0) + 1;
      counts.set(remoteAddress, count);
      if (count > mostCount) [most, mostCount] = [remoteAddress, count];
    }
    const reason =
      `${this.#unknown.size} connections have shown no accepted token, ${mostCount} of them from ${most}: its oldest are closed. ` +
      "Find out what it is; a firewall or reverse proxy can keep it away";
    for (const [key, socket] of this.#unknown) {
      if ((socket.remoteAddress ?? "") !== most) continue;
      socket.destroy();
      this.#open.delete(socket);
      this.#unknown.delete(key);
      break;
    }
    this.#note(reason, most);
  }

  /** Logs the first connection that is closed, and the count of all when that is over. */
  #note(reason: string, remoteAddress: string | undefined): void {
    const { countMax, log } = this.#options;
    this.#closedCount++;
    if (this.#timer !== undefined) {
      this.#timer.refresh();
      return;
    }
    log.warn(
      { remoteAddress, connectionCount: this.#open.size, connectionCountMax: countMax, reason },
      "connections_full",
    );
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      log.info({ closedCount: this.#closedCount }, "connections_free");
      this.#closedCount = 0;
    }, FREE_AFTER_MS).unref();
  }
}

function keyOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}
