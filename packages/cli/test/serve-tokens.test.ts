/** `callnumber serve` with a file of tokens: which requests it accepts, what a change of the file does, and that no token is printed anywhere. */
import { appendFile, chmod, readFile, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { callnumber, folderForTest, type RunningCoordinator, serve } from "../../../test/processes/command.js";
import { done, expectFailure, imported, jsonLines, type LogLine } from "./commands-for-test.js";

let folder: string;
let tokensFile: string;
let store: string;

beforeEach(async () => {
  folder = await folderForTest();
  tokensFile = join(folder, "tokens");
  store = `sqlite:${join(folder, "store.db")}`;
});

const LEASE = ["--role", "lease", "--namespace", "main"];
const READ = ["--role", "read", "--all-namespaces"];

const newToken = async (...what: readonly string[]) =>
  (await done("token", "create", "--tokens-file", tokensFile, ...what)).stdout.trimEnd();
const serveWithTokens = (...more: readonly string[]) => serve(store, "--create", "--tokens-file", tokensFile, ...more);
const idsInFile = async () => jsonLines<{ id: string }>(await readFile(tokensFile, "utf8")).map(({ id }) => id);
const eventsOf = ({ output }: RunningCoordinator, event: string) =>
  jsonLines(output().stdout).filter(({ msg }) => msg === event);

async function statusOf({ url }: RunningCoordinator, token?: string, path = "/v1/namespaces/main/status") {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(url + path, { headers });
  await response.body?.cancel();
  return response.status;
}

/** Sends SIGHUP. Resolves to the event that follows: a second one, where the file was read again meanwhile. */
async function hangUp(coordinator: RunningCoordinator, event: string): Promise<LogLine> {
  const before = eventsOf(coordinator, event).length;
  coordinator.send("SIGHUP");
  await expect.poll(() => eventsOf(coordinator, event).length).toBeGreaterThan(before);
  return eventsOf(coordinator, event).at(-1) as LogLine;
}

describe("with a tokens file", () => {
  test("SIGHUP rotates and revokes tokens without a restart, and no moment has neither token accepted", async () => {
    const old = await newToken(...READ);
    const coordinator = await serveWithTokens("--host", "0.0.0.0", "--listen-without-tls");
    expect(coordinator.output().stderr).not.toContain("no token is required");
    expect(coordinator.output().stderr).toContain(`1 token in ${tokensFile}: ${(await idsInFile())[0]}`);
    const statuses = async () => [await statusOf(coordinator, old), await statusOf(coordinator, fresh)];
    expect(await statusOf(coordinator)).toBe(401);
    const fresh = await newToken(...READ);
    const both = (await idsInFile()) as [string, string];
    expect(await hangUp(coordinator, "tokens_reloaded")).toMatchObject({ level: 30, tokenCount: 2, tokenIds: both });
    expect(await statuses()).toEqual([200, 200]);
    await done("token", "revoke", both[0], "--tokens-file", tokensFile);
    expect(await hangUp(coordinator, "tokens_reloaded")).toMatchObject({ tokenCount: 1, tokenIds: [both[1]] });
    expect(await statuses()).toEqual([401, 200]);
    await done("token", "revoke", both[1], "--tokens-file", tokensFile);
    expect(await hangUp(coordinator, "tokens_reloaded")).toMatchObject({ tokenCount: 0 });
    expect(await statuses()).toEqual([401, 401]);
    expect(coordinator.output().stderr).toContain("every request is rejected");
    expect(await coordinator.stop()).toBe(0);
  });

  test("a revoked token stops working on every coordinator of the file within seconds, without a signal", async () => {
    const [revoked, kept] = [await newToken(...READ), await newToken(...READ)];
    const coordinators = [await serveWithTokens(), await serve("memory:", "--tokens-file", tokensFile)];
    const statuses = () => Promise.all(coordinators.map((one) => statusOf(one, revoked)));
    expect(await statuses()).toEqual([200, 200]);
    await done("token", "revoke", (await idsInFile())[0] as string, "--tokens-file", tokensFile);
    await expect.poll(statuses, { timeout: 30_000 }).toEqual([401, 401]);
    for (const one of coordinators) {
      expect(eventsOf(one, "tokens_reloaded")).toEqual([expect.objectContaining({ level: 30, tokenCount: 1 })]);
      expect(await statusOf(one, kept)).toBe(200);
    }
  });

  test("a changed tokens file that can't be read is reported once, raises an alarm, and grants access when it is repaired", async () => {
    const token = await newToken(...READ);
    const coordinator = await serveWithTokens();
    const text = await readFile(tokensFile, "utf8");
    await writeFile(tokensFile, text.slice(0, -10));
    const failures = () => eventsOf(coordinator, "tokens_reload_failed");
    await expect.poll(() => failures().length, { timeout: 30_000 }).toBe(1);
    expect(failures()).toEqual([expect.objectContaining({ level: 50, reason: expect.stringContaining("line 1") })]);
    const alarms = async () => {
      const headers = { authorization: `Bearer ${token}` };
      const response = await fetch(`${coordinator.url}/v1/namespaces/main/capacity`, { headers });
      return ((await response.json()) as { alarms: { name: string }[] }).alarms.map(({ name }) => name);
    };
    expect(await alarms()).toEqual(["tokens_file_unreadable"]);
    await writeFile(tokensFile, text);
    const fresh = await newToken(...READ);
    await expect.poll(() => statusOf(coordinator, fresh), { timeout: 30_000 }).toBe(200);
    expect(failures()).toHaveLength(1);
    await expect.poll(alarms, { timeout: 30_000 }).toEqual([]);
  });

  test("a command without a token, or with one of another role, prints the flag that fixes it", async () => {
    const token = await newToken(...READ);
    const { url } = await serveWithTokens();
    for (const command of ["status", "next"]) {
      await expectFailure([command, "--coordinator", url], 1, /\(unauthorized\).*--token-file FILE/);
    }
    const env = { CALLNUMBER_TOKEN: token };
    await expectFailure(["next", "--coordinator", url], 1, /\(forbidden\).*role lease.*--token-file/, env);
    const { stderr } = await expectFailure(["status", "--json", "--coordinator", url], 1, "");
    expect(JSON.parse(stderr)).toMatchObject({ code: "unauthorized" });
  });

  test("tokens stay accepted when the file can't be read any more, and the log has the reason", async () => {
    const token = await newToken(...READ);
    const coordinator = await serveWithTokens();
    await chmod(tokensFile, 0o644);
    const expected = { level: 50, code: "tokens_file_invalid" };
    const modeReason = expect.stringMatching(/mode is 0644.*chmod 600/);
    expect(await hangUp(coordinator, "tokens_reload_failed")).toMatchObject({ ...expected, reason: modeReason });
    await chmod(tokensFile, 0o600);
    await appendFile(tokensFile, `${token}\n`);
    const lineReason = expect.stringMatching(/line 2: it is not JSON$/);
    expect(await hangUp(coordinator, "tokens_reload_failed")).toMatchObject({ ...expected, reason: lineReason });
    expect(await statusOf(coordinator, token)).toBe(200);
    expect(coordinator.output().stdout + coordinator.output().stderr).not.toContain(token);
  });

  test("serve with a bad tokens file makes no store", async () => {
    await writeFile(tokensFile, "{}\n", { mode: 0o600 });
    const words = ["serve", "--port", "0", "--create", "--store", store, "--tokens-file", tokensFile];
    await expectFailure(words, 1, "tokens, line 1: ");
    await expect(readFile(join(folder, "store.db"))).rejects.toMatchObject({ code: "ENOENT" });
  });
});

describe("without tokens", () => {
  const statusUnder = (url: string, host: string) =>
    new Promise<number | undefined>((resolve, reject) => {
      const sent = request(`${url}/v1/namespaces`, { headers: { host } }, (response) => {
        response.resume();
        resolve(response.statusCode);
      });
      sent.on("error", reject).end();
    });

  test("serve listens to this machine only; with --listen-without-tokens it accepts any address and the names of --allow-host", async () => {
    const own = await serve("memory:");
    expect(own.output().stderr).toContain("it listens to this machine only");
    expect(await statusUnder(own.url, "10.1.2.3")).toBe(403);
    expect(await statusUnder(own.url, "localhost")).toBe(200);
    const open = await serve("memory:", "--listen-without-tokens", "--allow-host", "coordinator,Numbers.example");
    expect(open.output().stderr).toContain("every client that reaches the port may do everything");
    for (const host of ["10.1.2.3:7300", "localhost", "coordinator:7300", "numbers.example"]) {
      expect(await statusUnder(open.url, host), host).toBe(200);
    }
    expect(await statusUnder(open.url, "rebound.example")).toBe(403);
  });
});

test("no command, log, response or file has a token, but the output of create", async () => {
  const tokens = {
    lease: await newToken(...LEASE),
    read: await newToken(...READ, "--note", "who reads"),
    operator: await newToken("--role", "operator", "--namespace", "main"),
  };
  const [leaseId] = await idsInFile();
  const coordinator = await serveWithTokens("--log-level", "debug", "--ledger-dir", folder);
  const printed: string[] = [];
  const run = async (token: string | undefined, words: readonly string[], code = 0) => {
    const env: Record<string, string> = { CALLNUMBER_COORDINATOR: coordinator.url };
    if (token !== undefined) env["CALLNUMBER_TOKEN"] = token;
    const finished = await callnumber(words, { env });
    printed.push(finished.stdout, finished.stderr);
    expect(finished, words.join(" ")).toMatchObject({ code });
    return finished;
  };
  const fileWith = async (text: string) => {
    const file = join(folder, `file-${printed.length}`);
    await writeFile(file, `${text}\n`, { mode: 0o600 });
    return ["--token-file", file];
  };
  // What each role may do, and what it may not.
  const [callNumber = ""] = (await run(tokens.lease, ["next"])).stdout.trim().split("\n");
  await run(undefined, ["next", ...(await fileWith(tokens.lease)), "--json"]);
  await run(tokens.lease, ["status"], 1);
  await run(tokens.read, ["next"], 1);
  await run(undefined, ["status"], 1);
  await run(undefined, ["next"], 1);
  await imported(coordinator.url, 1, tokens.lease);
  for (const verb of ["status", "runs", "export"]) await run(tokens.read, [verb]);
  await run(tokens.read, ["status", "--check"]);
  await run(tokens.read, ["status", "--all-namespaces"]);
  await run(tokens.operator, ["runs", "--json"]);
  expect((await run(tokens.operator, ["runs", "2"])).stdout).toContain(`token        ${leaseId}`);
  expect((await run(tokens.operator, ["inspect", callNumber])).stdout).toContain(`, token ${leaseId}, at `);
  // A file takes precedence over the environment; one that holds no token is rejected without its text.
  await run(tokens.lease, ["status", ...(await fileWith(tokens.read))]);
  for (const verb of ["status", "next"]) {
    const words = [verb, ...(await fileWith(`${tokens.read} ${tokens.lease}`)), "--json"];
    expect(JSON.parse((await run(undefined, words, 1)).stderr)).toMatchObject({ code: "token_invalid" });
  }
  await run(`${tokens.read}\u0001`, ["status"], 1);
  await run(undefined, ["status", "--token-file", join(folder, "none")], 1);
  for (const path of ["/metrics", "/openapi.json", "/readyz", "/v1/namespaces", "/v1/namespaces/main/export"]) {
    const response = await fetch(coordinator.url + path, { headers: { authorization: `Bearer ${tokens.read}` } });
    printed.push(await response.text());
  }
  expect(printed.join("")).toMatch(new RegExp(`"tokenId":"${leaseId}"`));
  await hangUp(coordinator, "tokens_reloaded");
  await coordinator.stop();
  const ofToken = expect.objectContaining({ tokenId: leaseId });
  expect(eventsOf(coordinator, "numbers")).toEqual([ofToken, ofToken]);
  expect(eventsOf(coordinator, "lease")).toEqual([expect.not.objectContaining({ tokenId: leaseId }), ofToken]);
  const { stdout, stderr } = coordinator.output();
  printed.push(stdout, stderr);
  await run(undefined, ["token", "list", "--tokens-file", tokensFile, "--json"]);
  await run(undefined, ["doctor", "--store", store]);
  printed.push(await readFile(tokensFile, "utf8"), await readFile(join(folder, "store.db"), "latin1"));
  const all = printed.join("");
  for (const token of Object.values(tokens)) expect(all).not.toContain(token.slice(3, 25));
});
