/** TLS of the HTTP server, over real sockets and with real certificates: who gets in, and new certificates while it runs. */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:https";
import { connect as connectPlainly } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import tls, { type ConnectionOptions, connect, type EphemeralKeyInfo, type TLSSocket } from "node:tls";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { newAuthority } from "../../../test/tls/certificates.js";
import { replaceFile, writeTlsFiles } from "../../../test/tls/files.js";
import { Coordinator } from "../src/coordinator.js";
import { EventHub } from "../src/events/events.js";
import { RecentEvents } from "../src/events/recent-events.js";
import { createServer } from "../src/http/server.js";
import { readTlsMaterial, type TlsMaterial, type TlsPaths } from "../src/http/tls-files.js";
import { TlsReload } from "../src/http/tls-reload.js";
import type { Log } from "../src/log.js";
import { MemoryStore } from "../src/stores/memory.js";
import { holder } from "./commands-for-test.js";
import { metricNamesIn, samplesIn } from "./metrics-text.js";

const DAY_MS = 24 * 3_600_000;
const CERTIFICATE_END = "callnumber_tls_certificate_expiry_timestamp_seconds";
const authority = newAuthority();

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "callnumber-tls-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
});

interface Line {
  readonly level: string;
  readonly event: string;
  readonly fields: Readonly<Record<string, unknown>>;
}

/** A server on a free port; `look` is one look at the files, as the timer would do it. */
async function served(paths: TlsPaths, host = "127.0.0.1") {
  const lines: Line[] = [];
  const written = (level: string) => (fields: object, event: string) =>
    void lines.push({ level, event, fields: fields as Line["fields"] });
  const log: Log = { debug: written("debug"), info: written("info"), warn: written("warn"), error: written("error") };
  const clock = { ms: Date.now() };
  const material = readTlsMaterial(paths, clock.ms);
  const recent = new RecentEvents();
  const coordinator = new Coordinator({ store: new MemoryStore(), name: "c" });
  const server = await createServer({
    coordinator,
    release: "0",
    events: new EventHub(log),
    recentEvents: recent,
    tls: material,
  });
  const url = await server.listen({ host, port: 0 });
  const use = (next: TlsMaterial) => server.useTls(next);
  const reload = new TlsReload({ paths, material, use, log, everyMs: 3_600_000, now: () => clock.ms });
  const look = () => {
    reload.start();
    reload.stop();
  };
  look();
  let isStopped = false;
  const stop = async () => {
    if (!isStopped) await server.stop();
    isStopped = true;
  };
  onTestFinished(stop);
  const told = () => lines.splice(0).map(({ level, event }) => `${level} ${event}`);
  return { url, port: Number(new URL(url).port), coordinator, reload, look, lines, told, clock, recent, stop };
}

/** What /healthz answers, over a connection of its own. */
function health(port: number, options: ConnectionOptions = {}): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const agent = new Agent({ keepAlive: false, maxCachedSessions: 0 });
    const asked = { host: "127.0.0.1", port, path: "/healthz", ca: authority.certificate, agent, ...options };
    const asking = request(asked as object, (answer) => {
      answer.resume();
      resolve(answer.statusCode);
    });
    asking.on("error", reject);
    asking.end();
  });
}

async function scraped(port: number): Promise<string> {
  return await new Promise((resolve, reject) => {
    const asked = { host: "127.0.0.1", port, path: "/metrics", ca: authority.certificate, agent: false as const };
    request(asked, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      answer.on("end", () => resolve(text));
    })
      .on("error", reject)
      .end();
  });
}

/** The serial number of the certificate that the server shows. */
async function shown(port: number, host = "127.0.0.1"): Promise<string> {
  const socket = connect({ host, port, ca: authority.certificate, servername: "localhost" });
  await once(socket, "secureConnect");
  const { serialNumber } = socket.getPeerCertificate();
  socket.end();
  socket.resume();
  await once(socket, "close");
  return serialNumber;
}

describe("a server with a certificate", () => {
  test("answers over TLS whoever trusts its authority, and is distrusted by others", async () => {
    const { port, url } = await served(writeTlsFiles(folder, authority.issue()));
    expect(url).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/);
    expect(await health(port)).toBe(200);
    await expect(health(port, { ca: newAuthority().certificate })).rejects.toThrow();
  });

  test("speaks TLS 1.2 and 1.3, and nothing older, whatever the process was told", async () => {
    const { DEFAULT_CIPHERS, DEFAULT_MIN_VERSION } = tls;
    onTestFinished(() => void Object.assign(tls, { DEFAULT_CIPHERS, DEFAULT_MIN_VERSION }));
    Object.assign(tls, { DEFAULT_CIPHERS: "DEFAULT@SECLEVEL=0", DEFAULT_MIN_VERSION: "TLSv1" });
    const { port } = await served(writeTlsFiles(folder, authority.issue()));
    for (const version of ["TLSv1.2", "TLSv1.3"] as const) {
      expect(await health(port, { minVersion: version, maxVersion: version })).toBe(200);
    }
    // The caller would: at this security level OpenSSL lets it try.
    const old = { minVersion: "TLSv1", maxVersion: "TLSv1.1", ciphers: "DEFAULT@SECLEVEL=0" } as const;
    await expect(health(port, old)).rejects.toThrow(/protocol version|EPROTO/i);
  });

  test("ends a connection that speaks plain HTTP, says nothing to it, tells the debug log alone, and lives", async () => {
    const { port, told } = await served(writeTlsFiles(folder, authority.issue()));
    const socket = connectPlainly({ port, host: "127.0.0.1" });
    const received: Buffer[] = [];
    socket.on("data", (chunk) => received.push(chunk)).on("error", () => {});
    socket.write("POST /v1/namespaces/main/leases HTTP/1.1\r\nhost: localhost\r\ncontent-length: 2\r\n\r\n{}");
    await once(socket, "close");
    expect(Buffer.concat(received).toString("latin1")).not.toContain("HTTP/1.1");
    expect(await health(port)).toBe(200);
    expect(told()).toEqual(["debug handshake_refused"]);
  });

  test("agrees on a key exchange that is cheap for it, and on no other, before and after new files", async () => {
    const { port, look } = await served(writeTlsFiles(folder, authority.issue()));
    const agreed = async (group: string) => {
      const options = {
        port,
        host: "127.0.0.1",
        ca: authority.certificate,
        minVersion: "TLSv1.3",
        ecdhCurve: group,
      } as const;
      const socket = connect(options);
      await once(socket, "secureConnect");
      const { name } = socket.getEphemeralKeyInfo() as EphemeralKeyInfo;
      socket.destroy();
      return name;
    };
    for (const _files of ["first", "new"]) {
      expect(await agreed("ffdhe8192:secp521r1:secp384r1")).toBe("secp384r1");
      await expect(agreed("secp521r1")).rejects.toThrow(/handshake failure/);
      writeTlsFiles(folder, authority.issue());
      look();
    }
  });

  test("stops at once, although somebody has connected and says nothing", async () => {
    const { port, stop } = await served(writeTlsFiles(folder, authority.issue()));
    const socket = connectPlainly({ port, host: "127.0.0.1" });
    socket.on("error", () => {});
    await once(socket, "connect");
    expect(await health(port)).toBe(200);
    const closed = once(socket, "close");
    await stop();
    await closed;
  });
});

describe("with a client CA", () => {
  const clients = newAuthority("an authority of callers");

  test("only callers with a certificate of it get in", async () => {
    const clientCa = replaceFile(join(folder, "clients.crt"), clients.certificate, 0o644);
    const { port, told } = await served({ ...writeTlsFiles(folder, authority.issue()), clientCa });
    const { certificate: cert, key } = clients.issue({ names: ["importer-1"] });
    expect(await health(port, { cert, key })).toBe(200);
    await expect(health(port)).rejects.toThrow();
    const stranger = newAuthority("an authority of callers").issue();
    await expect(health(port, { cert: stranger.certificate, key: stranger.key })).rejects.toThrow();
    const ended = clients.issue({ untilMs: Date.now() - 1_000 });
    await expect(health(port, { cert: ended.certificate, key: ended.key })).rejects.toThrow();
    expect(new Set(told())).toEqual(new Set(["debug handshake_refused"]));
  });

  test("that changes, open connections are closed, and no run is leased to a request that had not arrived whole", async () => {
    const clientCa = replaceFile(join(folder, "clients.crt"), clients.certificate, 0o644);
    const { port, look, coordinator } = await served({ ...writeTlsFiles(folder, authority.issue()), clientCa });
    await coordinator.initNamespace("main");
    const { certificate: cert, key } = clients.issue();
    const text = leaseText("nonce-of-one-who-is-late");
    const answers: string[] = [];
    const sockets = await Promise.all(
      ["", text.slice(0, 20), text.slice(0, -20)].map(async (begun) => {
        const socket = connect({ port, host: "127.0.0.1", ca: authority.certificate, cert, key });
        socket.setEncoding("latin1").on("data", (chunk: string) => answers.push(chunk));
        socket.on("error", () => {});
        await once(socket, "secureConnect");
        socket.write(begun);
        return socket;
      }),
    );
    const stream = connect({ port, host: "127.0.0.1", ca: authority.certificate, cert, key });
    stream.on("error", () => {}).write("GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n");
    await once(stream, "data");
    const silent = connectPlainly({ port, host: "127.0.0.1" });
    await once(
      silent.on("error", () => {}),
      "connect",
    );
    // Over a connection of its own: by then the server has read what they sent.
    expect(await health(port, { cert, key })).toBe(200);
    const ends = [...sockets, stream, silent].map((socket) => once(socket.resume(), "close"));
    replaceFile(clientCa, newAuthority("others").certificate, 0o644);
    look();
    await Promise.all(ends);
    expect([answers, (await coordinator.status("main")).runsUsed]).toEqual([[], 0]);
  });

  test("that stays, open connections go on when the certificate changes", async () => {
    const clientCa = replaceFile(join(folder, "clients.crt"), clients.certificate, 0o644);
    const { port, look, told } = await served({ ...writeTlsFiles(folder, authority.issue()), clientCa });
    const { certificate: cert, key } = clients.issue();
    const socket = connect({ port, host: "127.0.0.1", ca: authority.certificate, cert, key });
    const ask = async () => {
      socket.write("GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n");
      return String((await once(socket, "data"))[0]);
    };
    expect(await ask()).toMatch(/^HTTP\/1\.1 200/);
    writeTlsFiles(folder, authority.issue());
    look();
    expect(told()).toEqual(["info certificate_reloaded"]);
    expect(await ask()).toMatch(/^HTTP\/1\.1 200/);
    socket.destroy();
  });

  test.each(["TLSv1.2", "TLSv1.3"] as const)(
    "whose authority is taken away does not come back with what an earlier %s connection left",
    async (version) => {
      const clientCa = replaceFile(join(folder, "clients.crt"), clients.certificate, 0o644);
      const { port, look, told } = await served({ ...writeTlsFiles(folder, authority.issue()), clientCa });
      const { certificate: cert, key } = clients.issue();
      const options = { port, host: "127.0.0.1", ca: authority.certificate, cert, key, maxVersion: version };
      const { session } = await asked(connect(options));
      expect(await asked(connect({ ...options, session }))).toMatchObject({ isReused: true });
      replaceFile(clientCa, newAuthority("others").certificate, 0o644);
      look();
      expect(told()).toEqual(["info certificate_reloaded"]);
      await expect(asked(connect({ ...options, session }))).rejects.toThrow();
    },
  );
});

/** A request for a run, and no other behind it. */
function leaseText(nonce: string): string {
  const body = JSON.stringify({ runCount: 1, nonce, holder, lastRun: null, receipt: null, sentAtMs: Date.now() });
  const head = ["POST /v1/namespaces/main/leases HTTP/1.1", "host: localhost", "content-type: application/json"];
  return [...head, `content-length: ${body.length}`, "", body].join("\r\n");
}

/** What the server gives for a shorter handshake next time, once it has answered a request. */
async function asked(socket: TLSSocket): Promise<{ session: Buffer | undefined; isReused: boolean }> {
  let session: Buffer | undefined;
  let isReused = false;
  socket.on("secureConnect", () => {
    isReused = socket.isSessionReused();
  });
  socket.on("session", (given) => {
    session = given;
  });
  socket.write("GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
  const answer = await new Promise<string>((resolve, reject) => {
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk;
    });
    socket.on("error", reject);
    socket.on("close", () => (text === "" ? reject(new Error("no answer")) : resolve(text)));
  });
  expect(answer).toContain("200 OK");
  return { session, isReused };
}

describe("new files", () => {
  test("are used for new connections, on every address of localhost, and told with the date of their end", async () => {
    const paths = writeTlsFiles(folder, authority.issue());
    const { port, url, look, lines } = await served(paths, "localhost");
    expect(url).toMatch(/^https:/);
    const before = await shown(port);
    const before6 = await shown(port, "::1").catch(() => undefined);
    const untilMs = Math.floor((Date.now() + 90 * DAY_MS) / 1_000) * 1_000;
    writeTlsFiles(folder, authority.issue({ untilMs }));
    look();
    expect(await shown(port)).not.toBe(before);
    // A machine without IPv6 has no such address.
    if (before6 !== undefined) expect(await shown(port, "::1")).not.toBe(before6);
    const endsAt = new Date(untilMs).toISOString();
    expect(lines).toEqual([{ level: "info", event: "certificate_reloaded", fields: { endsAt } }]);
  });

  test("are used without a word more when nothing in them is new", async () => {
    const pair = authority.issue();
    const { look, told } = await served(writeTlsFiles(folder, pair));
    writeTlsFiles(folder, pair);
    look();
    look();
    expect(told()).toEqual([]);
  });

  test("that change one after the other are waited for: no error between them", async () => {
    const paths = writeTlsFiles(folder, authority.issue());
    const { port, look, told } = await served(paths);
    const before = await shown(port);
    const next = authority.issue();
    replaceFile(paths.certificate, next.certificate);
    look();
    expect(await shown(port)).toBe(before);
    replaceFile(paths.key, next.key);
    look();
    expect(await shown(port)).not.toBe(before);
    expect(told()).toEqual(["info certificate_reloaded"]);
  });

  test.each<[string, (paths: { certificate: string; key: string }) => void, RegExp]>([
    ["of two pairs", ({ key }) => replaceFile(key, authority.issue().key), /is not the one of the certificate/],
    ["cut short", ({ certificate }) => replaceFile(certificate, "-----BEGIN CERT"), /holds no certificate/],
    ["taken away", ({ key }) => rmSync(key), /can't be read: ENOENT/],
    [
      "that can't even be looked at",
      ({ key }) => {
        rmSync(key);
        symlinkSync(key, key);
      },
      /can't be read: ELOOP/,
    ],
    ["that everybody may read", ({ key }) => chmodSync(key, 0o644), /mode is 0644; .*chmod 600/],
    [
      "that have ended",
      () => writeTlsFiles(folder, authority.issue({ untilMs: Date.UTC(2020, 0) })),
      /has ended on 2020-01-01T00:00:00\.000Z/,
    ],
  ])("%s leave the old ones in use, and are told once", async (_, spoil, reason) => {
    const paths = writeTlsFiles(folder, authority.issue());
    const { port, look, reload, lines, told } = await served(paths);
    const before = await shown(port);
    spoil(paths);
    for (const _look of [1, 2, 3, 4]) look();
    expect(lines).toMatchObject([
      { level: "error", event: "certificate_not_reloaded", fields: { reason: expect.stringMatching(reason) } },
    ]);
    expect(JSON.stringify(lines)).not.toContain("PRIVATE KEY");
    expect(await shown(port)).toBe(before);
    lines.length = 0;
    reload.reload();
    expect(told()).toEqual(["error certificate_not_reloaded"]);
    writeTlsFiles(folder, authority.issue());
    look();
    expect(told()).toEqual(["info certificate_reloaded"]);
    expect(await shown(port)).not.toBe(before);
  });

  test("that are asked for are told of also when nothing in them is new", async () => {
    const { reload, told } = await served(writeTlsFiles(folder, authority.issue()));
    reload.reload();
    expect(told()).toEqual(["info certificate_reloaded"]);
  });

  test("a certificate near its end is warned of once a day, from 14 days before, until there is another", async () => {
    const paths = writeTlsFiles(folder, authority.issue({ untilMs: Date.now() + 20 * DAY_MS }));
    const { look, told, clock, lines } = await served(paths);
    clock.ms += 5 * DAY_MS;
    look();
    expect(told()).toEqual([]);
    clock.ms += 1.5 * DAY_MS;
    look();
    look();
    expect(lines[0]?.fields).toMatchObject({ daysLeft: 13 });
    expect(told()).toEqual(["warn certificate_ends_soon"]);
    clock.ms += DAY_MS;
    look();
    expect(told()).toEqual(["warn certificate_ends_soon"]);
    // It ends within the day that the last warning was good for: told at once, and then once a day.
    clock.ms += 12 * DAY_MS;
    look();
    expect(told()).toEqual(["warn certificate_ends_soon"]);
    clock.ms += 0.75 * DAY_MS;
    look();
    look();
    expect(told()).toEqual(["error certificate_ended"]);
    clock.ms += DAY_MS;
    look();
    expect(told()).toEqual(["error certificate_ended"]);
    writeTlsFiles(folder, authority.issue());
    look();
    expect(told()).toEqual(["info certificate_reloaded"]);
  });

  test("a certificate near its end is warned of again when the clock went back by more than a day", async () => {
    const paths = writeTlsFiles(folder, authority.issue({ untilMs: Date.now() + 10 * DAY_MS }));
    const { look, told, clock } = await served(paths);
    look();
    expect(told()).toEqual(["warn certificate_ends_soon"]);
    clock.ms -= 2 * DAY_MS;
    look();
    look();
    expect(told()).toEqual(["warn certificate_ends_soon"]);
  });

  test("that end soon are warned of as soon as they are in use", async () => {
    const { look, told } = await served(writeTlsFiles(folder, authority.issue()));
    writeTlsFiles(folder, authority.issue({ untilMs: Date.now() + DAY_MS }));
    look();
    expect(told()).toEqual(["info certificate_reloaded", "warn certificate_ends_soon"]);
  });

  test("are told to Prometheus by the date of their end, at the scrape after their reloading", async () => {
    const ends = [30, 90].map((days) => Math.floor((Date.now() + days * DAY_MS) / 1_000));
    const issued = (endS: number | undefined) => authority.issue({ untilMs: (endS as number) * 1_000 });
    const { port, look } = await served(writeTlsFiles(folder, issued(ends[0])));
    expect(samplesIn(await scraped(port)).get(CERTIFICATE_END)).toBe(ends[0]);
    writeTlsFiles(folder, issued(ends[1]));
    look();
    expect(samplesIn(await scraped(port)).get(CERTIFICATE_END)).toBe(ends[1]);
  });
});

test("a server of plain HTTP tells Prometheus of no certificate: not of one that ended in 1970 either", async () => {
  const server = await createServer({
    coordinator: new Coordinator({ store: new MemoryStore(), name: "c" }),
    release: "0",
  });
  onTestFinished(() => server.stop());
  const url = await server.listen({ host: "127.0.0.1", port: 0 });
  const text = await (await fetch(`${url}/metrics`)).text();
  expect(metricNamesIn(text)).toContain(CERTIFICATE_END);
  expect(samplesIn(text).get(CERTIFICATE_END)).toBeUndefined();
});

/** The second of its two times, in the middle of the digits; its signature is nobody's business but a caller's. */
function spoilEnd(path: string): void {
  const der = Buffer.from(readFileSync(path, "utf8").replaceAll(/-----.*-----|\n/g, ""), "base64");
  const begins = der.indexOf(Buffer.from([0x17, 13]));
  der.write("x", der.indexOf(Buffer.from([0x17, 13]), begins + 1) + 8);
  const text = der.toString("base64").replaceAll(/.{64}(?=.)/g, "$&\n");
  writeFileSync(path, `-----BEGIN CERTIFICATE-----\n${text}\n-----END CERTIFICATE-----\n`);
}

describe("files that are refused from the beginning", () => {
  test.each<[string, (paths: { certificate: string; key: string }) => void, RegExp]>([
    ["a key that others may read", ({ key }) => chmodSync(key, 0o604), /mode is 0604/],
    ["a key that the group may change", ({ key }) => chmodSync(key, 0o660), /mode is 0660/],
    ["another certificate's key", ({ key }) => replaceFile(key, authority.issue().key), /is not the one of/],
    ["no key at all", ({ key }) => replaceFile(key, "a secret that is no key"), /it is no key in PEM/],
    ["a pipe", ({ key }) => (rmSync(key), spawnSync("sh", ["-c", 'mkfifo -m 600 "$0"', key])), /is no file/],
    ["a folder", ({ key }) => (rmSync(key), mkdirSync(key)), /is no file/],
    ["no certificate", ({ certificate }) => writeFileSync(certificate, ""), /holds no certificate/],
    [
      "one not begun",
      () => writeTlsFiles(folder, authority.issue({ fromMs: Date.now() + DAY_MS })),
      /begins on 20\d\d-.* only/,
    ],
    ["one whose end is no date", ({ certificate }) => spoilEnd(certificate), /has an end that is no date/],
    ["one that has ended", () => writeTlsFiles(folder, authority.issue({ untilMs: Date.now() - 1 })), /has ended on/],
  ])("%s", (_, spoil, reason) => {
    const paths = writeTlsFiles(folder, authority.issue());
    spoil(paths);
    let told: unknown;
    try {
      readTlsMaterial(paths, Date.now());
    } catch (error) {
      told = error;
    }
    expect(told).toBeInstanceOf(TypeError);
    expect(String(told)).toMatch(reason);
    expect(String(told)).not.toMatch(/PRIVATE KEY|a secret that is no key/);
  });

  test("a group's read is no danger: services get their keys that way", () => {
    const paths = writeTlsFiles(folder, authority.issue());
    chmodSync(paths.key, 0o640);
    expect(readTlsMaterial(paths, Date.now()).endsAtMs).toBeGreaterThan(Date.now());
  });

  test("an authority of callers that has ended lets nobody in, and is said", () => {
    const paths = { ...writeTlsFiles(folder, authority.issue()), clientCa: join(folder, "clients.crt") };
    writeFileSync(paths.clientCa, "");
    expect(() => readTlsMaterial(paths, Date.now())).toThrow(/client CA .* holds no certificate/);
    writeFileSync(paths.clientCa, newAuthority().certificate);
    expect(() => readTlsMaterial(paths, Date.now() + 300 * DAY_MS)).not.toThrow();
    expect(() => readTlsMaterial(paths, Date.now() + 364.9 * DAY_MS)).not.toThrow();
  });
});
