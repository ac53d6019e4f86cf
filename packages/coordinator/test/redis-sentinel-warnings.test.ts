/** What is said of the way to a master that Sentinels name: who could send us, and the password, elsewhere. */
import { describe, expect, test } from "vitest";
import { sentinelStoreUrlAt, watching } from "../../../test/redis/shipped-users.js";
import { ownServerUnavailable, startRedisServer } from "../../../test/redis/test-redis.js";
import { sentinelFindings } from "../src/stores/redis/findings.js";
import { redisStoreAt } from "./redis-coordinator.js";

const at = (...hosts: string[]) => hosts.map((host) => ({ host, port: 26379 }));
const FILES = { certificate: "c.pem", key: "k.pem" };

describe("the way over Sentinels", () => {
  test.each([
    [{ sentinels: at("a", "b"), tls: false }, ["sentinel-no-tls", "sentinel-no-password"]],
    // It proves us to them, and not them to us.
    [{ sentinels: at("a", "b"), tls: false, sentinelPassword: "pw" }, ["sentinel-no-tls"]],
    [{ sentinels: at("a", "b"), tls: true }, ["sentinel-no-password"]],
    [{ sentinels: at("a", "b"), tls: true, sentinelPassword: "pw" }, []],
    [{ sentinels: at("a", "b"), tls: true, tlsFiles: FILES }, []],
    [{ sentinels: at("127.0.0.1", "10.0.0.1"), tls: true }, ["sentinel-no-password"]],
    [{ sentinels: at("127.0.0.1", "localhost", "::1"), tls: false }, []],
  ])("%j has %j", (way, names) => {
    const findings = sentinelFindings(way);
    expect(findings.map(({ override }) => override)).toEqual(names);
    expect(findings.map(({ code }) => code)).toEqual(names.map(() => undefined));
  });

  test("is looked at with the servers: on a Sentinel by another name of this machine", async (context) => {
    const reason = ownServerUnavailable();
    context.skip(reason !== undefined, reason);
    const master = await startRedisServer({ config: { appendonly: "yes" } });
    const watched = [`monitor archive ${master.host} ${master.port} 1`, ...watching("archive")];
    const { host, port } = await startRedisServer({ sentinel: true, config: { sentinel: watched } });
    const namesFor = async (sentinel: string) => {
      const store = await redisStoreAt(sentinelStoreUrlAt(`${sentinel}:${port}`, "archive"));
      return (await store.preflight()).map(({ override }) => override);
    };
    expect(await namesFor(host)).toEqual([]);
    expect(await namesFor("0.0.0.0")).toEqual(["sentinel-no-tls", "sentinel-no-password"]);
  });
});
