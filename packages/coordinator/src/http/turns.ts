/**
 * How many requests begin in one turn of the event loop. The platform looks for new bytes again, up to 48 times in a row, before it comes to its
 * timers, as long as each look finds a thousand connections with some (libuv). So whoever holds that many and asks again at once would stop all
 * that waits for the end of a turn, for seconds: pauses of those who are turned away, places that are given back, new connections. What comes
 * beyond the bound waits, and its connection is not read from meanwhile, which ends the looking.
 *
 * Who was let in on a connection before goes first; strangers have a part of each turn all the same, or nobody new would ever be let in.
 */
import type { Socket } from "node:net";
import type { Connection } from "./connections.js";
import { readOn, stopReading } from "./socket-reading.js";

/** Some ten milliseconds. Twice as many begin at most: those that waited, and those that come in the same turn. */
export const BEGUN_IN_TURN_MAX = 128;
const STRANGERS_IN_TURN_LEAST = BEGUN_IN_TURN_MAX / 4;

interface Waiting {
  readonly socket: Socket;
  readonly connection: Connection;
  readonly act: () => void;
}

export class Turns {
  #begunCount = 0;
  #isTurnUnderWay = false;
  #known: Waiting[] = [];
  #strangers: Waiting[] = [];

  /**
   * Now, or in a later turn; then not at all when the connection is gone by then, or had to make room.
   * @param socket on which answers are written.
   */
  begin(socket: Socket, connection: Connection, act: () => void): void {
    this.#beginTurn();
    if (this.#begunCount < BEGUN_IN_TURN_MAX && this.#known.length === 0 && this.#strangers.length === 0) {
      this.#begunCount++;
      act();
      return;
    }
    stopReading(socket);
    (connection.isLetIn ? this.#known : this.#strangers).push({ socket, connection, act });
  }

  #beginTurn(): void {
    if (this.#isTurnUnderWay) return;
    this.#isTurnUnderWay = true;
    setImmediate(() => {
      this.#isTurnUnderWay = false;
      this.#begunCount = 0;
      this.#beginWaiting();
    });
  }

  #beginWaiting(): void {
    const strangersMin = Math.min(STRANGERS_IN_TURN_LEAST, this.#strangers.length);
    const known = this.#known.splice(0, BEGUN_IN_TURN_MAX - strangersMin);
    const strangers = this.#strangers.splice(0, BEGUN_IN_TURN_MAX - known.length);
    if (known.length + strangers.length === 0) return;
    this.#beginTurn();
    for (const { socket, connection, act } of [...known, ...strangers]) {
      if (socket.destroyed || connection.isDropped) continue;
      readOn(socket);
      act();
    }
  }
}
