/** What a server with a certificate lets a handshake cost, and with how many callers it shakes hands at a time: over real sockets. */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type ConnectionOptions, connect, type EphemeralKeyInfo, type TLSSocket } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { opened } from "../../../test/hostile/raw-client.js";
import { recordedHello } from "../../../test/hostile/tls-hello.js";
import { newAuthority } from "../../../test/tls/certificates.js";
import { replaceFile, writeTlsFiles } from "../../../test/tls/files.js";
import { Coordinator } from "../src/coordinator.js";
import { createServer } from "../src/http/server.js";
import { readTlsMaterial } from "../src/http/tls-files.js";
import { TlsServers } from "../src/http/tls-servers.js";
import { SILENT_LOG } from "../src/log.js";
import { MemoryStore } from "../src/stores/memory-store.js";

const HOST = "127.0.0.1";

async function served(handshakesMax = 256, asksCallers = false) {
  const folder = mkdtempSync(join(tmpdir(), "callnumber-tls-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const clients = newAuthority("an authority of callers");
  const clientCa = replaceFile(join(folder, "clients.crt"), clients.certificate, 0o644);
  const files = writeTlsFiles(folder, newAuthority().issue());
  const material = readTlsMaterial(asksCallers ? { ...files, clientCa } : files, Date.now());
  const tls = new TlsServers(material, SILENT_LOG, { handshakesMax, handshakeTimeoutMs: 600_000 });
  const server = await createServer({
    coordinator: new Coordinator({ store: new MemoryStore(), name: "c" }),
    release: "0",
    tls,
  });
  onTestFinished(() => server.stop());
  return { port: Number(new URL(await server.listen({ host: HOST, port: 0 })).port), tls, folder, clients };
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

async function encrypted(port: number, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = connect({ host: HOST, port, rejectUnauthorized: false, ...options });
  onTestFinished(() => void socket.destroy());
  await once(socket, "secureConnect");
  return socket;
}

test("who begins one too many costs the one its place that began first, and nobody who has ended", async () => {
  const { port } = await served(2);
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

test("keys are agreed in what is cheap, before and after a new certificate, and with nobody who offers what is dear alone", async () => {
  const { port, tls, folder } = await served();
  const agreed = async (group: string) => {
    const { name } = (
      await encrypted(port, { minVersion: "TLSv1.3", ecdhCurve: group })
    ).getEphemeralKeyInfo() as EphemeralKeyInfo;
    return name;
  };
  const look = async () => {
    for (const group of ["X25519", "prime256v1", "secp384r1"]) expect(await agreed(group)).toBe(group);
    for (const group of ["secp521r1", "X448", "ffdhe2048", "ffdhe8192"]) {
      await expect(agreed(group), group).rejects.toThrow(/handshake failure/);
    }
    expect(await agreed("ffdhe8192:secp521r1:secp384r1")).toBe("secp384r1");
  };
  await look();
  tls.use(readTlsMaterial(writeTlsFiles(folder, newAuthority().issue()), Date.now()));
  await look();
});

test.each([
  { asksCallers: true, over: [true, false, false, false, false] },
  { asksCallers: false, over: [false, false, false, false, false] },
])(
  "of one network four are under way where certificates are asked for: $asksCallers",
  async ({ asksCallers, over }) => {
    const { port, clients } = await served(256, asksCallers);
    const hello = await recordedHello();
    const isOver: (() => boolean)[] = [];
    for (const _ of over) isOver.push(await halfWay(port, hello));
    await expect.poll(() => isOver.map((ask) => ask())).toEqual(over);
    const { certificate: cert, key } = clients.issue();
    for (let index = 0; index < 2 * over.length; index++) await encrypted(port, { cert, key });
  },
);
