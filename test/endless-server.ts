/** A server whose answers do not end, to any question: how much of one it gets rid of tells how much is read. */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

/** Then it gives up: whoever read all of this would read anything. */
const SENT_BYTES_MAX = 256 * 1024 * 1024;
const PIECE_BYTES = 64 * 1024;

export interface Told {
  readonly status?: number;
  /** Answers itself to what it takes. */
  readonly otherwise?: (path: string, response: ServerResponse) => boolean;
}

/** It ends with the test. `heard` resolves when an asker has hung up, or has taken all, to the bytes that were sent. */
export async function endlessServer({ status = 200, otherwise = () => false }: Told = {}) {
  let tell: (sentBytes: number) => void;
  const heard = new Promise<number>((resolve) => {
    tell = resolve;
  });
  const server = createServer((request, response) => {
    request.resume();
    if (!otherwise(request.url ?? "", response)) void send(response, status).then(tell);
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, heard };
}

async function send(response: ServerResponse, status: number): Promise<number> {
  const closed = once(response, "close");
  // What JSON has as much of as it likes, and a line never ends with.
  const piece = Buffer.alloc(PIECE_BYTES, " ");
  response.writeHead(status, { "content-type": "application/json" });
  let sentBytes = 0;
  while (!response.destroyed && sentBytes < SENT_BYTES_MAX) {
    sentBytes += PIECE_BYTES;
    if (!response.write(piece)) await Promise.race([once(response, "drain"), closed]);
  }
  response.end();
  return sentBytes;
}
