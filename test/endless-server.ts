/** A server whose responses do not end, to any request: how much of one it can send is how much the client reads. */
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

/** Then it gives up: a client that read all of this would read anything. */
const SENT_BYTES_MAX = 256 * 1024 * 1024;
const PIECE_BYTES = 64 * 1024;

interface Options {
  readonly status?: number;
  /** Responds itself to the requests for which it returns true. */
  readonly otherwise?: (path: string, response: ServerResponse) => boolean;
}

/** It ends with the test. `heard` resolves when a client has hung up, or has read all, to the bytes that were sent. */
export async function endlessServer({ status = 200, otherwise = () => false }: Options = {}) {
  let report: (sentBytes: number) => void;
  const heard = new Promise<number>((resolve) => {
    report = resolve;
  });
  const server = createServer((request, response) => {
    request.resume();
    if (!otherwise(request.url ?? "", response)) void send(response, status).then(report);
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
  // Spaces: JSON may have any number of them, and a line never ends with one.
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
