/** A server, or what stands before it, that repeats what it was told in its refusals: the password among it. */
import { inspect } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { type Echo, echoOfProxy, echoOfRedis, startEchoingRedis } from "../../../test/redis/echoing-redis.js";
import { openStore } from "../src/stores/open-store.js";
import { asStoreError } from "../src/stores/redis-errors.js";
import { withoutRepeatedWords } from "../src/stores/redis-words.js";
import { parseStoreUrl } from "../src/stores/store-url.js";

const PASSWORD = 's3cret/"of the st%re"';
const TYPED = encodeURIComponent(PASSWORD);
const FORMS = [PASSWORD, TYPED, JSON.stringify(PASSWORD).slice(1, -1)];

const ECHOES: Readonly<Record<string, Echo>> = {
  Redis: echoOfRedis,
  "a proxy": echoOfProxy,
  "a proxy that writes URLs": (words) => `ERR ${words.map(encodeURIComponent).join("/").toLowerCase()}`,
  "a proxy that writes JSON": (words) => `DENIED ${JSON.stringify(words)}`,
  "one that speaks as our scripts do": (words) => `CORRUPT - ${words.join(" ")}`,
};

describe.each(Object.entries(ECHOES))("a password that %s repeats is in no error", (_, echo) => {
  test.each([
    ["of a server", (port: number) => `redis://callnumber:${TYPED}@127.0.0.1:${port}`],
    ["of a Cluster's node", (port: number) => `redis-cluster://callnumber:${TYPED}@127.0.0.1:${port}`],
    [
      "of a Sentinel",
      (port: number) => `redis-sentinel://127.0.0.1:${port}/m?sentinelUsername=callnumber&sentinelPassword=${TYPED}`,
    ],
  ])("%s", async (__, urlOf) => {
    const redis = await startEchoingRedis(echo);
    onTestFinished(() => redis.close());
    const error = await openStore(parseStoreUrl(urlOf(redis.port)), { create: false }).catch((thrown) => thrown);
    expect(redis.commands.flat()).toContain(PASSWORD);
    expect(error).toMatchObject({ name: "CoordinatorError" });
    // As deep as a log could go.
    const told = inspect(error, { depth: 9, showHidden: true }).toLowerCase();
    for (const form of FORMS) expect(told).not.toContain(form.slice(0, 8).toLowerCase());
  });
});

test("of what Redis repeats nothing is left, and what it says before that is", () => {
  const said = echoOfRedis(["auth", "callnumber", "geheim"]);
  expect(withoutRepeatedWords(said, undefined)).toBe("ERR unknown command 'auth'");
});

test("a password that is a word of Redis's own takes nothing from what is read of it", () => {
  for (const password of ["script", "noperm", "unknown", "e"]) {
    expect(withoutRepeatedWords("NOSCRIPT No matching script", password)).toMatch(/^NOSCRIPT/);
    expect(withoutRepeatedWords("ERR unknown command 'config'", password)).toMatch(/^ERR unknown command/);
    const refused = Object.assign(new Error("NOPERM this user has no permissions"), { name: "ReplyError" });
    const { message } = asStoreError(refused, { namespace: "" }, { server: "h:1", password });
    expect(message).toContain("its ACL does not let this user do that");
  }
});
