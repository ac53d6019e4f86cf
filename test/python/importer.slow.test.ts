/** Importers in Python whose coordinator is killed, needs a token, or has another store. Guarantees: G9 (docs/guarantees.md). */
import { once } from "node:events";
import { join } from "node:path";
import { decodeCallNumber } from "@callnumber/protocol/codec";
import { describe, expect, test } from "vitest";
import { callnumber, folderForTest, serve, serveProcess } from "../processes/command.js";
import { IMPORTER, imported, leasesAt, numbersIn } from "./importers.js";
import { noPython, startPython } from "./python.js";

describe.skipIf(noPython)("an importer in Python", () => {
  test("goes on after kill -9 of its coordinator, and generates no number twice", async () => {
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
    expect(await imported(url, "1000")).toMatchObject({
      status: 1,
      stdout: "",
      stderr: expect.stringMatching(/^unauthorized: /),
    });
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
});
