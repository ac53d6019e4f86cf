/** What a store's URL may look like, what it means, and that no message ever shows a password. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  areSamePlace,
  commandUrlOf,
  describeStore,
  hasNoLogin,
  parseStoreUrl,
  placeOf,
} from "../src/stores/store-url.js";

const plain = { tls: false, username: undefined, password: undefined, database: 0, keyPrefix: "callnumber:" };
const login = { username: "me", password: "p@:/ß" };
const LOGIN = "me:p%40%3A%2F%C3%9F@";

describe("a store's URL", () => {
  const forms: [string, object, string][] = [
    ["redis://h", { ...plain, kind: "redis", host: "h", port: 6379 }, "redis://h:6379/0"],
    ["redis://h:1/", { ...plain, kind: "redis", host: "h", port: 1 }, "redis://h:1/0"],
    [
      `rediss://${LOGIN}h/3?prefix=x:`,
      { ...login, tls: true, database: 3, keyPrefix: "x:", kind: "redis", host: "h", port: 6379 },
      "rediss://me@h:6379/3?prefix=x:",
    ],
    ["redis://[::1]:7000", { ...plain, kind: "redis", host: "::1", port: 7000 }, "redis://[::1]:7000/0"],
    ["redis://:pw@h", { ...plain, password: "pw", kind: "redis", host: "h", port: 6379 }, "redis://h:6379/0"],
    [
      "redis-sentinel://b,a:1/mymaster",
      {
        ...plain,
        kind: "redis-sentinel",
        sentinels: [
          { host: "b", port: 26_379 },
          { host: "a", port: 1 },
        ],
        masterName: "mymaster",
        sentinelUsername: undefined,
        sentinelPassword: undefined,
      },
      "redis-sentinel://a:1,b:26379/mymaster/0",
    ],
    [
      `rediss-sentinel://${LOGIN}[fd00::1],b/my.master-1/2?sentinelUsername=s&sentinelPassword=a%2Fb+c&prefix=x:`,
      {
        ...login,
        tls: true,
        database: 2,
        keyPrefix: "x:",
        kind: "redis-sentinel",
        sentinels: [
          { host: "fd00::1", port: 26_379 },
          { host: "b", port: 26_379 },
        ],
        masterName: "my.master-1",
        sentinelUsername: "s",
        sentinelPassword: "a/b+c",
      },
      "rediss-sentinel://me@[fd00::1]:26379,b:26379/my.master-1/2?prefix=x:",
    ],
    [
      `redis-cluster://${LOGIN}b:7001,a`,
      {
        ...plain,
        ...login,
        kind: "redis-cluster",
        nodes: [
          { host: "b", port: 7001 },
          { host: "a", port: 6379 },
        ],
      },
      "redis-cluster://me@a:6379,b:7001",
    ],
    [
      "rediss-cluster://a/0?prefix=x:",
      { ...plain, tls: true, keyPrefix: "x:", kind: "redis-cluster", nodes: [{ host: "a", port: 6379 }] },
      "rediss-cluster://a:6379?prefix=x:",
    ],
    [
      "rediss://h?ca=/etc/tls/ca%201.pem&certificate=/c.pem&key=/k.pem",
      {
        ...plain,
        tls: true,
        tlsFiles: { ca: "/etc/tls/ca 1.pem", certificate: "/c.pem", key: "/k.pem" },
        kind: "redis",
        host: "h",
        port: 6379,
      },
      "rediss://h:6379/0",
    ],
  ];

  test.each(forms)("%s is understood, and described without its secrets", (url, address, description) => {
    const parsed = parseStoreUrl(url);
    expect(parsed).toEqual(address);
    expect(describeStore(parsed)).toBe(description);
    expect(describeStore(parseStoreUrl(description))).toBe(description);
  });

  test("describes one place in one way, in whatever order its hosts are given", () => {
    for (const kind of ["redis-sentinel", "redis-cluster"]) {
      const path = kind === "redis-sentinel" ? "/m" : "";
      const [one, other] = [`${kind}://a,b:1,c${path}`, `${kind}://c,a,b:1${path}`]
        .map(parseStoreUrl)
        .map(describeStore);
      expect(one).toBe(other);
    }
  });

  test("names the same group whoever logs in, by whichever of its hosts, and however", () => {
    const groups = (urls: readonly string[]) => new Set(urls.map((url) => placeOf(parseStoreUrl(url)).group));
    for (const same of [
      ["redis://h", "redis://me:pw@other:7/0", "rediss://h"],
      ["redis-sentinel://a,b/m", "rediss-sentinel://me@b,c/m/0?sentinelPassword=x"],
      ["redis-cluster://a", "redis-cluster://me@b,c"],
      ["sqlite:/a", "sqlite:/b"],
    ]) {
      expect(groups(same).size, same.join()).toBe(1);
    }
    const all = [
      "redis://h",
      "redis://h/1",
      "redis://h?prefix=x:",
      "redis-sentinel://h/m",
      "redis-sentinel://h/n",
      "redis-cluster://h",
    ];
    expect(groups([...all, "sqlite:/h"]).size).toBe(7);
  });

  test("names all hosts of the place, with their ports", () => {
    const addresses = (url: string) => placeOf(parseStoreUrl(url)).addresses;
    expect(addresses("redis://me@h")).toEqual(["h:6379"]);
    expect(addresses("redis-sentinel://b,a:1/m")).toEqual(["b:26379", "a:1"]);
    expect(addresses("redis-cluster://[::1],a:1")).toEqual(["[::1]:6379", "a:1"]);
    expect(addresses("sqlite:/srv/store.db")).toEqual(["/srv/store.db"]);
  });

  test.each([
    ["redis://", /names no host/],
    ["redis://h:0", /host or its port/],
    ["redis://h:65536", /host or its port/],
    ["redis://h:x", /host or its port/],
    ["redis://a,b", /redis-sentinel:\/\//],
    ["redis://[%]", /host or its port can't be read/],
    ["redis://[1.2.3.4]", /host or its port can't be read/],
    ["redis://h/x", /database must be a number\./],
    ["redis://h/0/1", /one number/],
    ["redis://h?db=3", /no setting "db"; only prefix, ca/],
    ["redis://h?prefix={x}", /prefix has 1 to 64/],
    ["redis://h?sentinelPassword=x", /no setting "sentinelPassword"/],
    ["redis://me:%zz@h", /password holds a %/],
    ["redis://h#x", /has a #/],
    ["redis-sentinel://a,b", /name of the master/],
    ["redis-sentinel://a//0", /name of the master/],
    ["redis-sentinel://a/m/0/x", /name of the master/],
    ["redis-sentinel://a/m/x", /database must be a number/],
    ["redis-sentinel://a,,b/m", /names no host/],
    ["redis-sentinel://a/m?sentinelUsername=x", /needs a sentinelPassword/],
    ["redis-cluster://a/1", /database 0 only/],
    ["redis-cluster://a/x", /database must be a number/],
    ["redis-cluster://a?database=1", /no setting "database"/],
    ["redis://h?ca=/ca.pem", /ca are for TLS, which rediss/],
    ["rediss://h?ca=", /ca needs the path/],
    ["rediss-cluster://h?certificate=/c.pem", /certificate and key need each other/],
    ["rediss-sentinel://h/m?key=/k.pem", /certificate and key need each other/],
    ["redis-group://a", /"redis-group:" is no kind of store/],
    ["REDIS://a", /"REDIS:" is no kind of store/],
    ["localhost:6379", /"localhost:" is no kind of store/],
    ["store.db", /no kind in front/],
  ])("%s is refused, with the reason and all forms", (url, reason) => {
    expect(() => parseStoreUrl(url)).toThrow(TypeError);
    expect(() => parseStoreUrl(url)).toThrow(reason);
    expect(() => parseStoreUrl(url)).toThrow(/redis-cluster:\/\/\[USER:PASSWORD@\]HOST/);
  });

  test.each(["redis://h/S3CRET", "redis-sentinel://h/m/S3CRET", "redis-cluster://h/S3CRET"])(
    "%s is refused without a word of where the database belongs",
    (url) => {
      expect(() => parseStoreUrl(url)).toThrow(/database must be a number/);
      expect(() => parseStoreUrl(url)).not.toThrow(/S3CRET/);
    },
  );

  /** Pieces that occur in no message by chance, joined by what has a meaning in a URL. */
  const piece = fc.string({ unit: fc.constantFrom(..."0123456789qzj"), minLength: 6, maxLength: 10 });
  const password = fc
    .tuple(piece, fc.array(fc.tuple(fc.constantFrom(..."/?#@:,[]&=%+;\\ "), piece), { maxLength: 3 }))
    .map(([first, rest]) => ({
      pieces: [first, ...rest.map(([, next]) => next)],
      text: first + rest.map((pair) => pair.join("")).join(""),
    }));
  const around = fc.constantFrom(
    ["redis://user:", "@host/0"],
    ["redis://user:", "@host/x"],
    ["redis://:", "@host?x=1"],
    ["redis-sentinel://user:", "@a,b/m"],
    ["redis-sentinel://user:", "@a,b"],
    ["redis-sentinel://user:name@a,b/m?sentinelPassword=", ""],
    ["redis-sentinel://a,b/m?y=1&sentinelPassword=", ""],
    ["redis-cluster://user:", "@a,b/1"],
    ["rediss-cluster://user:", "@a,b"],
    ["redis-other://user:", "@a"],
  );

  test("is never repeated with a piece of its password, whether understood or refused, escaped or not", () => {
    let refused = 0;
    fc.assert(
      fc.property(around, password, fc.boolean(), ([before = "", after = ""], { pieces, text }, isEscaped) => {
        let told: string;
        try {
          told = describeStore(parseStoreUrl(`${before}${isEscaped ? encodeURIComponent(text) : text}${after}`));
        } catch (error) {
          expect(error).toBeInstanceOf(TypeError);
          told = (error as Error).message;
          refused++;
        }
        for (const secret of pieces) expect(told).not.toContain(secret);
      }),
      { numRuns: 2_000 },
    );
    expect(refused).toBeGreaterThan(100);
  });
});

test("a file is one place however its path is spelt (found by fuzzing, seed 1661481897)", () => {
  const spellings = ["sqlite:/folder/file.db", "sqlite:///folder/file.db", "sqlite:///folder//x/../file.db"];
  expect(new Set(spellings.map((text) => describeStore(parseStoreUrl(text))))).toEqual(
    new Set(["sqlite:/folder/file.db"]),
  );
});

describe("a URL in a printed command", () => {
  test.each([
    ["redis://operator:secret@h:1/2?prefix=x:", "redis://h:1/2?prefix=x:"],
    ["redis-sentinel://u:p@a,b/m?sentinelPassword=secret", "redis-sentinel://a:26379,b:26379/m/0"],
    ["rediss://u:p@h?ca=/etc/a%20ca.crt&prefix=x:", "rediss://h:6379/0?prefix=x:&ca=/etc/a%20ca.crt"],
    ["rediss-cluster://u:p@h?certificate=/c&key=/k", "rediss-cluster://h:6379?certificate=/c&key=/k"],
    ["sqlite:/it's here.db", "sqlite:/it's here.db"],
  ])("of %s has no login, names the same place and can be read: %s", (given, printed) => {
    const [one, other] = [parseStoreUrl(given), parseStoreUrl(printed)];
    expect(commandUrlOf(one)).toBe(printed);
    expect(commandUrlOf(other)).toBe(printed);
    expect(areSamePlace(one, other)).toBe(true);
    expect(hasNoLogin(other)).toBe(given !== printed);
    expect(areSamePlace(other, parseStoreUrl("redis://h:9/2"))).toBe(false);
  });
});
