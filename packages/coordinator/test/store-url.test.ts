/** What a store's URL may look like, what it means, and that no message ever shows a password. */
import fc from "fast-check";
import { describe, expect, inject, test } from "vitest";
import { mutatedBytes } from "../../../test/mutated-bytes.js";
import { sized } from "../../../test/size-of-run.js";
import { parseStoreId } from "../src/guard/store-id.js";
import {
  commandUrlOf,
  describeStore,
  parseStoreUrl,
  placeOf,
  standsFor,
  withoutLogin,
} from "../src/stores/store-url.js";

const NO_LOGIN = { tls: false, username: undefined, password: undefined, database: 0, keyPrefix: "callnumber:" };
const LOGIN = { username: "me", password: "p@:/ß" };
const LOGIN_TEXT = "me:p%40%3A%2F%C3%9F@";

/** From `HOST PORT, HOST PORT`. */
const endpoints = (text: string) =>
  text.split(", ").map((one) => ({ host: one.split(" ")[0], port: Number(one.split(" ")[1]) }));
const redis = (text: string, own: object = {}) => ({ ...NO_LOGIN, kind: "redis", ...endpoints(text)[0], ...own });
const cluster = (text: string, own: object = {}) => {
  return { ...NO_LOGIN, kind: "redis-cluster", nodes: endpoints(text), ...own };
};
const sentinel = (text: string, masterName: string, own: object = {}) => {
  const login = { sentinelUsername: undefined, sentinelPassword: undefined };
  return { ...NO_LOGIN, kind: "redis-sentinel", sentinels: endpoints(text), masterName, ...login, ...own };
};

const postgres = (host: string, port: number, own: object = {}) => {
  const login = { tls: false, username: undefined, password: undefined };
  return { kind: "postgres", host, port, ...login, database: "db", schema: "callnumber", ...own };
};

describe("a store's URL", () => {
  const other = { tls: true, keyPrefix: "x:" };
  const tlsFiles = { ca: "/etc/tls/ca 1.pem", certificate: "/c.pem", key: "/k.pem" };
  const ofSentinels = { sentinelUsername: "s", sentinelPassword: "a/b+c" };

  test.each<[url: string, address: object, description: string]>([
    ["redis://h", redis("h 6379"), "redis://h:6379/0"],
    ["redis://h:1/", redis("h 1"), "redis://h:1/0"],
    [
      `rediss://${LOGIN_TEXT}h/3?prefix=x:`,
      redis("h 6379", { ...LOGIN, ...other, database: 3 }),
      "rediss://me@h:6379/3?prefix=x:",
    ],
    ["redis://[::1]:7000", redis("::1 7000"), "redis://[::1]:7000/0"],
    ["redis://:pw@h", redis("h 6379", { password: "pw" }), "redis://h:6379/0"],
    [
      "redis-sentinel://b,a:1/mymaster",
      sentinel("b 26379, a 1", "mymaster"),
      "redis-sentinel://a:1,b:26379/mymaster/0",
    ],
    [
      `rediss-sentinel://${LOGIN_TEXT}[fd00::1],b/my.master-1/2?sentinelUsername=s&sentinelPassword=a%2Fb+c&prefix=x:`,
      sentinel("fd00::1 26379, b 26379", "my.master-1", { ...LOGIN, ...other, database: 2, ...ofSentinels }),
      "rediss-sentinel://me@[fd00::1]:26379,b:26379/my.master-1/2?prefix=x:",
    ],
    [`redis-cluster://${LOGIN_TEXT}b:7001,a`, cluster("b 7001, a 6379", LOGIN), "redis-cluster://me@a:6379,b:7001"],
    ["rediss-cluster://a/0?prefix=x:", cluster("a 6379", other), "rediss-cluster://a:6379?prefix=x:"],
    ["postgres://h/db", postgres("h", 5432), "postgres://h:5432/db"],
    ["postgresql://[::1]:1/db/", postgres("::1", 1), "postgres://[::1]:1/db"],
    [
      `postgres://${LOGIN_TEXT}h/my%20db?schema=my_schema&sslmode=verify-full&ca=/ca.pem`,
      postgres("h", 5432, {
        ...LOGIN,
        database: "my db",
        schema: "my_schema",
        tls: true,
        tlsFiles: { ca: "/ca.pem" },
      }),
      "postgres://me@h:5432/my%20db?schema=my_schema&sslmode=verify-full",
    ],
    [
      "postgres://me@:1/db?host=/var/run/postgresql&schema=s",
      postgres("/var/run/postgresql", 1, { username: "me", schema: "s" }),
      "postgres://me@:1/db?host=/var/run/postgresql&schema=s",
    ],
    [
      "rediss://h?ca=/etc/tls/ca%201.pem&certificate=/c.pem&key=/k.pem",
      redis("h 6379", { tls: true, tlsFiles }),
      "rediss://h:6379/0",
    ],
  ])("the URL %s is parsed, and described without its secrets", (url, address, description) => {
    const parsed = parseStoreUrl(url);
    expect(parsed).toEqual(address);
    expect(describeStore(parsed)).toBe(description);
    expect(describeStore(parseStoreUrl(description))).toBe(description);
  });

  test("a store's URL names the same group with every login and each of its hosts", () => {
    const groups = (urls: readonly string[]) => new Set(urls.map((url) => placeOf(parseStoreUrl(url)).group));
    for (const same of [
      ["redis://h", "redis://me:pw@other:7/0", "rediss://h"],
      ["redis-sentinel://a,b/m", "rediss-sentinel://me@b,c/m/0?sentinelPassword=x"],
      ["redis-cluster://a", "redis-cluster://me@b,c"],
      ["sqlite:/a", "sqlite:/b"],
      ["postgres://h/db", "postgresql://me:pw@other:7/db?sslmode=verify-full"],
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
    const ofPostgres = ["postgres://h/a", "postgres://h/b", "postgres://h/a?schema=x"];
    expect(groups([...all, ...ofPostgres, "sqlite:/h"]).size).toBe(10);
  });

  test("a store's URL names all hosts of the place, with their ports", () => {
    const addresses = (url: string) => placeOf(parseStoreUrl(url)).addresses;
    expect(addresses("redis://me@h")).toEqual(["h:6379"]);
    expect(addresses("redis-sentinel://b,a:1/m")).toEqual(["b:26379", "a:1"]);
    expect(addresses("redis-cluster://[::1],a:1")).toEqual(["[::1]:6379", "a:1"]);
    expect(addresses("postgres://me@h/db")).toEqual(["h:5432"]);
    expect(addresses("postgres:///db?host=/run/pg")).toEqual(["/run/pg:5432"]);
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
    ["redis://h/S3CRET", /database must be a number\./],
    ["redis://h/0/1", /one number/],
    ["redis://h?db=3", /no setting "db"; only prefix, ca/],
    ["redis://h?prefix={x}", /prefix has 1 to 64/],
    ["redis://h?sentinelPassword=x", /no setting "sentinelPassword"/],
    ["redis://me:%zz@h", /password holds a %/],
    ["redis://h#x", /has a #/],
    ["redis-sentinel://a,b", /name of the master/],
    ["redis-sentinel://a//0", /name of the master/],
    ["redis-sentinel://a/m/0/x", /name of the master/],
    ["redis-sentinel://a/m/S3CRET", /database must be a number/],
    ["redis-sentinel://a,,b/m", /names no host/],
    ["redis-sentinel://a/m?sentinelUsername=x", /needs a sentinelPassword/],
    ["redis-cluster://a/1", /database 0 only/],
    ["redis-cluster://a/S3CRET", /database must be a number/],
    ["redis-cluster://a?database=1", /no setting "database"/],
    ["redis://h?ca=/ca.pem", /ca are for TLS, which rediss/],
    ["rediss://h?ca=", /ca needs the path/],
    ["rediss-cluster://h?certificate=/c.pem", /certificate and key need each other/],
    ["rediss-sentinel://h/m?key=/k.pem", /certificate and key need each other/],
    ["postgres://h", /behind the host stands the name of the database/],
    ["postgres://h/db/S3CRET", /behind the host stands the name of the database/],
    ["postgres://a,b/db", /names one server/],
    ["postgres:///db", /names no host/],
    ["postgres://h/db?schema=Upper", /schema has 1 to 63/],
    ["postgres://h/db?schema=a-b", /schema has 1 to 63/],
    ["postgres://h/db?sslmode=require", /sslmode is verify-full, or disable/],
    ["postgres://h/db?ca=/ca.pem", /ca are for TLS, which sslmode=verify-full begins/],
    ["postgres://h/db?host=relative", /host= names the folder of a Unix socket/],
    ["postgres://h/db?host=/run&sslmode=verify-full", /host= names the folder of a Unix socket/],
    ["postgres://h/db?options=x", /no setting "options"; only schema, sslmode, host, ca/],
    ["postgres://me:%zz@h/db", /password holds a %/],
    ["redis-group://a", /"redis-group:" is not a kind of store/],
    ["REDIS://a", /"REDIS:" is not a kind of store/],
    ["localhost:6379", /"localhost:" is not a kind of store/],
    ["store.db", /no kind in front/],
  ])("the URL %s is rejected, with the reason and all forms", (url, reason) => {
    expect(() => parseStoreUrl(url)).toThrow(TypeError);
    expect(() => parseStoreUrl(url)).toThrow(reason);
    expect(() => parseStoreUrl(url)).toThrow(/redis-cluster:\/\/\[USER:PASSWORD@\]HOST/);
    expect(() => parseStoreUrl(url)).not.toThrow(/S3CRET/);
  });

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
    ["postgres://user:", "@host/db"],
    ["postgresql://user:", "@host/db?schema=s"],
  );

  test("a store's URL is never shown with a piece of its password, whether parsed or rejected, escaped or not", () => {
    let refused = 0;
    fc.assert(
      fc.property(around, password, fc.boolean(), ([before = "", after = ""], { pieces, text }, isEscaped) => {
        let shown: string;
        try {
          shown = describeStore(parseStoreUrl(`${before}${isEscaped ? encodeURIComponent(text) : text}${after}`));
        } catch (error) {
          expect(error).toBeInstanceOf(TypeError);
          shown = (error as Error).message;
          refused++;
        }
        for (const secret of pieces) expect(shown).not.toContain(secret);
      }),
      { numRuns: 2_000 },
    );
    expect(refused).toBeGreaterThan(100);
  });
});

test("a file is one place however its path is written (found by fuzzing, seed 1661481897)", () => {
  const paths = ["sqlite:/folder/file.db", "sqlite:///folder/file.db", "sqlite:///folder//x/../file.db"];
  expect(new Set(paths.map((text) => describeStore(parseStoreUrl(text))))).toEqual(new Set(["sqlite:/folder/file.db"]));
});

test.each([
  ["redis://operator:secret@h:1/2?prefix=x:", "redis://operator@h:1/2?prefix=x:"],
  ["redis://:secret@h", "redis://h:6379/0"],
  ["redis-sentinel://u:p@a,b/m?sentinelPassword=secret", "redis-sentinel://u@a:26379,b:26379/m/0"],
  ["rediss://u:p@h?ca=/etc/a%20ca.crt&prefix=x:", "rediss://u@h:6379/0?prefix=x:&ca=/etc/a%20ca.crt"],
  [
    "postgres://u:p@h/db?sslmode=verify-full&ca=/ca.pem&schema=s",
    "postgres://u@h:5432/db?schema=s&sslmode=verify-full&ca=/ca.pem",
  ],
  ["postgres://postgres@h/db", "postgres://postgres@h:5432/db"],
  ["postgres://u%40x:p@/db?host=/run/pg", "postgres://u%40x@:5432/db?host=/run/pg"],
  ["rediss-cluster://u:p@h?certificate=/c&key=/k", "rediss-cluster://u@h:6379?certificate=/c&key=/k"],
  ["sqlite:/it's here.db", "sqlite:/it's here.db"],
])("a URL in a printed command of %s has no password, stands for it and can be read: %s", (given, printed) => {
  const [one, other] = [parseStoreUrl(given), parseStoreUrl(printed)];
  expect(commandUrlOf(one)).toBe(printed);
  expect(commandUrlOf(other)).toBe(printed);
  expect(commandUrlOf(withoutLogin(one))).toBe(printed.replace(/\/\/.*@/, "//"));
  const isServer = !given.startsWith("sqlite:");
  for (const typed of [other, withoutLogin(other)]) expect(standsFor(typed, one)).toBe(isServer);
});

test.each([
  ["redis://h:9/2", "redis://operator:secret@h:1/2"],
  ["redis://other@h:1/2", "redis://operator:secret@h:1/2"],
  ["redis://operator:typed@h:1/2", "redis://operator:secret@h:1/2"],
  ["redis://operator@h:1/2", "redis://:secret@h:1/2"],
  ["postgres://u@h/db", "postgres://u:p@h/db?schema=s"],
])("the URL %s does not stand for %s, which has another place, user or password", (typed, given) => {
  expect(standsFor(parseStoreUrl(typed), parseStoreUrl(given))).toBe(false);
});

test("a mutated URL is rejected as misuse, or described as a URL of the same place; a mutated store id has no other fields", () => {
  const id = "035c99bf-da8e-4d21-9235-b2fa0238433d.1073741825.1700000000000.16";
  const urls = [
    "memory:",
    "sqlite:folder/file.db",
    "sqlite:///folder/file.db",
    "redis://user:pw@host:6379/3?prefix=mine:",
  ];
  const more = [
    "rediss://[::1]:6380",
    "redis-sentinel://u:p@a:1,b,[::2]:3/m/0?sentinelPassword=x",
    "redis-cluster://a,b:7000/0",
    "postgres://u:p@h:1/db?schema=s&sslmode=verify-full",
    "postgres:///db?host=/run/pg",
  ];
  const words =
    "redis:// redis-sentinel:// sqlite: // / ? # @ : , & = % %40 %zz [ ] [::1] prefix= 65536 0 ~ .. \0".split(" ");
  const place = (url: string) => {
    const { group, addresses } = placeOf(parseStoreUrl(url));
    return { group, addresses: addresses.toSorted() };
  };
  const property = fc.property(mutatedBytes([...urls, ...more, id], words), (bytes) => {
    const text = bytes.toString();
    const fields = parseStoreId(text);
    if (fields !== undefined) {
      const { firstVersion, firstRun, initializedAtMs, rate } = fields;
      const numbers = [firstVersion * 2 ** 30 + firstRun, initializedAtMs, rate];
      expect(numbers).toEqual(text.split(".").slice(1).map(Number));
      expect(firstVersion < 8 && firstRun > 0 && rate > 0 && rate <= 16).toBe(true);
    }
    try {
      parseStoreUrl(text);
    } catch (error) {
      expect(error).toBeInstanceOf(TypeError);
      return;
    }
    if (text === "memory:") return;
    expect(place(describeStore(parseStoreUrl(text)))).toEqual(place(text));
  });
  fc.assert(property, { seed: inject("seed"), numRuns: sized(1_000, 20_000) });
});
