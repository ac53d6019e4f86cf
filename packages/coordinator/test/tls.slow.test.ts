/** TLS of the HTTP server, over real sockets and with real certificates: which clients connect, and new certificates while it runs. */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { connect as connectPlainly } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import tls, { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { newAuthority } from "../../../test/tls/certificates.js";
import { replaceFile, writeTlsFiles } from "../../../test/tls/files.js";
import { EventHub } from "../src/events/events.js";
import { readTlsMaterial, type TlsPaths } from "../src/http/tls.js";
import { SILENT_LOG } from "../src/log.js";
import { metricNamesIn, samplesIn } from "./metrics-text.js";
import { leaseRequest, served } from "./served.js";

const DAY_MS = 24 * 3_600_000;
const CERTIFICATE_EXPIRY = "callnumber_tls_certificate_expiry_timestamp_seconds";
const authority = newAuthority();
const clients = newAuthority("an authority of clients");

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "callnumber-tls-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
});

/** A server with these files. `reload` reads them again. */
async function servedWith(paths: TlsPaths, host = "127.0.0.1") {
  const debugged: string[] = [];
  const log = { ...SILENT_LOG, debug: (_fields: object, event: string) => void debugged.push(event) };
  const tls = readTlsMaterial(paths, Date.now());
  const { server, url, port, coordinator } = await served({ events: new EventHub(log), tls, host });
  const reload = () => server.useTls(readTlsMaterial(paths, Date.now()));
  return { url, port, coordinator, server, reload, debugged };
}

const toServer = (port: number, options: ConnectionOptions = {}) =>
  ({ host: "127.0.0.1", port, ca: authority.certificate, ...options }) as const;

/** Status and body of a GET, over a connection of its own. */
function get(
  port: number,
  path: string,
  options: ConnectionOptions = {},
): Promise<readonly [status: number | undefined, body: string]> {
  return new Promise((resolve, reject) => {
    const agent = new Agent({ keepAlive: false, maxCachedSessions: 0 });
    const sent = request({ ...toServer(port, options), path, agent } as object, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      response.on("end", () => resolve([response.statusCode, text]));
    });
    sent.on("error", reject).end();
  });
}

const health = async (port: number, options: ConnectionOptions = {}) => (await get(port, "/healthz", options))[0];

/** The serial number of the certificate that the server shows. */
async function shown(port: number, host = "127.0.0.1"): Promise<string> {
  const socket = connect({ ...toServer(port), host, servername: "localhost" });
  await once(socket, "secureConnect");
  const { serialNumber } = socket.getPeerCertificate();
  socket.end();
  socket.resume();
  await once(socket, "close");
  return serialNumber;
}

test("a server with a certificate responds over TLS to clients that trust its authority", async () => {
  const { port, url } = await servedWith(writeTlsFiles(folder, authority.issue()));
  expect(url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
  expect(await health(port)).toBe(200);
  await expect(health(port, { ca: newAuthority().certificate })).rejects.toThrow();
});

test("a server with a certificate accepts TLS 1.2 and 1.3, and nothing older, whatever the process was started with", async () => {
  const { DEFAULT_CIPHERS, DEFAULT_MIN_VERSION } = tls;
  onTestFinished(() => void Object.assign(tls, { DEFAULT_CIPHERS, DEFAULT_MIN_VERSION }));
  Object.assign(tls, { DEFAULT_CIPHERS: "DEFAULT@SECLEVEL=0", DEFAULT_MIN_VERSION: "TLSv1" });
  const { port } = await servedWith(writeTlsFiles(folder, authority.issue()));
  for (const version of ["TLSv1.2", "TLSv1.3"] as const) {
    expect(await health(port, { minVersion: version, maxVersion: version })).toBe(200);
  }
  // The client would: at this security level OpenSSL lets it try.
  const old = { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" } as const;
  await expect(health(port, old)).rejects.toThrow(/protocol version|EPROTO/i);
});

test("a server with a certificate closes a plain HTTP connection without a response, and logs it at debug level", async () => {
  const { port, debugged } = await servedWith(writeTlsFiles(folder, authority.issue()));
  const socket = connectPlainly({ port, host: "127.0.0.1" });
  const received: Buffer[] = [];
  socket.on("data", (chunk) => received.push(chunk)).on("error", () => {});
  socket.write("POST /v1/namespaces/main/leases HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}");
  await once(socket, "close");
  expect(Buffer.concat(received).toString("latin1")).not.toContain("HTTP/1.1");
  expect(await health(port)).toBe(200);
  expect(debugged).toEqual(["handshake_failed"]);
});

test("a server with a certificate stops at once when a client has connected and sends nothing", async () => {
  const { port, server } = await servedWith(writeTlsFiles(folder, authority.issue()));
  const socket = connectPlainly({ port, host: "127.0.0.1" });
  socket.on("error", () => {});
  await once(socket, "connect");
  expect(await health(port)).toBe(200);
  const closed = once(socket, "close");
  await server.stop();
  await closed;
});

test("a server with a new certificate shows it on every address of localhost, and its expiry to Prometheus", async () => {
  const ends = [30, 90].map((days) => Math.floor((Date.now() + days * DAY_MS) / 1_000)) as [number, number];
  const paths = writeTlsFiles(folder, authority.issue({ untilMs: ends[0] * 1_000 }));
  const { port, reload } = await servedWith(paths, "localhost");
  const expiry = async () => samplesIn((await get(port, "/metrics"))[1]).get(CERTIFICATE_EXPIRY);
  expect(await expiry()).toBe(ends[0]);
  // A machine without IPv6 has no such address.
  const shownTo = () => Promise.all([shown(port), shown(port, "::1").catch(() => undefined)]);
  const [before, before6] = await shownTo();
  writeTlsFiles(folder, authority.issue({ untilMs: ends[1] * 1_000 }));
  reload();
  const [after, after6] = await shownTo();
  expect(after).not.toBe(before);
  if (before6 !== undefined) expect(after6).toBe(after);
  expect(await expiry()).toBe(ends[1]);
});

describe("with a client CA", () => {
  async function servedToClients() {
    const clientCa = replaceFile(join(folder, "clients.crt"), clients.certificate, 0o644);
    const server = await servedWith({ ...writeTlsFiles(folder, authority.issue()), clientCa });
    const { certificate: cert, key } = clients.issue({ names: ["importer-1"] });
    const replaceCa = () => {
      replaceFile(clientCa, newAuthority("others").certificate, 0o644);
      server.reload();
    };
    return { ...server, options: toServer(server.port, { cert, key }), own: { cert, key }, replaceCa };
  }

  test("a server with a client CA accepts only clients with a certificate of it", async () => {
    const { port, own, debugged } = await servedToClients();
    expect(await health(port, own)).toBe(200);
    await expect(health(port)).rejects.toThrow();
    const other = newAuthority("an authority of clients").issue();
    await expect(health(port, { cert: other.certificate, key: other.key })).rejects.toThrow();
    const expired = clients.issue({ untilMs: Date.now() - 1_000 });
    await expect(health(port, { cert: expired.certificate, key: expired.key })).rejects.toThrow();
    expect(new Set(debugged)).toEqual(new Set(["handshake_failed"]));
  });

  test("a new client CA closes open connections, and a request that had not arrived whole leases nothing", async () => {
    const { port, options, own, coordinator, replaceCa } = await servedToClients();
    const text = leaseText();
    const responses: string[] = [];
    const sockets = await Promise.all(
      ["", text.slice(0, 20), text.slice(0, -20)].map(async (begun) => {
        const socket = connect(options);
        socket.setEncoding("latin1").on("data", (chunk: string) => responses.push(chunk));
        socket.on("error", () => {});
        await once(socket, "secureConnect");
        socket.write(begun);
        return socket;
      }),
    );
    const stream = connect(options);
    stream.on("error", () => {}).write("GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await once(stream, "data");
    const silent = connectPlainly({ port, host: "127.0.0.1" });
    await once(
      silent.on("error", () => {}),
      "connect",
    );
    // Over a connection of its own: by then the server has read what they sent.
    expect(await health(port, own)).toBe(200);
    const ends = [...sockets, stream, silent].map((socket) => once(socket.resume(), "close"));
    replaceCa();
    await Promise.all(ends);
    expect([responses, (await coordinator.status("main")).runsUsed]).toEqual([[], 0]);
  });

  test("open connections stay when only the certificate changes", async () => {
    const { options, reload } = await servedToClients();
    const socket = connect(options);
    const respond = async () => {
      socket.write("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
      return String((await once(socket, "data"))[0]);
    };
    expect(await respond()).toMatch(/^HTTP\/1\.1 200/);
    writeTlsFiles(folder, authority.issue());
    reload();
    expect(await respond()).toMatch(/^HTTP\/1\.1 200/);
    socket.destroy();
  });

  test.each(["TLSv1.2", "TLSv1.3"] as const)(
    "a new client CA ends the sessions of %s connections",
    async (maxVersion) => {
      const { options, replaceCa } = await servedToClients();
      const { session } = await responseTo(connect({ ...options, maxVersion }));
      expect(await responseTo(connect({ ...options, maxVersion, session }))).toMatchObject({ isReused: true });
      replaceCa();
      await expect(responseTo(connect({ ...options, maxVersion, session }))).rejects.toThrow();
    },
  );
});

/** A lease request, and nothing behind it. */
function leaseText(): string {
  const body = JSON.stringify(leaseRequest());
  const head = ["POST /v1/namespaces/main/leases HTTP/1.1", "host: localhost", "content-type: application/json"];
  return [...head, `content-length: ${body.length}`, "", body].join("\r\n");
}

/** The session for a shorter handshake next time, once the server has responded. */
async function responseTo(socket: TLSSocket): Promise<{ session: Buffer | undefined; isReused: boolean }> {
  let session: Buffer | undefined;
  let isReused = false;
  socket.on("secureConnect", () => {
    isReused = socket.isSessionReused();
  });
  socket.on("session", (given) => {
    session = given;
  });
  socket.write("GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
  const response = await new Promise<string>((resolve, reject) => {
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk;
    });
    socket.on("error", reject);
    socket.on("close", () => (text === "" ? reject(new Error("no response")) : resolve(text)));
  });
  expect(response).toContain("200 OK");
  return { session, isReused };
}

test("a server of plain HTTP shows Prometheus no certificate, not even one that expired in 1970", async () => {
  const { text } = await (await served()).get("/metrics");
  expect(metricNamesIn(text)).toContain(CERTIFICATE_EXPIRY);
  expect(samplesIn(text).get(CERTIFICATE_EXPIRY)).toBeUndefined();
});

test.each<[string, (paths: { certificate: string; key: string }) => void, RegExp]>([
  ["a key that others may read", ({ key }) => chmodSync(key, 0o604), /mode is 0604; .*chmod 600/],
  ["a key that the group may change", ({ key }) => chmodSync(key, 0o660), /mode is 0660/],
  ["another certificate's key", ({ key }) => replaceFile(key, authority.issue().key), /is not the one of/],
  ["no key at all", ({ key }) => replaceFile(key, "a secret that is not a key"), /it is not a key in PEM/],
  ["a missing key", ({ key }) => rmSync(key), /can't be read: ENOENT/],
  ["a pipe", ({ key }) => (rmSync(key), spawnSync("sh", ["-c", 'mkfifo -m 600 "$0"', key])), /is not a file/],
  ["a directory", ({ key }) => (rmSync(key), mkdirSync(key)), /is not a file/],
  ["no certificate", ({ certificate }) => writeFileSync(certificate, ""), /holds no certificate/],
  [
    "a certificate of tomorrow",
    () => writeTlsFiles(folder, authority.issue({ fromMs: Date.now() + DAY_MS })),
    /is not valid before 20\d\d-/,
  ],
  [
    "an expired certificate",
    () => writeTlsFiles(folder, authority.issue({ untilMs: Date.UTC(2020, 0) })),
    /expired on 2020-01-01T00:00:00\.000Z/,
  ],
])("a server rejects %s", (_, spoil, reason) => {
  const paths = writeTlsFiles(folder, authority.issue());
  spoil(paths);
  const read = () => readTlsMaterial(paths, Date.now());
  expect(read).toThrow(TypeError);
  expect(read).toThrow(reason);
  expect(read).not.toThrow(/PRIVATE KEY|a secret that is not a key/);
});

test("a server rejects an empty client CA", () => {
  const paths = { ...writeTlsFiles(folder, authority.issue()), clientCa: join(folder, "clients.crt") };
  writeFileSync(paths.clientCa, "");
  expect(() => readTlsMaterial(paths, Date.now())).toThrow(/client CA .* holds no certificate/);
});

test("a key that its group may read is accepted: services get their keys that way", () => {
  const paths = writeTlsFiles(folder, authority.issue());
  chmodSync(paths.key, 0o640);
  expect(readTlsMaterial(paths, Date.now()).endsAtMs).toBeGreaterThan(Date.now());
});
