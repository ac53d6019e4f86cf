/** Over real sockets, plain and encrypted: who is turned away is not read for a while, and nothing that it sends is lost. */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectEncrypted } from "node:tls";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { newAuthority } from "../../../test/tls/certificates.js";
import { writeTlsFiles } from "../../../test/tls/files.js";
import { Coordinator } from "../src/coordinator.js";
import { createServer, type Server } from "../src/http/server.js";
import { readTlsMaterial } from "../src/http/tls-files.js";
import { TlsServers } from "../src/http/tls-servers.js";
import { SILENT_LOG } from "../src/log.js";
import type { StepCommand } from "../src/store.js";
import { MemoryStore } from "../src/stores/memory-store.js";
import { holder } from "./commands-for-test.js";

/** As long at least as in turn-away.ts. */
const HELD_BACK_MS = 500;

/** Leases wait for the gate: whoever has the only place keeps it. */
class SlowStore extends MemoryStore {
  openGate = () => {};
  readonly #gate = new Promise<void>((resolve) => {
    this.openGate = resolve;
  });
  onAsked = () => {};
  override async step(namespace: string, command: StepCommand) {
    if (command.step === "lease") {
      this.onAsked();
      await this.#gate;
    }
    return await super.step(namespace, command);
  }
}

const authority = newAuthority();

describe.each(["http", "https"] as const)("over %s", (scheme) => {
  let store: SlowStore;
  let server: Server;
  let url: URL;

  beforeEach(async () => {
    store = new SlowStore();
    const coordinator = new Coordinator({ store, name: "c" });
    await coordinator.initNamespace("main");
    const tls = scheme === "https" ? encrypting() : undefined;
    server = await createServer({ coordinator, release: "0", leasesAtOnce: 1, tls });
    url = new URL(await server.listen({ host: "127.0.0.1", port: 0 }));
    // Who has the place.
    const first = await opened();
    const asked = new Promise<void>((resolve) => {
      store.onAsked = resolve;
    });
    first.socket.write(leaseRequest());
    await asked;
  });

  afterEach(async () => {
    store.openGate();
    await server.stop();
  });

  async function opened() {
    const port = Number(url.port);
    const socket: Socket =
      scheme === "http"
        ? connect(port, "127.0.0.1")
        : connectEncrypted({
            port,
            host: "127.0.0.1",
            ca: authority.certificate,
            checkServerIdentity: () => undefined,
          });
    onTestFinished(() => void socket.destroy());
    await once(socket, scheme === "http" ? "connect" : "secureConnect");
    socket.on("error", () => {});
    const caller = { socket, heard: "", onHeard: () => {} };
    socket.setEncoding("latin1").on("data", (part: string) => {
      caller.heard += part;
      caller.onHeard();
    });
    return caller;
  }

  async function until(caller: Awaited<ReturnType<typeof opened>>, pattern: RegExp): Promise<void> {
    while (!pattern.test(caller.heard)) {
      await new Promise<void>((resolve) => {
        caller.onHeard = resolve;
      });
    }
  }

  const HEALTH = "GET /healthz HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n";

  test("who asks again at once is heard when the pause is over, behind one who asks later, and is told all", async () => {
    const held = await opened();
    const other = await opened();
    held.socket.write(leaseRequest());
    await until(held, /^HTTP\/1\.1 503 .*"overloaded"/s);
    const refusedAtMs = performance.now();
    held.socket.write(HEALTH);
    // What is read is answered before: the other's questions come behind it.
    for (let count = 0; count < 3; count++) {
      other.heard = "";
      other.socket.write(HEALTH);
      await until(other, /HTTP\/1\.1 200/);
    }
    expect(held.heard).not.toContain("HTTP/1.1 200");
    await until(held, /HTTP\/1\.1 200/);
    expect(performance.now() - refusedAtMs).toBeGreaterThan(HELD_BACK_MS * 0.9);
  });

  test("a connection on which somebody asks for others is not held back", async () => {
    for (const header of ["x-forwarded-for: 192.0.2.1", "forwarded: for=192.0.2.1", "via: 1.1 proxy"]) {
      const [held, proxy] = [await opened(), await opened()];
      held.socket.write(leaseRequest());
      await until(held, /503/);
      held.socket.write(HEALTH);
      proxy.socket.write(leaseRequest(header));
      await until(proxy, /503/);
      proxy.socket.write(HEALTH);
      await until(proxy, /HTTP\/1\.1 200/);
      expect(held.heard).not.toContain("HTTP/1.1 200");
      held.socket.destroy();
    }
  });

  test("what came in pieces beside the refused request is not lost", async () => {
    const held = await opened();
    const [head, body] = leaseRequest().split("\r\n\r\n") as [string, string];
    held.socket.write(`${head}\r\n\r\n${body.slice(0, 10)}`);
    await until(held, /503/);
    held.socket.write(body.slice(10) + HEALTH);
    await until(held, /HTTP\/1\.1 200/);
  });

  test("who sends many at once is turned away three times, and its connection ends", async () => {
    const hasty = await opened();
    const closed = once(hasty.socket, "close");
    hasty.socket.write(Array.from({ length: 50 }, () => leaseRequest()).join(""));
    await closed;
    // The end of a connection may come before its last answer.
    expect(hasty.heard.match(/HTTP\/1\.1 503/g)?.length ?? 0).toBeLessThanOrEqual(3);
  });

  test("one that leaves while it is held back, and a stop meanwhile, leave nothing behind", async () => {
    const [gone, held] = [await opened(), await opened()];
    for (const caller of [gone, held]) {
      caller.socket.write(leaseRequest());
      await until(caller, /503/);
    }
    gone.socket.destroy();
    const closed = once(held.socket, "close");
    store.openGate();
    await server.stop();
    await closed;
  });
});

function encrypting(): TlsServers {
  const folder = mkdtempSync(join(tmpdir(), "callnumber-held-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return new TlsServers(readTlsMaterial(paths(folder), Date.now()), SILENT_LOG);
}

function paths(folder: string) {
  return writeTlsFiles(folder, authority.issue());
}

let nonceCount = 0;

function leaseRequest(header?: string): string {
  const nonce = `nonce-${String(++nonceCount).padStart(12, "0")}`;
  const body = JSON.stringify({
    runCount: 1,
    nonce,
    holder,
    lastRun: null,
    receipt: null,
    sentAtMs: 1_700_000_000_000,
  });
  const lines = [
    "POST /v1/namespaces/main/leases HTTP/1.1",
    "host: 127.0.0.1",
    "content-type: application/json",
    `content-length: ${body.length}`,
    ...(header === undefined ? [] : [header]),
  ];
  return `${lines.join("\r\n")}\r\n\r\n${body}`;
}
