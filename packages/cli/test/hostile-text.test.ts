/**
 * Text of a hostile coordinator, store or file name acts on no terminal: every command escapes what it prints of it.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { callnumber, type Finished, folderForTest, serve } from "../../../test/processes/command.js";
import { command } from "../../../test/redis/redis-command.js";
import { sharedRedis } from "../../../test/redis/test-redis.js";
import { done, expectFailure, httpServer, lease } from "./commands-for-test.js";

/** Title, screen and colors, in both encodings of escape; reversed text; and a line that looks like one of ours. */
const BAD = "BAD\u001b]0;OWNED\u0007\u001b[2J\u009b32m\u202egpj.exe\u2028\nCALLNUMBER OK";
const ACTS_ON_TERMINAL = /[^\P{C}\n\t]|[\p{Zl}\p{Zp}]/u;
const OUR_COLORS = /\p{Cc}\[(?:1|2|22|31|32|33|39)m/gu;
const LIKE_OUR_OWN = /^CALLNUMBER OK/m;

/** Expects that the text was printed, too: else nothing was tried. */
function expectHarmless({ stdout, stderr }: Finished, about: string): void {
  const printed = stdout + stderr;
  expect(printed, about).toMatch(/BAD\\{1,2}u/);
  expect(printed, about).not.toMatch(ACTS_ON_TERMINAL);
  expect(printed, about).not.toMatch(LIKE_OUR_OWN);
}

test("no command prints text of a coordinator that acts on a terminal, of errors or of responses", async () => {
  const { url } = await serve("memory:");
  const callNumber = (await done("next", "--coordinator", url)).stdout.trim();
  const rejecting = await httpServer((_, response) => {
    response.writeHead(403).end(JSON.stringify({ code: BAD, message: BAD }));
  });
  const spoiling = await httpServer(async ({ url: path = "" }, response) => {
    const real = await fetch(url + path);
    response.writeHead(real.status).end(JSON.stringify(spoilt((await real.json()) as object, path)));
  });
  const commands: readonly (readonly string[])[] = [
    ["status"],
    ["status", "--check"],
    ["runs"],
    ["runs", "1"],
    ["inspect", callNumber],
    ["inspect", "2VznWE2i"],
    ["status", "--all-namespaces"],
    ["doctor", "--store", sharedRedis().storeUrl],
  ];
  /** Tables show only fields that a pattern checks. */
  const isTable = (words: readonly string[]) => ["runs", "status --all-namespaces"].includes(words.join(" "));
  const running = [
    ...[...commands, ["next"], ["export"]].map((words) => ({ words, of: rejecting })),
    ...commands.filter((words) => !isTable(words)).map((words) => ({ words, of: spoiling })),
  ].map(async ({ words, of }) => {
    const command = [...words, "--coordinator", of];
    const about = words.join(" ");
    expectHarmless(await callnumber(command, { env: { FORCE_COLOR: "0" } }), about);
    const painted = await callnumber(command, { env: { FORCE_COLOR: "1" } });
    expectHarmless({ ...painted, stdout: painted.stdout.replaceAll(OUR_COLORS, "") }, about);
    const { stdout, stderr } = await callnumber([...command, "--json"]);
    expect(stdout + stderr, about).not.toMatch(ACTS_ON_TERMINAL);
    // A program gets the text as it was sent.
    if (of === spoiling) expect(textsIn(JSON.parse(stdout)).join(" "), about).toContain(BAD);
  });
  await Promise.all(running);
});

/** Fields that no pattern checks. */
const FREE_TEXTS = /^(?:storeId|store|coordinator|explanation|message|nonce|tokenId|release|value)$/;
const FREE_ABOVE = /^(?:namespace|callNumber)$/;

/** The response with such text, a guard that is stopped, and an alarm. */
function spoilt(response: object, path: string): object {
  const texts = JSON.parse(JSON.stringify(response), (name, value: unknown) => {
    if (name === "guard") return { ...(value as object), state: "stopped", code: "store_forked", explanation: BAD };
    if (name === "alarms") return [{ name: "holder_restarts", severity: "warning", explanation: BAD }];
    if (name === "lease") return { ...(value as object), tokenId: BAD };
    return FREE_TEXTS.test(name) ? BAD : value;
  }) as Record<string, unknown>;
  // Names in a list are checked by a pattern.
  for (const name of Object.keys(texts)) if (FREE_ABOVE.test(name) && !path.endsWith("/namespaces")) texts[name] = BAD;
  return texts;
}

function textsIn(value: unknown): readonly string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

test("no command, response or log has text of a store that acts on a terminal, or all of a long one", async () => {
  const { url: admin, storeUrl, operatorUrl } = sharedRedis();
  const key = `${new URL(storeUrl).searchParams.get("prefix")}{main}:record`;
  const checkpoint = ["--checkpoint-dir", await folderForTest()];
  await done("init", "--store", storeUrl, ...checkpoint);
  const { url, output } = await serve(storeUrl, ...checkpoint);
  const at = ["--coordinator", url];
  const version = String(await command({ url: admin }, "HGET", key, "v"));
  await command({ url: admin }, "HSET", key, "v", BAD);
  for (const words of [
    ["next", ...at],
    ["status", ...at],
    ["doctor", "--store", storeUrl, ...at],
    ["recover", "--store", operatorUrl, ...checkpoint],
  ]) {
    expectHarmless(await callnumber(words), words.join(" "));
  }
  const { message } = (await (await fetch(`${url}/v1/namespaces/main/runs`)).json()) as { message: string };
  expect(message).toContain("schema version BAD\\u{1b}");
  expect(message).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u);
  expect(output().stdout + output().stderr).not.toMatch(ACTS_ON_TERMINAL);

  await command({ url: admin }, "HSET", key, "v", "x".repeat(8_000_000));
  const before = output().stdout.length;
  let failure = await lease(url);
  // On a busy machine so long a response may come too late.
  while (failure.code === "store_unavailable") failure = await lease(url);
  expect(failure.code).toBe("store_schema_unsupported");
  expect(failure.message).toContain("Use the release that wrote it");
  expect(JSON.stringify(failure).length).toBeLessThan(2_000);
  const status = await (await fetch(`${url}/v1/namespaces/main/status`)).text();
  expect(status.length).toBeLessThan(4_000);
  expect(output().stdout.length - before).toBeLessThan(20_000);
  await command({ url: admin }, "HSET", key, "v", version);
});

test("recover prints no name or text of a list of call numbers that acts on a terminal", async () => {
  const folder = await folderForTest();
  const name = BAD.replaceAll("/", "");
  const numbers = join(folder, name);
  await writeFile(numbers, `2VznWE2i\n${name}\n`);
  const { storeUrl } = sharedRedis();
  const recover = ["recover", "--store", storeUrl, "--checkpoint-dir", folder, "--numbers", numbers];
  expectHarmless(await expectFailure(recover, 1, ""), "recover --numbers");
});

test("serve rejects a coordinator's name that acts on a terminal", async () => {
  const words = ["serve", "--store", "memory:", "--port", "0", "--coordinator-name", BAD];
  const { stderr } = await expectFailure(words, 2, "unprintable");
  expect(stderr).not.toMatch(ACTS_ON_TERMINAL);
});
