/** The ledger and the state at the terminal: `runs`, `export`, and `status`. */
import { PAGE_LIMIT_MAX, pathOf } from "@callnumber/protocol/api";
import { exportEndSchema, type LedgerEntry } from "@callnumber/protocol/schemas";
import { describe, expect, test } from "vitest";
import { callnumber, serve, shell, startOnTerminal } from "../../../test/processes/command.js";
import {
  done,
  embeddedStore,
  expectFailure,
  httpServer,
  jsonLines,
  jsonOf,
  lease,
  NOWHERE,
  newCoordinator,
  post,
  STATUS,
} from "./commands-for-test.js";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

const ESC = String.fromCharCode(27);
const COLORS = new RegExp(`${ESC}\\[[\\d;]*m`, "g");
const NO_TERMINAL = "no `script` here, which gives a command a terminal";
const hasTerminal = async () => (await shell("command -v script")).code === 0;

const leasesIn = (text: string) => jsonLines<LedgerEntry>(text);
const firstRunsOf = (leases: readonly LedgerEntry[]) => leases.map(({ firstRun }) => firstRun);

describe("runs", () => {
  test("runs applies every filter, and several at once", async () => {
    const { url, to } = await newCoordinator();
    const { nonce } = await lease(url, { name: "a", host: "h-1", labels: { archive: "lists", step: "1" } });
    await lease(url, { name: "a", host: "h-2", labels: { archive: "lists", step: "2" }, runCount: 3 });
    await lease(url, { name: "b", host: "h-2", labels: { archive: "notes" } });
    await post(url, pathOf("report", { namespace: "main", run: 1 }), { nonce, lastSequence: 5, state: "closed" });
    for (const [filters, expected] of [
      ["--holder a", [2, 1]],
      ["--host h-2", [5, 2]],
      ["--label archive=lists --label step=2", [2]],
      ["--state closed", [1]],
      ["--state unreported --holder a", [2]],
      ["--from-run 3 --to-run 4", [2]],
      ["--from 2020-01-01 --to 2020-01-02", []],
    ] as const) {
      expect(firstRunsOf(await jsonOf("runs", ...filters.split(" "), ...to)), filters).toEqual(expected);
    }
    expect((await done("runs", "--holder", "other", ...to)).stdout).toBe("no leases\n");
  });

  test("runs reads several pages, up to its limit", async () => {
    const { url } = await serve("memory:");
    for (let count = 0; count < PAGE_LIMIT_MAX + 2; count += 2) await Promise.all([lease(url), lease(url)]);
    const expected = Array.from({ length: PAGE_LIMIT_MAX + 1 }, (_, index) => PAGE_LIMIT_MAX + 2 - index);
    const runs = await jsonOf("runs", "--limit", String(PAGE_LIMIT_MAX + 1), "--coordinator", url);
    expect(firstRunsOf(runs as unknown as LedgerEntry[])).toEqual(expected);
  });

  test("runs fits the terminal, with colors; in a pipe it prints everything, without", async ({ skip }) => {
    if (!(await hasTerminal())) skip(NO_TERMINAL);
    const { url, to } = await newCoordinator();
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
    const piped = await done("runs", ...to);
    expect(piped.stdout).toContain(`${name}  archive-importer-07.dc2.example.net  4711  unreported  archive=lists\n`);
    expect(piped.stdout).not.toContain(ESC);
  });
});

describe("export", () => {
  test("export writes NDJSON with a last line that marks its end", async () => {
    const { url, to } = await newCoordinator();
    for (let count = 0; count < 3; count++) await lease(url);
    const { stdout, stderr } = await done("export", "--to-run", "2", ...to);
    expect(stderr).toBe("");
    const lines = leasesIn(stdout);
    expect(exportEndSchema.parse(lines.pop())).toEqual({ end: true, leaseCount: 2, upToVersion: 0, upToRun: 2 });
    expect(firstRunsOf(lines)).toEqual([1, 2]);
    await expectFailure(["export", "--namespace", "nowhere", ...to], 1, "namespace_not_found");
  });

  test("export --format csv writes a table that a spreadsheet reads, and in which no name is a formula", async () => {
    const { url, to } = await newCoordinator();
    const { nonce } = await lease(url, { name: "=1+1", labels: { list: 'a "b", c' } });
    await lease(url, { name: "plain", runCount: 2 });
    await post(url, pathOf("report", { namespace: "main", run: 1 }), { nonce, lastSequence: 5, state: "closed" });
    const { stdout } = await done("export", "--format", "csv", ...to);
    const [heading, first, second, ...rest] = stdout.split("\n");
    expect(heading).toBe(
      "version,firstRun,runCount,leasedAt,holder,host,pid,labels,coordinator,tokenId,state,lastRun,lastSequence,reportedAt",
    );
    expect(first).toMatch(
      /^0,1,1,[\d-]+T[\d:.]+Z,'=1\+1,mail-1,4711,"list=""a \\""b\\"", c""",[^,]+,,closed,1,5,[\d-]+T[\d:.]+Z$/,
    );
    expect(second).toMatch(/^0,2,2,[^,]+,plain,mail-1,4711,,[^,]+,,unreported,,,$/);
    expect(rest).toEqual([""]);
    expect((await done("export", "--format", "csv", "--to-run", "0", ...to)).stdout).toBe(`${heading}\n`);
    await expectFailure(["export", "--format", "csv", "--json", ...to], 2, "--json is NDJSON");
  });

  test("export to a full disk exits with 1 and the reason, and with 0 when its reader leaves", async () => {
    const { url } = await newCoordinator();
    await lease(url);
    const { code, stderr } = await shell(`callnumber export --coordinator ${url} > /dev/full`);
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^callnumber: ENOSPC: .*\n$/)]);
    expect(await shell(`callnumber export --coordinator ${url} | head -n 1`)).toMatchObject({ code: 0, stderr: "" });
  });

  // As a proxy ends a response whose source is gone.
  test.each(["cut", "ended without its end"])(
    "export that is %s exits with 1 and reports that it is incomplete",
    async (how) => {
      const url = await httpServer((_, response) => {
        response.writeHead(200, { "content-type": "text/plain" });
        response.write("{}\n", () => (how === "cut" ? response.destroy() : response.end()));
      });
      expect(await callnumber(["export", "--coordinator", url])).toMatchObject({
        code: 1,
        stdout: "{}\n",
        stderr: expect.stringMatching(/a part of it only.*export_incomplete/),
      });
    },
  );
});

describe("status", () => {
  test("status --check prints one line for scripts, and exits with the state", async () => {
    const { url, to } = await newCoordinator();
    await lease(url);
    const { stdout, stderr } = await done("status", "--check", ...to);
    expect(stderr).toBe("");
    expect(stdout).toMatch(/^CALLNUMBER OK - namespace main leases: mark 1, .* \| runs_used=1;.*\n$/);
    const unreachable = await callnumber(["status", "--check", "--coordinator", NOWHERE]);
    expect(unreachable).toMatchObject({
      code: 3,
      stdout: expect.stringMatching(/^CALLNUMBER UNKNOWN - .*coordinator_unreachable.*\n$/),
    });
    const missing = await callnumber(["status", "--check", "--json", "--namespace", "nowhere", ...to]);
    expect(missing.code).toBe(2);
    expect(JSON.parse(missing.stdout)).toMatchObject({ state: "critical", exitCode: 2, figures: null });
  });

  test("status --all-namespaces lists the namespaces that init made", async () => {
    const store = await embeddedStore();
    await done("init", "--store", store);
    const lists = ["--namespace", "lists", "--first-run", "200", "--rate", "4"];
    expect(await jsonOf("init", "--store", store, ...lists)).toMatchObject({
      namespace: "lists",
      firstRun: 200,
    });
    const { url } = await serve(store);
    const to = ["--coordinator", url];
    await done("next", ...to);
    const listed = await done("status", "--all-namespaces", ...to);
    expect(listed.stdout.trimEnd().split("\n")).toEqual([
      expect.stringMatching(/^NAMESPACE +RUNS USED +RUNS LEFT +RATE +GUARD$/),
      expect.stringMatching(/^lists +0 +1,073,741,624 +4 +active$/),
      expect.stringMatching(/^main +1 +1,073,741,822 +2 +active$/),
    ]);
    expect(await jsonOf("status", "--all-namespaces", ...to)).toMatchObject([
      { namespace: "lists", record: { firstRun: 200, ceilingRunsPerSecond: 4 }, guard: { state: "active" } },
      { namespace: "main" },
    ]);
    expect((await done("status", "--namespace", "lists", ...to)).stdout).toMatch(
      /first run 200\n.*no run leased yet\n.*runs used +0, leased or skipped, 0\.000 %\n.*run ceiling +rises by 4 a second, ends at \S+Z.*alarms +none\n$/s,
    );
    await expectFailure(["status", "--namespace", "other", ...to], 1, "namespace_not_found");
    expect(await jsonOf("status", ...to)).toMatchObject({
      namespace: "main",
      runsUsed: 1,
      capacity: { ceilingRunsPerSecond: 2, alarms: [], holders: [{ name: "callnumber-coordinator" }] },
    });
  });

  test("status labels a rate with the time that was measured, and shows numbers with separators", async () => {
    const { url: real, to } = await newCoordinator();
    await lease(real);
    expect((await done("status", ...to)).stdout).toMatch(/^ {2}last minute +1 run, too short a time for a forecast$/m);
    const explanation = 'namespace "main" is missing, and 65735 runs are leased. Run `callnumber --min-run 65735`';
    const guard = { ...STATUS.guard, state: "stopped", code: "namespace_lost", explanation };
    const rates = [12 * MINUTE_MS, HOUR_MS, DAY_MS].map((windowMs) => {
      return { windowMs, runs: 20_000, runsPerDay: 40_000, exhaustedAtMs: null };
    });
    const status = JSON.stringify({ ...STATUS, guard, rates });
    const url = await httpServer((request, response) => {
      if (request.url?.endsWith("/capacity")) response.statusCode = 500;
      response.end(status);
    });
    const { stdout } = await done("status", "--coordinator", url);
    expect(stdout).toContain("\n  last 12 minutes    20,000 runs, too short a time for a forecast\n");
    expect(stdout).toContain("\n  last hour          20,000 runs, 40,000 a day\n");
    expect(stdout).toContain("\n  last day           20,000 runs, 40,000 a day\n");
    expect(stdout).toContain("and 65,735 runs are leased. Run `callnumber --min-run 65735`\n");
    const checked = await callnumber(["status", "--check", "--coordinator", url]);
    expect(checked.stdout).toContain("and 65,735 runs are leased.");
    expect(checked.stdout).toContain("--min-run 65735`");
  });
});
