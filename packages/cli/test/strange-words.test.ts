/**
 * What others say acts on no terminal: a coordinator that answers strangely, a store in which somebody wrote, a Redis that is none, files
 * and names. Every command that tells of it is a process of its own, and no character of its output does anything.
 */
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { callnumber, type Finished, folderForTest, serve } from "../../../test/processes/command.js";
import { command } from "../../../test/redis/redis-command.js";
import { startRespServer } from "../../../test/redis/resp-server.js";
import { sharedRedis } from "../../../test/redis/test-redis.js";

/** The title, the screen, colors, in both spellings of escape; text that is turned; and a line that looks like one of ours. */
const BAD = "BAD\u001b]0;OWNED\u0007\u001b[2J\u009b32m\u202egpj.exe\u2028\nCALLNUMBER OK";
const BAD_LINE = BAD.replace("\n", "");
const ACTS_ON_TERMINAL = /[^\P{C}\n\t]|[\p{Zl}\p{Zp}]/u;
const OUR_COLORS = /\p{Cc}\[(?:1|2|22|31|32|33|39)m/gu;
const LIKE_OUR_OWN = /^CALLNUMBER OK/m;

/** That it was told, too: else nothing was tried. */
function expectHarmless({ stdout, stderr }: Finished, about: string): void {
  const said = stdout + stderr;
  expect(said, about).toMatch(/BAD\\{1,2}u/);
  expect(said, about).not.toMatch(ACTS_ON_TERMINAL);
  expect(said, about).not.toMatch(LIKE_OUR_OWN);
}

test("a coordinator says what acts on a terminal, in refusals and in every free text of its answers: no command repeats it", async () => {
  const { url } = await serve("memory:");
  const made = await callnumber(["next", "--coordinator", url]);
  const callNumber = made.stdout.trim();
  const refusing = await answering(() => ({ status: 403, body: { code: BAD, message: BAD } }));
  const spoiling = await answering(async (path) => {
    const response = await fetch(url + path);
    return { status: response.status, body: spoilt((await response.json()) as object, path) };
  });
  const asking: readonly (readonly string[])[] = [
    ["status"],
    ["status", "--check"],
    ["runs"],
    ["runs", "1"],
    ["inspect", callNumber],
    ["inspect", "2VznWE2i"],
    ["status", "--all-namespaces"],
    ["doctor", "--store", sharedRedis().storeUrl],
  ];
  /** Of a table they show what can only be well formed, or nothing. */
  const isHeard = (words: readonly string[]) => !["runs", "status --all-namespaces"].includes(words.join(" "));
  const running = [
    ...[...asking, ["next"], ["export"]].map((words) => ({ words, of: refusing })),
    ...asking.filter(isHeard).map((words) => ({ words, of: spoiling })),
  ].map(async ({ words, of }) => {
    const asked = [...words, "--coordinator", of];
    const about = words.join(" ");
    expectHarmless(await callnumber(asked, { env: { FORCE_COLOR: "0" } }), about);
    const painted = await callnumber(asked, { env: { FORCE_COLOR: "1" } });
    expectHarmless({ ...painted, stdout: painted.stdout.replaceAll(OUR_COLORS, "") }, about);
    const { stdout, stderr } = await callnumber([...asked, "--json"]);
    expect(stdout + stderr, about).not.toMatch(ACTS_ON_TERMINAL);
    // A program is given what was said, as it was said.
    if (of === spoiling) expect(textsIn(JSON.parse(stdout)).join(" "), about).toContain(BAD);
  });
  await Promise.all(running);
});

/** Whatever is checked by no pattern; and a guard and an alarm that have something to say. */
const FREE_TEXTS = /^(?:storeId|store|coordinator|explanation|message|nonce|tokenId|release|value)$/;
const FREE_ABOVE = /^(?:namespace|callNumber)$/;

function spoilt(answer: object, path: string): object {
  const texts = JSON.parse(JSON.stringify(answer), (name, value: unknown) => {
    if (name === "guard") return { ...(value as object), state: "stopped", code: "store_forked", explanation: BAD };
    if (name === "alarms") return [{ name: "holder_share", severity: "warning", explanation: BAD }];
    if (name === "lease") return { ...(value as object), tokenId: BAD };
    return FREE_TEXTS.test(name) ? BAD : value;
  }) as Record<string, unknown>;
  // The one of a list is asked for by its name.
  for (const name of Object.keys(texts)) if (FREE_ABOVE.test(name) && !path.endsWith("/namespaces")) texts[name] = BAD;
  return texts;
}

function textsIn(value: unknown): readonly string[] {
  if (typeof value === "string") return [value];
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

interface Answer {
  readonly status: number;
  readonly body: object;
}

async function answering(answer: (path: string) => Answer | Promise<Answer>): Promise<string> {
  const server = createServer(async ({ url = "" }, response) => {
    const { status, body } = await answer(url);
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test("somebody wrote into the store what acts on a terminal, and is long: no command and no caller is told it as it stands there", async () => {
  const { url: admin, storeUrl, operatorUrl } = sharedRedis();
  const key = `${new URL(storeUrl).searchParams.get("prefix")}{main}:record`;
  const checkpoint = ["--checkpoint-dir", await folderForTest()];
  expect(await callnumber(["init", "--store", storeUrl, ...checkpoint])).toMatchObject({ code: 0 });
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
  const asked = (await (await fetch(`${url}/v1/namespaces/main/runs`)).json()) as { message: string };
  expect(asked.message).toContain("schema version BAD\\u{1b}");
  expect(asked.message).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u);
  expect(output().stdout + output().stderr).not.toMatch(ACTS_ON_TERMINAL);

  await command({ url: admin }, "HSET", key, "v", "x".repeat(8_000_000));
  const before = output().stdout.length;
  const holder = { name: "importer", host: "mail-1", pid: 1, labels: {} };
  const wish = { runCount: 1, nonce: "nonce-0123456789", holder, lastRun: null, receipt: null, sentAtMs: Date.now() };
  const refusal = async (): Promise<string> => {
    const headers = { "content-type": "application/json" };
    const lease = { method: "POST", headers, body: JSON.stringify(wish) };
    return await (await fetch(`${url}/v1/namespaces/main/leases`, lease)).text();
  };
  let told = await refusal();
  // On a busy machine so long an answer may come too late.
  while (told.includes("store_unavailable")) told = await refusal();
  expect(told).toContain("store_schema_unsupported");
  expect(told).toContain("Use the release that wrote it");
  expect(told.length).toBeLessThan(2_000);
  const status = await (await fetch(`${url}/v1/namespaces/main/status`)).text();
  expect(status.length).toBeLessThan(4_000);
  expect(output().stdout.length - before).toBeLessThan(20_000);
  await command({ url: admin }, "HSET", key, "v", version);
});

test.each<[string, string, (words: readonly string[]) => string, readonly string[]]>([
  ["in an error", "redis", () => `-ERR ${BAD_LINE}\r\n`, ["init"]],
  ["as a script's refusal", "redis", () => `-CORRUPT - ${BAD_LINE}\r\n`, ["init"]],
  ["of itself", "redis", (words) => (words[0]?.toLowerCase() === "info" ? bulk(BAD_INFO) : well(words)), ["doctor"]],
])("a Redis says what acts on a terminal %s: no command repeats it", async (_, scheme, answer, words) => {
  const redis = await startRespServer((said, socket) => void socket.write(answer(said)));
  onTestFinished(() => redis.close());
  const store = `${scheme}://127.0.0.1:${redis.port}`;
  const nowhere = ["--coordinator", "http://127.0.0.1:1"];
  for (const more of [[], ["--json"]]) {
    const run = [...words, "--store", store, ...(words[0] === "doctor" ? nowhere : []), ...more];
    expectHarmless(await callnumber(run), run.join(" "));
  }
});

const BAD_INFO = `redis_version:5.0${BAD_LINE}\r\nrole:master\r\nmaxmemory:5\r\nmaxmemory_policy:allkeys-${BAD_LINE}\r\n`;

function bulk(text: string): string {
  return `$${Buffer.byteLength(text)}\r\n${text}\r\n`;
}

function well([name = "", word]: readonly string[]): string {
  if (name.toLowerCase() === "ping") return word === undefined ? "+PONG\r\n" : bulk(word);
  return /^(?:auth|select|hello|client)$/i.test(name) ? "+OK\r\n" : "*0\r\n";
}

test("a list of call numbers is called what acts on a terminal: no command repeats it", async () => {
  const folder = await folderForTest();
  const name = BAD.replaceAll("/", "");
  const numbers = join(folder, name);
  await writeFile(numbers, `2VznWE2i\n${name}\n`);
  const { storeUrl } = sharedRedis();
  const recovered = await callnumber([
    "recover",
    "--store",
    storeUrl,
    "--checkpoint-dir",
    folder,
    "--numbers",
    numbers,
  ]);
  expect(recovered.code).toBe(1);
  expectHarmless(recovered, "recover --numbers");
});

test("a coordinator is not called what acts on a terminal", async () => {
  const finished = await callnumber(["serve", "--store", "memory:", "--port", "0", "--coordinator-name", BAD]);
  expect(finished).toMatchObject({ code: 2, stderr: expect.stringContaining("unprintable") });
  expect(finished.stderr).not.toMatch(ACTS_ON_TERMINAL);
});
