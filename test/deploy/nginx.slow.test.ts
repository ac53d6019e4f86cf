/** The shipped configuration of nginx, with the real nginx before a real coordinator: what it lets through, and what it rejects. */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { connect as tcpConnect } from "node:net";
import { delimiter, join } from "node:path";
import { connect as tlsConnect } from "node:tls";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { unpackDebianPackages } from "../debian/unpacked-packages.js";
import { callnumber, callnumberProcess, folderForTest, REPOSITORY, serve } from "../processes/command.js";
import { freePort, launch, type RunningServer } from "../processes/server-process.js";
import { newAuthority } from "../tls/certificates.js";
import { replaceFile, writeTlsFiles } from "../tls/files.js";

const CONFIGURATION = join(REPOSITORY, "deploy", "nginx", "callnumber.conf");
/** Debian's place for it, which is not on every PATH. */
const SYSTEM_FOLDERS = ["/usr/sbin", "/usr/local/sbin"];

const authority = newAuthority();
/** The limit of the configuration, and more than enough beyond it. */
const CONNECTIONS = 64;
const LEASES = "/v1/namespaces/main/leases";

const nginx = await findNginx();
beforeEach((context) => context.skip(typeof nginx === "string", typeof nginx === "string" ? nginx : undefined));

/** Starts nginx before a coordinator that requires tokens; both end with the test. */
async function served() {
  if (typeof nginx === "string") throw new Error(nginx);
  const folder = await folderForTest();
  const tokensFile = join(folder, "tokens");
  const create = ["token", "create", "--tokens-file", tokensFile, "--role", "lease", "--namespace", "main"];
  const { stdout } = await callnumber(create);
  const coordinator = await serve("memory:", "--tokens-file", tokensFile);
  const port = await freePort();
  const files = writeTlsFiles(folder, authority.issue());
  const coordinatorPort = Number(new URL(coordinator.url).port);
  const proxy = await startNginx(nginx, { folder, port, coordinatorPort, ...files });
  onTestFinished(() => proxy.kill());
  return { folder, port, url: `https://127.0.0.1:${port}`, token: stdout.trim(), coordinator };
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
    const options = { host: "127.0.0.1", port, path, localAddress: from, ca: authority.certificate, agent };
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
  const { folder, url, token, coordinator } = await served();
  const ca = replaceFile(join(folder, "ca.crt"), authority.certificate, 0o644);
  const env = { NODE_EXTRA_CA_CERTS: ca, CALLNUMBER_TOKEN: token };
  const next = await callnumberProcess(["next", "-n", "2", "--coordinator", url], { env });
  expect(next).toMatchObject({ code: 0, stdout: expect.stringMatching(/^([0-9A-Za-z]{8}\n){2}$/) });
  expect(coordinator.output().stdout).toContain('"msg":"lease"');
});

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
  const { port } = await served();
  const head = `POST ${LEASES} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{`;
  const answers: string[] = [];
  let openCount = 0;
  // Those that do not send their body in time are ended by the proxy, and others begin.
  while (!answers.some((answer) => answer.startsWith("HTTP/1.1 503"))) {
    const below = tcpConnect({ host: "127.0.0.1", port, localAddress: "127.0.0.4" });
    const socket = tlsConnect({ socket: below, host: "127.0.0.1", ca: authority.certificate });
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

interface Nginx {
  readonly program: string;
  readonly environment: NodeJS.ProcessEnv;
}

/** Resolves to one that runs, or to why there is none: from this machine, else from Debian's packages. */
async function findNginx(): Promise<Nginx | string> {
  const folders = [...(process.env["PATH"] ?? "").split(delimiter).filter(Boolean), ...SYSTEM_FOLDERS];
  for (const folder of folders) {
    const nginx = { program: join(folder, "nginx"), environment: {} };
    if (existsSync(nginx.program) && runs(nginx)) return nginx;
  }
  return await unpackDebianPackages("nginx", ["nginx"], ({ home, libraryPath }) => {
    const nginx = { program: join(home, "usr", "sbin", "nginx"), environment: { LD_LIBRARY_PATH: libraryPath } };
    return existsSync(nginx.program) && runs(nginx) ? nginx : undefined;
  });
}

function runs({ program, environment }: Nginx): boolean {
  return spawnSync(program, ["-v"], { env: { ...process.env, ...environment } }).status === 0;
}

interface Proxied {
  readonly folder: string;
  readonly port: number;
  readonly coordinatorPort: number;
  readonly certificate: string;
  readonly key: string;
}

/** Starts it with the shipped file, in which only ports and paths are replaced. @throws Error with the end of its log when it does not listen. */
async function startNginx(nginx: Nginx, place: Proxied): Promise<RunningServer> {
  const { folder, port } = place;
  const own = join(folder, "callnumber.conf");
  writeFileSync(own, replaced(readFileSync(CONFIGURATION, "utf8"), place));
  const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map((name) => {
    mkdirSync(join(folder, name));
    return `${name}_temp_path ${join(folder, name)};`;
  });
  const whole = join(folder, "nginx.conf");
  // One process, which is this user's: no others must be able to read the folder.
  const head = `daemon off;\nmaster_process off;\npid ${join(folder, "nginx.pid")};\nerror_log stderr;\nevents {}\n`;
  writeFileSync(whole, `${head}http {\naccess_log off;\n${temporary.join("\n")}\ninclude ${own};\n}\n`);
  const words = ["-e", "stderr", "-p", folder, "-c", whole];
  return await launch({ ...nginx, words }, () => connected(port));
}

function replaced(text: string, { port, coordinatorPort, certificate, key }: Proxied): string {
  const places: readonly [string, string][] = [
    ["listen 443 ssl;", `listen 127.0.0.1:${port} ssl;`],
    ["    listen [::]:443 ssl;\n", ""],
    ["server 127.0.0.1:7300;", `server 127.0.0.1:${coordinatorPort};`],
    ["/etc/callnumber/tls.crt", certificate],
    ["/etc/callnumber/tls.key", key],
  ];
  return places.reduce((whole, [from, to]) => {
    if (!whole.includes(from)) throw new Error(`the configuration of nginx does not hold: ${from}`);
    return whole.replace(from, to);
  }, text);
}

async function connected(port: number): Promise<void> {
  const socket = tcpConnect({ host: "127.0.0.1", port });
  await once(socket, "connect");
  socket.destroy();
}
