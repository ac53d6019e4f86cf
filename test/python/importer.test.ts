/** Importers in Python with a real coordinator. Guarantees: G9 (docs/guarantees.md). */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { decodeCallNumber, SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import { describe, expect, test } from "vitest";
import { GeneratingProcess } from "../faults/generating-process.js";
import { folderForTest, REPOSITORY, serve } from "../processes/command.js";
import { newAuthority } from "../tls/certificates.js";
import { writeTlsFiles } from "../tls/files.js";
import { imported, leasesAt, numbersIn } from "./importers.js";
import { noPython, PYTHON_CLIENT, python, startPython } from "./python.js";

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

  test("the importer of the fault suite notes its leases and forks, and both of its processes generate numbers", async () => {
    const { url } = await serve("memory:");
    const settings = { coordinator: url, namespace: "main", holder: { name: "faults" }, waitTimeoutMs: 30_000 };
    let written = "";
    const importer = new GeneratingProcess(
      { ...settings, takeCount: 512, pauseMs: 100, isInPython: true },
      { onWritten: (piece) => void (written += piece), onEvent: () => {} },
    );
    const numbers = () => written.match(/.{8}/g) ?? [];
    const runCount = () => new Set(numbers().map((number) => decodeCallNumber(number).run)).size;
    await expect.poll(() => importer.failure ?? runCount()).not.toBeOneOf([0, 1]);
    expect(importer.failure).toBeUndefined();
    await importer.stop();
    expect(new Set(numbers()).size).toBe(numbers().length);
    expect(new Set(importer.events.map(({ event, pid }) => `${event} of ${pid}`)).size).toBe(2);
    expect(importer.leaseCount).toBe(importer.events.length);
  });

  test("the example of the README runs as it is printed", async () => {
    const { url } = await serve("memory:");
    const [, example = ""] =
      /```python\n(from callnumber.*?)```/s.exec(readFileSync(join(PYTHON_CLIENT, "README.md"), "utf8")) ?? [];
    const { status, stdout, stderr } = await python(["-c", example], { CALLNUMBER_COORDINATOR: url });
    expect({ status, stderr }).toEqual({ status: 0, stderr: "" });
    expect(stdout).toMatch(/^\w{8} first\n\w{8} second\n\S{10,}\n$/);
  });

  test("stops with the scheme to use where it speaks HTTP to a TLS port", async () => {
    const files = writeTlsFiles(await folderForTest(), newAuthority().issue());
    const { url } = await serve("memory:", "--tls-certificate", files.certificate, "--tls-key", files.key);
    const script = "import callnumber; callnumber.Client(holder='test').next()";
    const { status, stderr } = await python(["-c", script], { CALLNUMBER_COORDINATOR: url.replace("https:", "http:") });
    expect(stderr).toMatch(/ClientError: http:\S+ can't be used: it speaks TLS\. Use https:\/\/ in the URL\n$/);
    expect(status).toBe(1);
  });

  test("the class of docs/how-to/get-numbers-over-http.md fails once for a lost connection, and then goes on", async () => {
    const page = readFileSync(join(REPOSITORY, "docs", "how-to", "get-numbers-over-http.md"), "utf8");
    const [, example = ""] = /```python\n(import http.client.*?)^print/ms.exec(page) ?? [];
    const first = await serve("memory:");
    const { port } = new URL(first.url);
    const loop = `import sys
for line in sys.stdin:
    try: print(*numbers.take(3), flush=True)
    except OSError as error: print("failed", flush=True)`;
    const caller = startPython(["-c", example.replace('"127.0.0.1"', `"127.0.0.1", ${port}`) + loop]);
    const lines = createInterface({ input: caller.stdout })[Symbol.asyncIterator]();
    const called = async () => {
      caller.stdin.write("\n");
      return (await lines.next()).value;
    };
    const NUMBERS = /^\w{8} \w{8} \w{8}$/;
    expect(await called()).toMatch(NUMBERS);
    await first.stop();
    const second = await serve("memory:", "--port", port);
    expect([await called(), await called()]).toEqual(["failed", expect.stringMatching(NUMBERS)]);
    await second.stop();
    expect([await called(), await called()]).toEqual(["failed", "failed"]);
    await serve("memory:", "--port", port);
    expect(await called()).toMatch(NUMBERS);
    caller.stdin.end();
  });
});
