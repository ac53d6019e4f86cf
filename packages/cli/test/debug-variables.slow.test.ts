/** What is set to look into a program by its libraries' own words, `DEBUG` and `NODE_DEBUG`, shows no password and no token. */
import { join } from "node:path";
import { expect, test } from "vitest";
import { callnumberProcess, folderForTest, serveProcessWith } from "../../../test/processes/command.js";
import { sharedRedis } from "../../../test/redis/test-redis.js";
import { replaceFile } from "../../../test/tls/files.js";
import { newToken } from "../../coordinator/src/tokens/token.js";

/** What a variable makes libraries say of themselves, so that it is seen to be heard; undefined where nothing is said. */
const VARIABLES: readonly [string, string, RegExp | undefined][] = [
  ["DEBUG", "*", undefined],
  ["DEBUG", "ioredis:*", undefined],
  ["DEBUG", " other:* ioredis:redis -nothing ", undefined],
  ["NODE_DEBUG", "*", /^NET \d+: /m],
];

test.each(VARIABLES)("%s=%s shows no password of Redis", async (name, value, said) => {
  const { operatorUrl } = sharedRedis();
  const { code, stdout, stderr } = await callnumberProcess(["doctor"], {
    env: { CALLNUMBER_STORE: operatorUrl, [name]: value },
  });
  expect(code, stdout).toBeLessThan(2);
  expect(stdout).toContain("redis://operator@");
  if (said !== undefined) expect(stderr).toMatch(said);
  expect(stdout + stderr).not.toContain(new URL(operatorUrl).password);
});

test.each(VARIABLES.filter(([, value]) => value === "*"))(
  "%s=%s shows no token, neither where it is asked for nor where it is borne",
  async (name, value, said) => {
    const folder = await folderForTest();
    const tokens = join(folder, "tokens");
    const words = ["token", "create", "--tokens-file", tokens, "--role", "read", "--all-namespaces"];
    const token = (await callnumberProcess(words)).stdout.trim();
    const env = { [name]: value };
    const running = await serveProcessWith(env, "memory:", "--tokens-file", tokens);
    const ask = (borne: string) => {
      const file = replaceFile(join(folder, "me.token"), `${borne}\n`);
      return callnumberProcess(["status", "--coordinator", running.url, "--token-file", file], { env });
    };
    const stranger = newToken();
    const [good, bad] = [await ask(token), await ask(stranger)];
    expect([good.code, bad.code]).toEqual([0, 1]);
    await running.stop();
    const all = [good, bad, running.output()].map(({ stdout, stderr }) => stdout + stderr);
    if (said !== undefined) for (const text of all) expect(text).toMatch(said);
    for (const text of all) for (const secret of [token, stranger]) expect(text).not.toContain(secret.slice(3));
  },
);
