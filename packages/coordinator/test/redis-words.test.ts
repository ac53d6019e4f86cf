/** What a server repeats of a command that it refuses: a password is told to nobody. Whole commands: packages/cli/test/redaction.slow.test.ts. */
import { inspect } from "node:util";
import { expect, test } from "vitest";
import { echoOfProxy, echoOfRedis } from "../../../test/redis/echoing-redis.js";
import { asStoreError } from "../src/stores/redis-errors.js";
import { withoutRepeatedWords } from "../src/stores/redis-words.js";

const PASSWORD = 's3cret/"of the st%re"';
const FORMS = [PASSWORD, encodeURIComponent(PASSWORD), JSON.stringify(PASSWORD).slice(1, -1)];

test.each([
  ["Redis", echoOfRedis],
  ["a proxy", echoOfProxy],
  ["a proxy that writes URLs", (words: readonly string[]) => `ERR ${words.map(encodeURIComponent).join("/")}`],
  ["a proxy that writes JSON", (words: readonly string[]) => `DENIED ${JSON.stringify(words)}`],
])("a password that %s repeats is in no error", (_, echo) => {
  const refused = Object.assign(new Error(echo(["auth", "callnumber", PASSWORD])), { name: "ReplyError" });
  const error = asStoreError(refused, { namespace: "" }, { server: "h:1", password: PASSWORD });
  expect(error).toMatchObject({ name: "CoordinatorError" });
  // As deep as a log could go.
  const told = inspect(error, { depth: 9, showHidden: true });
  for (const form of FORMS) expect(told).not.toContain(form.slice(0, 8));
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
