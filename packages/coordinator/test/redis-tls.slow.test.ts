/** TLS to Redis with real certificates: what is believed, what is refused and in which words, and that nothing is leased then. */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { callnumberProcess } from "../../../test/processes/command.js";
import { command } from "../../../test/redis/redis-command.js";
import { storeUrlAt } from "../../../test/redis/shipped-users.js";
import { ownServerUnavailable, type RedisServer, startRedisServer } from "../../../test/redis/test-redis.js";
import { type CertificateAndKey, newAuthority } from "../../../test/tls/certificates.js";
import { replaceFile, type TlsFiles, writeTlsFiles } from "../../../test/tls/files.js";
import { newStoreAt, storeAt } from "./redis-for-test.js";

const authority = newAuthority();
const others = newAuthority("others");

let folder: string;
/** Of the authority that the server's certificate is of. */
let ca: string;

beforeEach((context) => {
  const reason = ownServerUnavailable();
  context.skip(reason !== undefined, reason);
  folder = mkdtempSync(join(tmpdir(), "callnumber-redis-tls-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  ca = replaceFile(join(folder, "ca.crt"), authority.certificate);
});

interface TlsRedis {
  readonly server: RedisServer;
  /** With TLS; `query` are settings of the store's URL. */
  urlWith(query: string): string;
}

/** It listens with TLS on one port and without on another. */
async function tlsRedis({
  pair = authority.issue(),
  asksForCertificates = false,
}: {
  readonly pair?: CertificateAndKey;
  readonly asksForCertificates?: boolean;
} = {}): Promise<TlsRedis> {
  const files = writeTlsFiles(folder, pair, "redis");
  const server = await startRedisServer({
    config: {
      "tls-cert-file": files.certificate,
      "tls-key-file": files.key,
      "tls-ca-cert-file": ca,
      "tls-auth-clients": asksForCertificates ? "yes" : "no",
    },
    morePorts: ["tls-port"],
  });
  const [, port] = /^tls-port (\d+)$/m.exec(readFileSync(join(server.directory, "redis.conf"), "utf8")) ?? [];
  const url = storeUrlAt("127.0.0.1", Number(port)).replace("redis:", "rediss:");
  return { server, urlWith: (query) => `${url}?${query}` };
}

/** Nothing of the store changes, and this is why. */
async function refusal({ server }: TlsRedis, url: string): Promise<string> {
  const before = await contents(server);
  const told = await storeAt(url).then(
    () => "it was let in",
    (error: { code?: string; message?: string }) => `${error.code}: ${error.message}`,
  );
  expect(await contents(server)).toEqual(before);
  return told;
}

async function contents(server: RedisServer): Promise<readonly unknown[]> {
  const record = await command(server, "HGETALL", "callnumber:{main}:record");
  // With it each of the coordinator's connections begins: how many came as far as to say a word.
  const stats = String(await command(server, "INFO", "commandstats"));
  const [, beginnings = "0"] = /^cmdstat_hello:calls=(\d+)/m.exec(stats) ?? [];
  return [await command(server, "DBSIZE"), record, Number(beginnings)];
}

describe("a server's certificate", () => {
  test("of the authority that the URL names is believed, and leases come over it", async () => {
    const redis = await tlsRedis();
    const { lease } = await newStoreAt(redis.urlWith(`ca=${ca}`));
    expect((await lease()).firstRun).toBe(1);
    expect((await lease()).firstRun).toBe(2);
  });

  test.each<[string, CertificateAndKey, RegExp]>([
    ["of another authority", others.issue(), /nobody known here has signed its certificate: .*\?ca=FILE/],
    ["that has ended", authority.issue({ untilMs: Date.now() - 1_000 }), /its certificate has ended/],
    ["that has not begun", authority.issue({ fromMs: Date.now() + 86_400_000 }), /its certificate has not begun/],
    ["for another host", authority.issue({ names: ["elsewhere.example"] }), /for another host name/],
  ])("%s is refused, and nothing is sent", async (_, pair, reason) => {
    const redis = await tlsRedis({ pair });
    await newStoreAt(redis.server.url);
    const told = await refusal(redis, redis.urlWith(`ca=${ca}`));
    expect(told).toMatch(/^store_unavailable: Redis at 127\.0\.0\.1:\d+ can't be reached: /);
    expect(told).toMatch(reason);
  });

  test("of no authority that Node knows is refused when the URL names none", async () => {
    const redis = await tlsRedis();
    expect(await refusal(redis, redis.urlWith("prefix=callnumber:"))).toMatch(/nobody known here has signed/);
  });

  test("is refused also where the environment tells Node to believe everybody", async () => {
    const redis = await tlsRedis({ pair: others.issue() });
    const env = { NODE_TLS_REJECT_UNAUTHORIZED: "0" };
    const { code, stderr } = await callnumberProcess(["init", "--store", redis.urlWith(`ca=${ca}`)], { env });
    expect({ code, stderr }).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("nobody known here has signed"),
    });
    expect(await contents(redis.server)).toEqual([0, [], 0]);
  });

  test("that is exchanged for one of another authority ends the leasing", async () => {
    const redis = await tlsRedis();
    const { lease } = await newStoreAt(redis.urlWith(`ca=${ca}`));
    expect((await lease()).firstRun).toBe(1);
    await restartWith(redis, others.issue());
    const seen = new Set<string>();
    await expect
      .poll(async () => {
        await lease().catch((error: Error) => seen.add(error.message));
        return [...seen].join("\n");
      })
      .toMatch(/nobody known here has signed/);
    expect(await contents(redis.server)).toEqual([0, [], 0]);
  });
});

async function restartWith({ server }: TlsRedis, pair: CertificateAndKey): Promise<void> {
  await server.stop();
  writeTlsFiles(folder, pair, "redis");
  await server.start();
}

describe("a server that asks for a certificate", () => {
  const shown = ({ certificate, key }: TlsFiles) => `ca=${ca}&certificate=${certificate}&key=${key}`;

  test("lets in the coordinator that shows one of its authority", async () => {
    const redis = await tlsRedis({ asksForCertificates: true });
    const own = writeTlsFiles(folder, authority.issue({ names: ["coordinator"] }), "coordinator");
    const { lease } = await newStoreAt(redis.urlWith(shown(own)));
    expect((await lease()).firstRun).toBe(1);
  });

  test("refuses one that shows none, or one of another authority, or one that has ended", async () => {
    const redis = await tlsRedis({ asksForCertificates: true });
    expect(await refusal(redis, redis.urlWith(`ca=${ca}`))).toMatch(/^store_unavailable: .*it asks for a certificate/);
    const foreign = writeTlsFiles(folder, others.issue(), "foreign");
    expect(await refusal(redis, redis.urlWith(shown(foreign)))).toMatch(/it does not know who has signed/);
    const ended = writeTlsFiles(folder, authority.issue({ untilMs: Date.now() - 1_000 }), "ended");
    expect(await refusal(redis, redis.urlWith(shown(ended)))).toMatch(/the coordinator's certificate has ended/);
  });

  test.each<[string, (files: TlsFiles) => string, RegExp]>([
    [
      "that is not there",
      ({ certificate }) => `certificate=${certificate}&key=/nonexistent/key`,
      /key can't be read: ENOENT/,
    ],
    [
      "that others may read",
      ({ certificate, key }) => `certificate=${certificate}&key=${replaceFile(key, "x", 0o644)}`,
      /mode is 0644; .*chmod 600/,
    ],
    [
      "of another certificate",
      ({ certificate }) => `certificate=${certificate}&key=${writeTlsFiles(folder, authority.issue(), "x").key}`,
      /key values mismatch/,
    ],
    ["with an authority that is no certificate", ({ key }) => `ca=${key}`, /holds no certificate in PEM/],
  ])("is not asked with a key %s", async (_, query, reason) => {
    const redis = await tlsRedis();
    const files = writeTlsFiles(folder, authority.issue(), "coordinator");
    const told = await refusal(redis, redis.urlWith(query(files)));
    expect(told).toMatch(/^store_unavailable: /);
    expect(told).toMatch(reason);
    expect(told).not.toContain("PRIVATE");
  });
});

test("a server that speaks no TLS at that port is refused, and told so", async () => {
  const redis = await tlsRedis();
  const plain = `${redis.server.storeUrl.replace("redis:", "rediss:")}?ca=${ca}`;
  expect(await refusal(redis, plain)).toMatch(/^store_unavailable: .*does not speak TLS there/);
});

test("a port that wants TLS refuses whoever comes without", async () => {
  const redis = await tlsRedis();
  const plain = redis.urlWith("").replace("rediss:", "redis:").replace("?", "");
  expect(await refusal(redis, plain)).toMatch(/^store_unavailable: .*(broke|closed|ECONNRESET)/);
});
