/** How many callers a server with a certificate shakes hands with at a time, over real sockets. */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { opened } from "../../../test/hostile/raw-client.js";
import { recordedHello } from "../../../test/hostile/tls-hello.js";
import { newAuthority } from "../../../test/tls/certificates.js";
import { writeTlsFiles } from "../../../test/tls/files.js";
import { Coordinator } from "../src/coordinator.js";
import { createServer } from "../src/http/server.js";
import { readTlsMaterial } from "../src/http/tls-files.js";
import { TlsServers } from "../src/http/tls-servers.js";
import { SILENT_LOG } from "../src/log.js";
import { MemoryStore } from "../src/stores/memory-store.js";

const HOST = "127.0.0.1";

async function served(handshakesMax: number): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "callnumber-tls-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const material = readTlsMaterial(writeTlsFiles(folder, newAuthority().issue()), Date.now());
  const server = await createServer({
    coordinator: new Coordinator({ store: new MemoryStore(), name: "c" }),
    release: "0",
    tls: new TlsServers(material, SILENT_LOG, { handshakesMax, handshakeTimeoutMs: 60_000 }),
  });
  onTestFinished(() => server.stop());
  return Number(new URL(await server.listen({ host: HOST, port: 0 })).port);
}

/** One that the server has answered, and that says nothing more. */
async function halfWay(port: number, hello: Buffer) {
  const socket = await opened({ host: HOST, port });
  onTestFinished(() => void socket.destroy());
  let isOver = false;
  socket.once("end", () => {
    isOver = true;
  });
  socket.write(hello);
  await once(socket, "data");
  return () => isOver;
}

async function encrypted(port: number) {
  const socket = connect({ host: HOST, port, rejectUnauthorized: false });
  onTestFinished(() => void socket.destroy());
  await once(socket, "secureConnect");
  return socket;
}

test("who begins one too many costs the one its place that began first, and nobody who has ended", async () => {
  const port = await served(2);
  const hello = await recordedHello();
  const done = [await encrypted(port), await encrypted(port), await encrypted(port)];
  const isOver = [await halfWay(port, hello), await halfWay(port, hello)];
  expect(isOver.map((ask) => ask())).toEqual([false, false]);
  const late = await encrypted(port);
  await expect.poll(() => isOver.map((ask) => ask())).toEqual([true, false]);
  for (const socket of [...done, late]) {
    socket.write("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
    expect(String((await once(socket, "data"))[0])).toContain("200 OK");
  }
});
