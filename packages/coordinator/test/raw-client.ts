/** A client that sends bytes as they are, over a real socket, and keeps what comes back. Knows HTTP only well enough to find statuses. */
import { connect, type Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";

export interface Place {
  readonly host: string;
  readonly port: number;
}

/** Sent one after the other; a number is a pause in milliseconds. */
export type Bytes = readonly (string | Buffer | number)[];

export interface Received {
  readonly text: string;
  /** Of all answers, in their order. */
  readonly statuses: readonly number[];
  /** The other end closed the connection. */
  readonly isClosed: boolean;
}

export interface SendOptions {
  /** Ends its own half when all is sent. */
  readonly thenEnd?: boolean;
  /** Stops waiting for an answer after so long. */
  readonly waitMs?: number;
}

const WAIT_MS = 30_000;
/** After an answer: a connection that stays open says no more. */
const SILENCE_MS = 3_000;

/**
 * Opens a connection, sends, and resolves when the other end has closed it, or says nothing more after an answer, or says nothing at
 * all for `waitMs`. A cut connection is no error.
 */
export async function sendBytes(place: Place, bytes: Bytes, { thenEnd, waitMs }: SendOptions = {}): Promise<Received> {
  const socket = await opened(place);
  let text = "";
  let isClosed = false;
  socket.setEncoding("latin1").on("data", (chunk: string) => {
    text += chunk;
    socket.setTimeout(SILENCE_MS);
  });
  const closed = new Promise<void>((resolve) => {
    const note = () => {
      isClosed = true;
      resolve();
    };
    socket
      .once("end", note)
      .once("close", note)
      .once("timeout", () => resolve());
  });
  for (const part of bytes) {
    if (typeof part === "number") await pause(part);
    else if (socket.writable) socket.write(part);
  }
  if (thenEnd) socket.end();
  const patience = new AbortController();
  await Promise.race([closed, pause(waitMs ?? WAIT_MS, undefined, { signal: patience.signal }).catch(() => {})]);
  patience.abort();
  socket.destroy();
  return { text, statuses: statusesIn(text), isClosed };
}

/** Resolves to a connection whose errors are nobody's. */
export async function opened({ host, port }: Place): Promise<Socket> {
  const socket = connect({ host, port, noDelay: true, allowHalfOpen: true });
  await new Promise<void>((resolve) => {
    socket.once("connect", () => resolve());
    socket.once("close", () => resolve());
    socket.on("error", () => {});
  });
  return socket;
}

/** A body never holds such a line: it is JSON. */
function statusesIn(text: string): readonly number[] {
  return [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
}
