/** Importers in Python with a real coordinator, also one that is killed meanwhile. Guarantees: G9 (docs/guarantees.md). */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { decodeCallNumber, SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import type { LedgerEntry } from "@callnumber/protocol/schemas";
import { describe, expect, test } from "vitest";
import { callnumber, folderForTest, serve, serveProcess } from "../processes/command.js";
import { noPython, PYTHON_CLIENT, python, startPython } from "./python.js";

const IMPORTER = join(PYTHON_CLIENT, "tests", "importer.py");

const imported = (url: string, ...words: readonly string[]) =>
  python([IMPORTER, ...words], { CALLNUMBER_COORDINATOR: url });

async function leasesAt(url: string): Promise<readonly LedgerEntry[]> {
  const { stdout } = await callnumber(["runs", "--json", "--limit", "500", "--coordinator", url]);
  return JSON.parse(stdout) as LedgerEntry[];
}

/** By process id. */
function numbersIn(stdout: string): ReadonlyMap<string, readonly string[]> {
  const numbers = new Map<string, string[]>();
  for (const [, pid = "", number = ""] of stdout.matchAll(/^(\d+) (\w{8})$/gm)) {
    const ofProcess = numbers.get(pid) ?? [];
    ofProcess.push(number);
    numbers.set(pid, ofProcess);
  }
  return numbers;
}

describe.skipIf(noPython)("an importer in Python", () => {
  test("reports each lease that it used up, and at its end how far it got; its child has leases of its own", async () => {
    const { url } = await serve("memory:");
    const { status, stdout, stderr } = await imported(url, "40000", "--fork", "--spare-runs", "1");
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    const numbers = numbersIn(stdout);
    expect(numbers.size).toBe(2);
    const all = [...numbers.values()].flat();
    expect(new Set(all).size).toBe(all.length);
    const leases = await leasesAt(url);
    for (const [pid, made] of numbers) {
      const own = leases.filter(({ holder }) => holder.pid === Number(pid));
      const usedRuns = new Map<number, number>();
      for (const { run, sequence } of made.map((number) => decodeCallNumber(number))) usedRuns.set(run, sequence);
      // Each is in a lease of this process, and the report says how far it got.
      for (const [run, sequence] of usedRuns) {
        const lease = own.find(({ firstRun, runCount }) => firstRun <= run && run < firstRun + runCount);
        const { progress = null } = lease ?? {};
        expect(progress).not.toBeNull();
        if (progress?.run === run) expect(progress.lastSequence).toBe(sequence);
        else expect(sequence).toBe(SEQUENCE_COUNT - 1);
      }
      expect(
        own
          .map(({ progress }) => progress?.state)
          .toSorted()
          .at(0),
      ).toBe("closed");
    }
    const states = new Set(leases.map(({ progress }) => progress?.state));
    expect(states).toEqual(new Set(["exhausted", "closed"]));
  });

  test("goes on after kill -9 of its coordinator, and makes no number twice", async () => {
    const store = `sqlite:${join(await folderForTest(), "store.db")}`;
    const first = await serveProcess(store, "--create");
    const { port } = new URL(first.url);
    const importer = startPython([IMPORTER, "60000", "--pause-ms", "5"], { CALLNUMBER_COORDINATOR: first.url });
    let stdout = "";
    let stderr = "";
    importer.stdout.setEncoding("utf8").on("data", (text: string) => (stdout += text));
    importer.stderr.setEncoding("utf8").on("data", (text: string) => (stderr += text));
    const closed = once(importer, "close");
    while (!stdout.includes("\n")) await once(importer.stdout, "data");
    await first.stop("SIGKILL");
    const killedAtMs = Date.now();
    const second = await serveProcess(store, "--port", port);
    expect([(await closed)[0], stderr]).toEqual([0, ""]);
    const [numbers = []] = numbersIn(stdout).values();
    expect(numbers).toHaveLength(60_000);
    expect(new Set(numbers).size).toBe(60_000);
    const runs = new Set(numbers.map((number) => decodeCallNumber(number).run));
    const leases = await leasesAt(second.url);
    expect(leases.some(({ leasedAtMs }) => leasedAtMs < killedAtMs)).toBe(true);
    expect(leases.some(({ leasedAtMs }) => leasedAtMs > killedAtMs)).toBe(true);
    for (const run of runs) {
      expect(leases.some(({ firstRun, runCount }) => firstRun <= run && run < firstRun + runCount)).toBe(true);
    }
  });

  test("needs the token of a coordinator that requires one, and a namespace that exists", async () => {
    const tokens = join(await folderForTest(), "tokens");
    const created = await callnumber([
      "token",
      "create",
      "--tokens-file",
      tokens,
      "--role",
      "lease",
      "--namespace",
      "main",
    ]);
    const { url } = await serve("memory:", "--tokens-file", tokens);
    expect(await imported(url, "1000")).toMatchObject({ status: 1, stdout: "", stderr: /^unauthorized: / });
    const token = ["--token", created.stdout.trim()];
    expect(await imported(url, "1000", ...token)).toMatchObject({ status: 0, stderr: "" });
    expect(await imported(url, "1000", ...token, "--namespace", "other")).toMatchObject({ status: 1, stdout: "" });
  });

  test("rejects another store than the pinned one before its first number", async () => {
    const [one, other] = [await serve("memory:"), await serve("memory:")];
    const [, storeId = ""] = /^store (\S+)$/m.exec((await imported(one.url, "500")).stdout) ?? [];
    expect(await imported(one.url, "500", "--expected-store-id", storeId)).toMatchObject({ status: 0 });
    const rejected = await imported(other.url, "500", "--expected-store-id", storeId);
    expect(rejected).toMatchObject({ status: 1, stdout: "" });
    expect(rejected.stderr).toContain("store_mismatch: ");
  });

  test("the example of the README runs as it is printed", async () => {
    const { url } = await serve("memory:");
    const [, example = ""] =
      /```python\n(from callnumber.*?)```/s.exec(readFileSync(join(PYTHON_CLIENT, "README.md"), "utf8")) ?? [];
    const { status, stdout, stderr } = await python(["-c", example], { CALLNUMBER_COORDINATOR: url });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toMatch(/^\w{8} first\n\w{8} second\n\S{10,}\n$/);
  });
});
