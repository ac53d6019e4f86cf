/** The shipped configuration of nginx, with the real nginx before a real coordinator: what it lets through, and what it rejects. */
import { once } from "node:events";
import { Agent, request } from "node:https";
import { connect as connectPlainly, createServer } from "node:net";
import { join } from "node:path";
import { connect } from "node:tls";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { callnumber, callnumberProcess, folderForTest, serve } from "../processes/command.js";
import { newAuthority } from "../tls/certificates.js";
import { replaceFile, writeTlsFiles } from "../tls/files.js";
import { findNginx, startNginx } from "./nginx.js";

const authority = newAuthority();
/** The limit of the configuration, and more than enough beyond it. */
const CONNECTIONS = 64;
const LEASES = "/v1/namespaces/main/leases";

const nginx = await findNginx();
beforeEach((context) => context.skip(typeof nginx === "string", typeof nginx === "string" ? nginx : undefined));

/** nginx before a coordinator that asks for tokens; both end with the test. */
async function served() {
  if (typeof nginx === "string") throw new Error(nginx);
  const folder = await folderForTest();
  const tokensFile = join(folder, "tokens");
  const made = await callnumber([
    "token",
    "create",
    "--tokens-file",
    tokensFile,
    "--role",
    "lease",
    "--namespace",
    "main",
  ]);
  const coordinator = await serve("memory:", "--tokens-file", tokensFile);
  const port = await freePort();
  const files = writeTlsFiles(folder, authority.issue());
  const proxy = await startNginx(nginx, {
    folder,
    port,
    coordinatorPort: Number(new URL(coordinator.url).port),
    ...files,
  });
  onTestFinished(() => proxy.kill());
  return { folder, port, url: `https://127.0.0.1:${port}`, token: made.stdout.trim(), coordinator };
}

async function freePort(): Promise<number> {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as { port: number };
  probe.close();
  return port;
}

interface Asked {
  /** What each address of this machine may is counted apart. */
  readonly from: string;
  readonly path?: string;
  readonly body?: string;
}

function statusOf(port: number, { from, path = "/healthz", body }: Asked, agent?: Agent): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const asked = { host: "127.0.0.1", port, path, localAddress: from, ca: authority.certificate, agent };
    const method = body === undefined ? "GET" : "POST";
    const asking = request({ ...asked, method, headers: { "content-type": "application/json" } }, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    asking.on("error", reject).end(body);
  });
}

test("an importer leases through the proxy over TLS", async () => {
  const { folder, url, token, coordinator } = await served();
  const ca = replaceFile(join(folder, "ca.crt"), authority.certificate, 0o644);
  const env = { NODE_EXTRA_CA_CERTS: ca, CALLNUMBER_TOKEN: token };
  const next = await callnumberProcess(["next", "-n", "2", "--coordinator", url], { env });
  expect(next).toMatchObject({ code: 0, stdout: expect.stringMatching(/^([0-9A-Za-z]{8}\n){2}$/) });
  expect(coordinator.output().stdout).toContain('"msg":"lease"');
});

test("a client above the request rate gets 429, and another address is answered", async () => {
  const { port } = await served();
  const seen = new Set<number | undefined>();
  const agent = new Agent({ keepAlive: true });
  onTestFinished(() => agent.destroy());
  const askOn = async () => {
    while (!seen.has(429)) seen.add(await statusOf(port, { from: "127.0.0.2" }, agent));
  };
  await Promise.all(Array.from({ length: CONNECTIONS / 2 }, askOn));
  expect(seen).toEqual(new Set([200, 429]));
  expect(await statusOf(port, { from: "127.0.0.3" })).toBe(200);
});

test("a client above the number of connections gets 503, and another address is answered", async () => {
  const { port } = await served();
  const head = `POST ${LEASES} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{`;
  const answers: string[] = [];
  let openCount = 0;
  // Those that do not send their body in time are ended by the proxy, and others begin.
  while (!answers.some((answer) => answer.startsWith("HTTP/1.1 503"))) {
    const below = connectPlainly({ host: "127.0.0.1", port, localAddress: "127.0.0.4" });
    const socket = connect({ socket: below, host: "127.0.0.1", ca: authority.certificate });
    onTestFinished(() => void socket.destroy());
    socket.setEncoding("latin1").on("error", () => {});
    socket.on("data", (text: string) => answers.push(text));
    await once(socket, "secureConnect");
    socket.write(head);
    openCount++;
  }
  expect(openCount).toBeGreaterThan(CONNECTIONS);
  expect(await statusOf(port, { from: "127.0.0.5" })).toBe(200);
});

test("a body that is too large gets 413, and does not reach the coordinator", async () => {
  const { port, coordinator } = await served();
  expect(await statusOf(port, { from: "127.0.0.6", path: LEASES, body: "x".repeat(5_000) })).toBe(413);
  // Without a token the coordinator would reject it with 401.
  expect(await statusOf(port, { from: "127.0.0.6", path: LEASES, body: "{}" })).toBe(401);
  await coordinator.stop();
  expect(coordinator.output().stdout).not.toContain("body_too_large");
  expect(coordinator.output().stdout.match(/"code":"unauthorized"/g)).toHaveLength(1);
});
