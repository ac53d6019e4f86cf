/** Clients of a server that see what fetch hides: bytes as they are over a real socket, and an event stream as it arrives. */
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { connect, type Socket } from "node:net";
import { onTestFinished } from "vitest";

export interface Place {
  readonly host: string;
  readonly port: number;
  /** From which address of this machine it is reached. Default: the system's choice. */
  readonly localAddress?: string;
}

export interface Received {
  readonly text: string;
  /** Of all responses, in their order. */
  readonly statuses: readonly number[];
  /** The other end closed the connection. */
  readonly isClosed: boolean;
}

const WAIT_MS = 30_000;
/** After a response: a connection that stays open sends no more. */
const IDLE_MS = 3_000;

/**
 * Opens a connection, sends, and resolves when the other end has closed it, sends nothing more after a response, or sends nothing at
 * all. A cut connection is no error. `thenEnd`: ends its own half when all is sent.
 */
export async function sendBytes(
  place: Place,
  parts: readonly (string | Buffer)[],
  { thenEnd = false } = {},
): Promise<Received> {
  const socket = await opened(place);
  let text = "";
  let isClosed = false;
  socket.setEncoding("latin1").on("data", (chunk: string) => {
    text += chunk;
    socket.setTimeout(IDLE_MS);
  });
  const over = new Promise<void>((resolve) => {
    const close = () => {
      isClosed = true;
      resolve();
    };
    socket.setTimeout(WAIT_MS).once("end", close).once("close", close).once("timeout", resolve);
  });
  for (const part of parts) if (socket.writable) socket.write(part);
  if (thenEnd) socket.end();
  await over;
  socket.destroy();
  // A body contains no such line: it is JSON.
  const statuses = [...text.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, status]) => Number(status));
  return { text, statuses, isClosed };
}

/** Resolves to a connection whose errors are ignored. */
export async function opened(place: Place): Promise<Socket> {
  const socket = connect({ ...place, noDelay: true, allowHalfOpen: true });
  await new Promise<void>((resolve) => {
    socket.once("connect", resolve).once("close", () => resolve());
    socket.on("error", () => {});
  });
  return socket;
}

/** Reads an event stream until the end of the test. */
export async function openStream(
  url: string,
  headers: Readonly<Record<string, string>> = {},
  localAddress = "127.0.0.1",
) {
  const outgoing = request(url, { headers, localAddress }).end();
  outgoing.on("error", () => {});
  onTestFinished(() => void outgoing.destroy());
  const [response] = (await once(outgoing, "response")) as [IncomingMessage];
  let text = "";
  let hasEnded = false;
  response.setEncoding("utf8").on("data", (chunk: string) => {
    text += chunk;
  });
  response
    .on("error", () => {})
    .once("close", () => {
      hasEnded = true;
    });
  return { response, status: response.statusCode, text: () => text, hasEnded: () => hasEnded };
}
