/** `callnumber serve` with a file of tokens, as processes: who is let in, what SIGHUP changes, and that no token is told anywhere. */

import { appendFile, chmod, readFile, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { callnumber, folderForTest, type RunningCoordinator, serve } from "../../../test/processes/command.js";

interface Place {
  readonly folder: string;
  readonly tokensFile: string;
  readonly store: string;
}

async function place(): Promise<Place> {
  const folder = await folderForTest();
  return { folder, tokensFile: join(folder, "tokens"), store: `sqlite:${join(folder, "store.db")}` };
}

async function tokenFor({ tokensFile }: Place, ...what: readonly string[]): Promise<string> {
  const made = await callnumber(["token", "create", "--tokens-file", tokensFile, ...what]);
  expect(made.stderr).toContain("Made token");
  return made.stdout.trimEnd();
}

const LEASE = ["--role", "lease", "--namespace", "main"];
const READ = ["--role", "read", "--all-namespaces"];

const statusOf = async (
  { url }: RunningCoordinator,
  token: string | undefined,
  path = "/v1/namespaces/main/status",
) => {
  const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const answer = await fetch(url + path, { headers });
  await answer.body?.cancel();
  return answer.status;
};

interface LogLine {
  readonly msg: string;
  readonly [field: string]: unknown;
}

function linesOf({ output }: RunningCoordinator, event: string): LogLine[] {
  return output()
    .stdout.split("\n")
    .filter((line) => line.endsWith("}"))
    .map((line) => JSON.parse(line) as LogLine)
    .filter(({ msg }) => msg === event);
}

async function hangUp(coordinator: RunningCoordinator, event: string): Promise<LogLine> {
  const before = linesOf(coordinator, event).length;
  coordinator.send("SIGHUP");
  await expect.poll(() => linesOf(coordinator, event).length).toBe(before + 1);
  return linesOf(coordinator, event).at(-1) as LogLine;
}

async function idsIn({ tokensFile }: Place): Promise<string[]> {
  const text = await readFile(tokensFile, "utf8");
  return text
    .trimEnd()
    .split("\n")
    .map((line) => (JSON.parse(line) as { id: string }).id);
}

describe("the tokens of a file", () => {
  test("are let in, rotated and revoked by SIGHUP, without a restart and without a moment in which neither is good", async () => {
    const at = await place();
    const old = await tokenFor(at, ...READ);
    const coordinator = await serve(at.store, "--create", "--tokens-file", at.tokensFile);
    expect(coordinator.output().stderr).toContain(`1 token in ${at.tokensFile}: ${(await idsIn(at))[0]}`);
    expect(await statusOf(coordinator, undefined)).toBe(401);
    expect(await statusOf(coordinator, old)).toBe(200);
    const fresh = await tokenFor(at, ...READ);
    expect(await statusOf(coordinator, fresh)).toBe(401);
    const both = await idsIn(at);
    expect(await hangUp(coordinator, "tokens_reloaded")).toMatchObject({ level: 30, tokenCount: 2, tokenIds: both });
    expect([await statusOf(coordinator, old), await statusOf(coordinator, fresh)]).toEqual([200, 200]);
    await callnumber(["token", "revoke", both[0] as string, "--tokens-file", at.tokensFile]);
    expect(await hangUp(coordinator, "tokens_reloaded")).toMatchObject({ tokenCount: 1, tokenIds: [both[1]] });
    expect([await statusOf(coordinator, old), await statusOf(coordinator, fresh)]).toEqual([401, 200]);
    await callnumber(["token", "revoke", both[1] as string, "--tokens-file", at.tokensFile]);
    expect(await hangUp(coordinator, "tokens_reloaded")).toMatchObject({ tokenCount: 0 });
    expect(await statusOf(coordinator, fresh)).toBe(401);
    expect(coordinator.output().stderr).toContain("NOBODY IS LET IN");
    expect(await coordinator.stop()).toBe(0);
  });

  test("that a command lacks, or that are not good for it, are told of with the flag that mends it", async () => {
    const at = await place();
    const token = await tokenFor(at, ...READ);
    const { url } = await serve(at.store, "--create", "--tokens-file", at.tokensFile);
    for (const command of ["status", "next"]) {
      const bare = await callnumber([command, "--coordinator", url]);
      expect(bare).toMatchObject({ code: 1, stderr: expect.stringMatching(/\(unauthorized\).*--token-file FILE/) });
    }
    const other = await callnumber(["next", "--coordinator", url], { env: { CALLNUMBER_TOKEN: token } });
    expect(other).toMatchObject({ code: 1, stderr: expect.stringMatching(/\(forbidden\).*role lease.*--token-file/) });
    const asJson = await callnumber(["status", "--json", "--coordinator", url]);
    expect(JSON.parse(asJson.stderr)).toMatchObject({ code: "unauthorized" });
  });

  test("stay good when the file can't be read any more, and the log says why", async () => {
    const at = await place();
    const token = await tokenFor(at, ...READ);
    const coordinator = await serve(at.store, "--create", "--tokens-file", at.tokensFile);
    const faults: [() => Promise<void>, RegExp][] = [
      [() => chmod(at.tokensFile, 0o644), /mode is 0644.*chmod 600/],
      [
        async () => (await chmod(at.tokensFile, 0o600), appendFile(at.tokensFile, `${token}\n`)),
        /line 2: it is no JSON$/,
      ],
    ];
    for (const [spoil, reason] of faults) {
      await spoil();
      const line = await hangUp(coordinator, "tokens_reload_failed");
      expect(line).toMatchObject({ level: 50, code: "tokens_file_invalid", reason: expect.stringMatching(reason) });
      expect(await statusOf(coordinator, token)).toBe(200);
    }
    expect(coordinator.output().stdout + coordinator.output().stderr).not.toContain(token);
  });

  test("are read before anything else: a bad file is no start, and makes no store", async () => {
    const at = await place();
    await writeFile(at.tokensFile, "{}\n", { mode: 0o600 });
    const args = ["serve", "--port", "0", "--create", "--store", at.store, "--tokens-file", at.tokensFile];
    expect(await callnumber(args)).toMatchObject({ code: 1, stderr: expect.stringContaining("tokens, line 1: ") });
    await chmod(at.tokensFile, 0o666);
    expect(await callnumber(args)).toMatchObject({ code: 1, stderr: expect.stringContaining("mode is 0666") });
    expect(await callnumber([...args.slice(0, -1), `${at.tokensFile}-not`])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("is not there"),
    });
    await expect(readFile(join(at.folder, "store.db"))).rejects.toMatchObject({ code: "ENOENT" });
  });

  test("of nobody let nobody in, and it is said", async () => {
    const at = await place();
    await writeFile(at.tokensFile, "", { mode: 0o600 });
    const coordinator = await serve(at.store, "--create", "--tokens-file", at.tokensFile);
    expect(coordinator.output().stderr).toContain("NOBODY IS LET IN");
    expect(await statusOf(coordinator, `cn_${"A".repeat(43)}`)).toBe(401);
    expect(await statusOf(coordinator, undefined, "/healthz")).toBe(200);
  });

  test("let others in on any address; without them it must be asked for, and not with them at once", async () => {
    const at = await place();
    await tokenFor(at, ...READ);
    const anywhere = ["--host", "0.0.0.0", "--listen-without-tls"];
    const coordinator = await serve(at.store, "--create", ...anywhere, "--tokens-file", at.tokensFile);
    expect(coordinator.output().stderr).not.toContain("nobody is asked");
    const args = ["serve", "--port", "0", "--store", "memory:", ...anywhere];
    expect(await callnumber(args)).toMatchObject({ code: 2, stderr: expect.stringContaining("--tokens-file") });
    expect(await callnumber([...args, "--listen-without-tokens", "--tokens-file", at.tokensFile])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("exclude each other"),
    });
  });
});

describe("without tokens", () => {
  const statusUnder = (url: string, host: string) =>
    new Promise<number | undefined>((resolve, reject) => {
      const asking = request(`${url}/v1/namespaces`, { headers: { host } }, (answer) => {
        answer.resume();
        resolve(answer.statusCode);
      });
      asking.on("error", reject).end();
    });

  test("only this machine is listened to, and says so; a page under another name is refused", async () => {
    const coordinator = await serve("memory:");
    expect(coordinator.output().stderr).toContain("only this machine is listened to");
    expect(await statusUnder(coordinator.url, "rebound.example")).toBe(403);
    expect(await statusUnder(coordinator.url, "localhost")).toBe(200);
  });

  test("by an operator's word everybody is answered, under any address and the names that are said", async () => {
    const coordinator = await serve(
      "memory:",
      "--listen-without-tokens",
      "--allow-host",
      "coordinator,Numbers.example",
    );
    expect(coordinator.output().stderr).toContain("whoever reaches the port may do everything");
    for (const host of ["10.1.2.3:7300", "[fd00::5]:7300", "localhost", "coordinator:7300", "numbers.example"]) {
      expect(await statusUnder(coordinator.url, host), host).toBe(200);
    }
    expect(await statusUnder(coordinator.url, "rebound.example")).toBe(403);
  });

  test("a name is said as one, and is nothing where tokens are asked for", async () => {
    for (const wrong of ["http://a", "a:80", "a,,b", ""]) {
      const refused = await callnumber(["serve", "--store", "memory:", "--port", "0", "--allow-host", wrong]);
      expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("must be names of hosts") });
    }
    const both = ["serve", "--store", "memory:", "--port", "0", "--allow-host", "a", "--tokens-file", "none"];
    expect(await callnumber(both)).toMatchObject({ code: 2, stderr: expect.stringContaining("--allow-host is for") });
  });
});

describe("a whole story", () => {
  test("tells no token anywhere but where it was made", async () => {
    const at = await place();
    const tokens = {
      lease: await tokenFor(at, ...LEASE),
      read: await tokenFor(at, ...READ, "--note", "who looks"),
      operator: await tokenFor(at, "--role", "operator", "--namespace", "main"),
    };
    const [leaseId] = await idsIn(at);
    const ledgerDir = join(at.folder, "ledger");
    const more = ["--tokens-file", at.tokensFile, "--log-level", "debug", "--ledger-dir", ledgerDir];
    const coordinator = await serve(at.store, "--create", ...more);
    const heard: string[] = [];
    const run = async (token: string | undefined, parameters: readonly string[], code = 0) => {
      const env: Record<string, string> = { CALLNUMBER_COORDINATOR: coordinator.url };
      if (token !== undefined) env["CALLNUMBER_TOKEN"] = token;
      const done = await callnumber(parameters, { env });
      heard.push(done.stdout, done.stderr);
      expect(done, parameters.join(" ")).toMatchObject({ code });
      return done;
    };
    const fileOf = async (name: string, token: string) => {
      const file = join(at.folder, name);
      await writeFile(file, `${token}\n`, { mode: 0o600 });
      return ["--token-file", file];
    };
    // What each role may do, and what it may not.
    const [callNumber = ""] = (await run(tokens.lease, ["next"])).stdout.trim().split("\n");
    await run(undefined, ["next", ...(await fileOf("lease.token", tokens.lease)), "--json"]);
    await run(tokens.lease, ["status"], 1);
    await run(tokens.read, ["next"], 1);
    await run(undefined, ["status"], 1);
    await run(undefined, ["next"], 1);
    for (const verb of ["status", "runs", "export"]) await run(tokens.read, [verb]);
    await run(tokens.read, ["status", "--check"]);
    await run(tokens.read, ["status", "--all-namespaces"]);
    await run(tokens.read, ["export", "--format", "ndjson"]);
    await run(tokens.operator, ["runs", "--json"]);
    expect((await run(tokens.operator, ["runs", "1"])).stdout).toContain(`token        ${leaseId}`);
    expect((await run(tokens.operator, ["inspect", callNumber])).stdout).toContain(`by token ${leaseId}`);
    for (const [token, status] of [
      [tokens.operator, 200],
      [tokens.read, 403],
    ] as const) {
      const relabelled = await fetch(`${coordinator.url}/v1/namespaces/main/labels`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        body: JSON.stringify({ labels: { archive: "lists" } }),
      });
      expect(relabelled.status).toBe(status);
      heard.push(await relabelled.text());
    }
    // A file goes before the environment; one that holds no token is told without what it holds.
    await run(tokens.lease, ["status", ...(await fileOf("read.token", tokens.read))]);
    const broken = await fileOf("broken.token", `${tokens.read} ${tokens.lease}`);
    for (const verb of ["status", "next"]) {
      const refused = await run(undefined, [verb, ...broken, "--json"], 1);
      expect(JSON.parse(refused.stderr)).toMatchObject({ code: "token_invalid" });
    }
    await run(`${tokens.read}\u0001`, ["status"], 1);
    await run(undefined, ["status", "--token-file", join(at.folder, "none")], 1);
    for (const path of [
      "/metrics",
      "/openapi.json",
      "/readyz",
      "/v1/namespaces",
      "/v1/namespaces/main/export?format=csv",
    ]) {
      heard.push(
        await (await fetch(coordinator.url + path, { headers: { authorization: `Bearer ${tokens.read}` } })).text(),
      );
    }
    expect(heard.join("")).toMatch(new RegExp(`"tokenId":"${leaseId}"`));
    await hangUp(coordinator, "tokens_reloaded");
    await coordinator.stop();
    const { stdout, stderr } = coordinator.output();
    expect(linesOf(coordinator, "lease")).toEqual([
      expect.objectContaining({ tokenId: leaseId }),
      expect.objectContaining({ tokenId: leaseId }),
    ]);
    const listed = await callnumber(["token", "list", "--tokens-file", at.tokensFile, "--json"]);
    const doctored = await callnumber(["doctor", "--store", at.store]);
    heard.push(stdout, stderr, listed.stdout, doctored.stdout, doctored.stderr, await readFile(at.tokensFile, "utf8"));
    heard.push(await readFile(join(at.folder, "store.db"), "latin1"));
    const all = heard.join("");
    for (const token of Object.values(tokens)) {
      expect(all).not.toContain(token);
      expect(all).not.toContain(token.slice(3, 25));
    }
  });
});
