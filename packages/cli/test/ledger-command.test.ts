/** The ledger at the terminal: `runs`, `runs --follow`, `export`, and `status` for scripts, as processes of their own. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { exportEndSchema } from "@callnumber/protocol/operator-schemas";
import { type LedgerEntry, pathOf } from "@callnumber/protocol/wire";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  callnumber,
  folderForTest,
  serve,
  shell,
  startCommand,
  startOnTerminal,
} from "../../../test/processes/command.js";

const ESC = String.fromCharCode(27);
const COLORS = new RegExp(`${ESC}\\[[\\d;]*m`, "g");
let asked = 0;

async function coordinator() {
  const { url } = await serve(`sqlite:${join(await folderForTest(), "store.db")}`, "--create");
  return { url, to: ["--coordinator", url] };
}

interface Who {
  readonly name?: string;
  readonly host?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly runCount?: number;
}

async function lease(
  url: string,
  { name = "importer", host = "mail-1", labels = {}, runCount = 1 }: Who = {},
): Promise<{ firstRun: number; nonce: string }> {
  const holder = { name, host, pid: 4711, labels };
  const nonce = `nonce-of-lease-${process.pid}-${asked++}`;
  const request = { runCount, nonce, holder, lastRun: null, receipt: null, sentAtMs: 1_700_000_000_000 };
  return (await post(url, pathOf("leases", { namespace: "main" }), request)) as { firstRun: number; nonce: string };
}

async function post(url: string, path: string, body: unknown): Promise<unknown> {
  const headers = { "content-type": "application/json" };
  const answer = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(await answer.text());
  return await answer.json();
}

function jsonLines(text: string): LedgerEntry[] {
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as LedgerEntry);
}

describe("runs", () => {
  test("takes every filter, and all of them at once", async () => {
    const { url, to } = await coordinator();
    const { nonce } = await lease(url, { name: "a", host: "h-1", labels: { archive: "lists", step: "1" } });
    await lease(url, { name: "a", host: "h-2", labels: { archive: "lists", step: "2" }, runCount: 3 });
    await lease(url, { name: "b", host: "h-2", labels: { archive: "notes" } });
    await post(url, pathOf("report", { namespace: "main", run: 1 }), { nonce, lastSequence: 5, state: "closed" });
    const runs = async (...filters: readonly string[]) => {
      const { stdout } = await callnumber(["runs", "--json", ...filters, ...to]);
      return (JSON.parse(stdout) as LedgerEntry[]).map(({ firstRun }) => firstRun);
    };
    expect(await runs("--holder", "a")).toEqual([2, 1]);
    expect(await runs("--host", "h-2")).toEqual([5, 2]);
    expect(await runs("--label", "archive=lists", "--label", "step=2")).toEqual([2]);
    expect(await runs("--state", "closed")).toEqual([1]);
    expect(await runs("--state", "unreported", "--holder", "a")).toEqual([2]);
    expect(await runs("--from-run", "3", "--to-run", "4")).toEqual([2]);
    expect(await runs("--from", "2020-01-01", "--to", "2020-01-02")).toEqual([]);
    expect((await callnumber(["runs", "--holder", "nobody", ...to])).stdout).toBe("no leases\n");
  });

  test("fits the terminal, with colors; in a pipe all stands in full, without", async ({ skip }) => {
    if ((await shell("command -v script")).code !== 0) skip("no `script` here, which gives a command a terminal");
    const { url, to } = await coordinator();
    const name = "an-importer-with-a-name-that-takes-half-of-a-line";
    await lease(url, { name, host: "archive-importer-07.dc2.example.net", labels: { archive: "lists" } });
    for (const columns of [80, 120]) {
      const runs = startOnTerminal(columns, "runs", ...to);
      expect(await runs.ended()).toBe(0);
      const { stdout } = runs.output();
      expect(stdout).toContain(`${ESC}[`);
      const lines = stdout.replaceAll(COLORS, "").split("\r\n");
      expect(lines[0]).toMatch(/^RUNS +LEASED AT +HOLDER/);
      for (const line of lines) expect(line.length).toBeLessThanOrEqual(columns);
    }
    const piped = await callnumber(["runs", ...to]);
    expect(piped.stdout).toContain(`${name}  archive-importer-07.dc2.example.net  4711  unreported  archive=lists\n`);
    expect(piped.stdout).not.toContain(ESC);
  });

  test("--follow tells every new lease once, in order, and ends on Ctrl-C with 0", async () => {
    const { url, to } = await coordinator();
    for (let count = 0; count < 5; count++) await lease(url, { name: count % 2 === 0 ? "a" : "b" });
    const every = startCommand(["runs", "--follow", "--json", "--limit", "2", "--interval", "1", ...to]);
    const some = startCommand(["runs", "--follow", "--json", "--holder", "a", "--interval", "1", ...to]);
    await expect.poll(() => jsonLines(every.output().stdout).length).toBe(2);
    await expect.poll(() => jsonLines(some.output().stdout).length).toBe(3);
    for (let count = 0; count < 300; count++) await lease(url, { name: count % 2 === 0 ? "a" : "b", runCount: 2 });
    await expect.poll(() => jsonLines(every.output().stdout).length).toBe(302);
    await expect.poll(() => jsonLines(some.output().stdout).length).toBe(153);
    expect(await Promise.all([every.stop(), some.stop()])).toEqual([0, 0]);
    const runs = jsonLines(every.output().stdout).map(({ firstRun }) => firstRun);
    expect(runs).toEqual([4, 5, ...Array.from({ length: 300 }, (_, index) => 6 + 2 * index)]);
    expect(jsonLines(some.output().stdout).every(({ holder }) => holder.name === "a")).toBe(true);
  });

  test("--follow outlives its coordinator, says once that it is gone, and leaves nothing out", async () => {
    const folder = await folderForTest();
    const port = await freePort();
    const store = `sqlite:${join(folder, "store.db")}`;
    const first = await serve(store, "--create", "--port", String(port));
    await lease(first.url);
    const follower = startCommand(["runs", "--follow", "--json", "--interval", "1", "--coordinator", first.url]);
    await expect.poll(() => jsonLines(follower.output().stdout).length).toBe(1);
    await first.stop();
    await expect.poll(() => follower.output().stderr).toContain("coordinator_unreachable");
    const second = await serve(store, "--port", String(port));
    await lease(second.url);
    await expect.poll(() => jsonLines(follower.output().stdout).length).toBe(2);
    expect(await follower.stop()).toBe(0);
    expect(follower.output().stderr.trim().split("\n")).toHaveLength(1);
  });
});

describe("export", () => {
  test("writes a table, or lines of JSON with a last one that says they are all", async () => {
    const { url, to } = await coordinator();
    for (let count = 0; count < 3; count++) await lease(url, { name: `=${count}` });
    const csv = await callnumber(["export", ...to]);
    expect(csv).toMatchObject({ code: 0, stderr: "" });
    expect(csv.stdout).toMatch(/^"version",.*\r\n(0,\d+,.*\r\n){3}$/);
    expect(csv.stdout).toContain(`"'=2"`);
    const ndjson = await callnumber(["export", "--format", "ndjson", "--to-run", "2", ...to]);
    const lines = ndjson.stdout.trim().split("\n");
    expect(exportEndSchema.parse(JSON.parse(lines.pop() ?? ""))).toEqual({ end: true, leaseCount: 2, upToRun: 2 });
    expect(jsonLines(lines.join("\n")).map(({ firstRun }) => firstRun)).toEqual([1, 2]);
    expect((await callnumber(["export", "--namespace", "nowhere", ...to])).stderr).toContain("namespace_not_found");
  });

  test("into a file on a full disk exits with 1, and says why in one line", async () => {
    const { url } = await coordinator();
    await lease(url);
    const { code, stderr } = await shell(`callnumber export --coordinator ${url} > /dev/full`);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^callnumber: ENOSPC: .*\n$/)]);
    expect(await shell(`callnumber export --coordinator ${url} | head -n 1`)).toMatchObject({ code: 0, stderr: "" });
  });

  test.each([
    ["csv", "cut"],
    ["ndjson", "cut"],
    // As a proxy ends an answer whose source is gone.
    ["ndjson", "ended without its end"],
  ])("as %s that is %s exits with 1, and says that it is a part", async (format, how) => {
    const server = createServer((_, response) => {
      response.writeHead(200, { "content-type": "text/plain" });
      response.write("{}\n", () => (how === "cut" ? response.destroy() : response.end()));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void server.close());
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    expect(await callnumber(["export", "--format", format, "--coordinator", url])).toMatchObject({
      code: 1,
      stdout: "{}\n",
      stderr: expect.stringMatching(/a part of it only.*export_incomplete/),
    });
  });
});

describe("status", () => {
  test("--check tells scripts how it stands, in one line and by its exit code", async () => {
    const { url, to } = await coordinator();
    await lease(url);
    const well = await callnumber(["status", "--check", ...to]);
    expect(well).toMatchObject({ code: 0, stderr: "" });
    expect(well.stdout).toMatch(/^CALLNUMBER OK - namespace main leases: mark 1, .* \| runs_used=1;.*\n$/);
    expect(await callnumber(["status", "--check", "--coordinator", "http://127.0.0.1:1"])).toMatchObject({
      code: 3,
      stdout: expect.stringMatching(/^CALLNUMBER UNKNOWN - .*coordinator_unreachable.*\n$/),
    });
    const none = await callnumber(["status", "--check", "--json", "--namespace", "nowhere", ...to]);
    expect(none.code).toBe(2);
    expect(JSON.parse(none.stdout)).toMatchObject({ state: "critical", exitCode: 2, figures: null });
  });

  test("--watch appends where there is no terminal, goes on without its coordinator, and ends on Ctrl-C with 0", async () => {
    const running = await serve(`sqlite:${join(await folderForTest(), "store.db")}`, "--create");
    const to = ["--coordinator", running.url];
    const watch = startCommand(["status", "--watch", "--interval", "1", ...to]);
    const seen = () => watch.output().stdout;
    await expect.poll(seen).toMatch(/no run leased yet[^]*no run leased yet/);
    await lease(running.url);
    await expect.poll(seen).toContain("high-water mark    run 1,");
    await running.stop();
    await expect.poll(seen).toContain("coordinator_unreachable");
    expect(await watch.stop()).toBe(0);
    expect(seen()).not.toContain(ESC);
  });

  test("--watch replaces the state before on a terminal, and leaves the last one", async ({ skip }) => {
    if ((await shell("command -v script")).code !== 0) skip("no `script` here, which gives a command a terminal");
    const { to } = await coordinator();
    const watch = startOnTerminal(80, "status", "--watch", "--interval", "1", ...to);
    await expect.poll(() => watch.output().stdout.split(`${ESC}[H`).length).toBeGreaterThan(2);
    watch.typeCtrlC();
    expect(await watch.ended()).toBe(0);
    const last = watch.output().stdout.split(`${ESC}[H${ESC}[2J`).at(-1) ?? "";
    expect(last.replaceAll(COLORS, "")).toMatch(/^namespace main on the sqlite store[^]*Ctrl-C ends/);
  });
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
