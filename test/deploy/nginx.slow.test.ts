/** The shipped configuration of nginx, with the real nginx before a real coordinator: what it lets through, and what it rejects. */
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect as http2Connect } from "node:http2";
import { Agent, request } from "node:https";
import { connect as tcpConnect } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type ConnectionOptions, type TLSSocket, connect as tlsConnect } from "node:tls";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { callnumber, callnumberProcess, folderForTest, REPOSITORY, serve } from "../processes/command.js";
import { freePort, type RunningServer } from "../processes/server-process.js";
import { newAuthority } from "../tls/certificates.js";
import { replaceFile, writeTlsFiles } from "../tls/files.js";
import { findNginx, type Nginx, ONE_PROCESS, startNginx } from "./real-nginx.js";

const CONFIGURATION = join(REPOSITORY, "deploy", "nginx", "callnumber.conf");

/** Clients know the root alone: the proxy must send the certificate between. */
const root = newAuthority("the root");
const authority = newAuthority("between", root);
function issueChain() {
  const { certificate, key } = authority.issue();
  return { certificate: certificate + authority.certificate, key };
}
/** The limit of the configuration, and more than enough beyond it. */
const CONNECTIONS = 64;
const IDLE_ADDRESSES = 40;
const IDLE_PER_ADDRESS = 50;
const LEASES = "/v1/namespaces/main/leases";

const nginx = await findNginx();
beforeEach((context) => context.skip(typeof nginx === "string", typeof nginx === "string" ? nginx : undefined));

/** Starts nginx before a coordinator that requires tokens; both end with the test. `settings` replace those of the configuration. */
async function served(settings: Settings = {}) {
  if (typeof nginx === "string") throw new Error(nginx);
  const folder = await folderForTest();
  const tokensFile = join(folder, "tokens");
  const create = ["token", "create", "--tokens-file", tokensFile, "--role", "lease", "--namespace", "main"];
  const { stdout } = await callnumber(create);
  const coordinator = await serve("memory:", "--tokens-file", tokensFile);
  const port = await freePort();
  const files = writeTlsFiles(folder, issueChain());
  const coordinatorPort = Number(new URL(coordinator.url).port);
  const proxy = await startProxy(nginx, { folder, port, coordinatorPort, settings, ...files });
  onTestFinished(() => proxy.kill("SIGTERM"));
  return { folder, port, url: `https://127.0.0.1:${port}`, token: stdout.trim(), coordinator, proxy };
}

/** Opens a TLS connection that ends with the test. */
async function opened(port: number, from: string, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const below = tcpConnect({ host: "127.0.0.1", port, localAddress: from });
  const socket = tlsConnect({ socket: below, host: "127.0.0.1", ca: root.certificate, ...options });
  onTestFinished(() => void socket.destroy());
  await once(socket, "secureConnect");
  return socket.setEncoding("latin1").on("error", () => {});
}

/** Runs an importer that leases through the proxy. */
async function expectLease({ folder, url, token, coordinator }: Awaited<ReturnType<typeof served>>): Promise<void> {
  const ca = replaceFile(join(folder, "ca.crt"), root.certificate, 0o644);
  const env = { NODE_EXTRA_CA_CERTS: ca, CALLNUMBER_TOKEN: token };
  const next = await callnumberProcess(["next", "-n", "2", "--coordinator", url], { env });
  expect(next).toMatchObject({ code: 0, stdout: expect.stringMatching(/^([0-9A-Za-z]{8}\n){2}$/) });
  expect(coordinator.output().stdout).toContain('"msg":"lease"');
}

interface TestRequest {
  /** The address of the client: each has limits of its own. */
  readonly from: string;
  readonly path?: string;
  readonly body?: string;
}

function statusOf(
  port: number,
  { from, path = "/healthz", body }: TestRequest,
  agent?: Agent,
): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const options = { host: "127.0.0.1", port, path, localAddress: from, ca: root.certificate, agent };
    const method = body === undefined ? "GET" : "POST";
    const headers = { "content-type": "application/json" };
    const sent = request({ ...options, method, headers }, (response) => {
      response.resume();
      resolve(response.statusCode);
    });
    sent.on("error", reject).end(body);
  });
}

test("an importer leases through the proxy over TLS", async () => {
  await expectLease(await served());
});

test("the proxy sends its chain, which a client rejects without the authority, and serves a renewed one after SIGHUP", async () => {
  // One process alone would not accept connections by its new configuration.
  const { folder, port, proxy } = await served({ [ONE_PROCESS]: "" });
  const ca = newAuthority("another root").certificate;
  await expect(opened(port, "127.0.0.1", { ca })).rejects.toMatchObject({ code: "UNABLE_TO_GET_ISSUER_CERT_LOCALLY" });
  const serial = async () => (await opened(port, "127.0.0.1")).getPeerCertificate().serialNumber;
  const renewed = issueChain();
  const { serialNumber } = new X509Certificate(renewed.certificate);
  expect(await serial()).not.toBe(serialNumber);
  writeTlsFiles(folder, renewed);
  process.kill(proxy.pid, "SIGHUP");
  await expect.poll(serial).toBe(serialNumber);
});

test("a client gets HTTP/2, and its idle connection ends", async () => {
  const { url } = await served({ "keepalive_timeout 75s": "keepalive_timeout 1s" });
  const session = http2Connect(url, { ca: root.certificate });
  const closed = once(session, "close");
  const [headers] = await once(session.request({ ":path": "/healthz" }).resume(), "response");
  expect(headers).toMatchObject({ ":status": 200 });
  await closed;
});

/** Without a token the coordinator would reject it before its body arrives. */
const leaseHead = (token: string) =>
  `POST ${LEASES} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nauthorization: Bearer ${token}\r\n`;
const LONG = "x".repeat(1_000);

test.each([
  ["no request", () => "", ""],
  ["no second request", () => "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n", ""],
  ["its header one byte at a time", (token: string) => `${leaseHead(token)}x-long: `, LONG],
  ["its body one byte at a time", (token: string) => `${leaseHead(token)}content-length: ${LONG.length}\r\n\r\n`, LONG],
])("the proxy ends a client that sends %s, and serves another address meanwhile", async (_, head, slowly) => {
  const { port, token } = await served({
    "client_header_timeout 10s": "client_header_timeout 1s",
    "keepalive_timeout 75s": "keepalive_timeout 1s",
  });
  const socket = (await opened(port, "127.0.0.7")).resume();
  socket.write(head(token));
  let sentCount = 0;
  while (!socket.closed) {
    if (sentCount < slowly.length) socket.write(slowly.charAt(sentCount++));
    expect(await statusOf(port, { from: "127.0.0.8" })).toBe(200);
    // Below the request rate.
    await delay(100);
  }
  if (slowly !== "") expect(sentCount).toBeLessThan(slowly.length);
});

test("an importer leases while 2,000 connections are idle, and none of them is closed", async () => {
  const all = await served({ "keepalive_timeout 75s": "keepalive_timeout 1h" });
  const agent = new Agent({ keepAlive: true, maxFreeSockets: IDLE_PER_ADDRESS });
  onTestFinished(() => agent.destroy());
  for (let address = 1; address <= IDLE_ADDRESSES; address++) {
    const from = `127.0.1.${address}`;
    const statuses = Array.from({ length: IDLE_PER_ADDRESS }, () => statusOf(all.port, { from }, agent));
    expect(new Set(await Promise.all(statuses))).toEqual(new Set([200]));
  }
  await expectLease(all);
  expect(Object.values(agent.freeSockets).flat()).toHaveLength(IDLE_ADDRESSES * IDLE_PER_ADDRESS);
});

test("the proxy closes an idle connection to the coordinator first: a request on one just closed would get no response", async () => {
  const { port, coordinator } = await served();
  const coordinatorPort = Number(new URL(coordinator.url).port);
  const before = new Set(connectionsTo(coordinatorPort).map(({ client }) => client));
  expect(await statusOf(port, { from: "127.0.0.9" })).toBe(200);
  const ended = () => connectionsTo(coordinatorPort).filter(({ client, isEnded }) => isEnded && !before.has(client));
  await expect.poll(ended).toHaveLength(1);
  expect(ended()).toMatchObject([{ endedBy: "client" }]);
});

/** The connections to a port of this machine, as the system lists them. The side that ends one keeps it for a while. */
function connectionsTo(port: number) {
  const [ENDED, suffix] = ["06", `:${port.toString(16).toUpperCase().padStart(4, "0")}`];
  const lines = readFileSync("/proc/net/tcp", "utf8").trim().split("\n").slice(1);
  return lines.flatMap((line) => {
    const [, local = "", remote = "", state] = line.trim().split(/\s+/);
    const isEnded = state === ENDED;
    if (remote.endsWith(suffix)) return [{ client: local, isEnded, endedBy: "client" }];
    return isEnded && local.endsWith(suffix) ? [{ client: remote, isEnded, endedBy: "coordinator" }] : [];
  });
}

test("a client above the request rate gets 429, and another address gets 200", async () => {
  const { port } = await served();
  const seen = new Set<number | undefined>();
  const agent = new Agent({ keepAlive: true });
  onTestFinished(() => agent.destroy());
  const sendRequests = async () => {
    while (!seen.has(429)) seen.add(await statusOf(port, { from: "127.0.0.2" }, agent));
  };
  await Promise.all(Array.from({ length: CONNECTIONS / 2 }, sendRequests));
  expect(seen).toEqual(new Set([200, 429]));
  expect(await statusOf(port, { from: "127.0.0.3" })).toBe(200);
});

test("a client above the number of connections gets 503, and another address gets 200", async () => {
  const { port, token } = await served();
  const head = `${leaseHead(token)}content-length: 9\r\n\r\n{`;
  const answers: string[] = [];
  let openCount = 0;
  // Those that do not send their body in time are ended by the proxy, and others begin. The coordinator's own limit would answer in JSON.
  while (!answers.some((answer) => /^HTTP\/1.1 503 [^]*text\/html/.test(answer))) {
    const socket = await opened(port, "127.0.0.4");
    socket.on("data", (text: string) => answers.push(text));
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

/** By a text of the configuration, what takes its place. */
type Settings = Readonly<Record<string, string>>;

interface Proxied {
  readonly settings: Settings;
  readonly folder: string;
  readonly port: number;
  readonly coordinatorPort: number;
  readonly certificate: string;
  readonly key: string;
}

/** Starts it with the shipped file, in which only ports, paths and `settings` are replaced. */
async function startProxy(program: Nginx, place: Proxied): Promise<RunningServer> {
  const { folder, port, coordinatorPort, certificate, key, settings } = place;
  const http = readFileSync(CONFIGURATION, "utf8");
  // What it asks for outside itself.
  const outside = [...http.matchAll(/^# {5}(.*\n)/gm)].map(([, line]) => line).join("");
  const places: readonly [string, string][] = [
    ["listen 443 ssl", `listen 127.0.0.1:${port} ssl`],
    ["    listen [::]:443 ssl http2;\n", ""],
    ["server 127.0.0.1:7300;", `server 127.0.0.1:${coordinatorPort};`],
    ["/etc/callnumber/tls.crt", certificate],
    ["/etc/callnumber/tls.key", key],
    ...Object.entries(settings),
  ];
  return await startNginx(program, { folder, port, http, outside, places });
}
