/** What is found in a log: the greatest run of each store, whatever wrapped, tore, compressed or mixed its lines. */
import { writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { LEASE_RUN_COUNT_MAX, ledgerIdOf } from "@callnumber/protocol/wire";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ArchiveError } from "../src/archive/archive-error.js";
import type { LogScanResult } from "../src/archive/log-scan.js";
import { isLogFile, scanLog } from "../src/archive/scan-log.js";
import { temporaryFolder } from "./embedded-place.js";
import { logLine as line, LOGGED_STORE_ID as STORE_ID } from "./log-lines.js";

const OTHER_ID = "76543210-89ab-cdef-0123-456789abcdef.1.1793491200000.2";

const lease = (firstRun: number, fields: object = {}) => line("lease", { firstRun, runCount: 1, ...fields });

async function* chunksOf(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  for (let start = 0; start < bytes.length; start += size) yield Buffer.from(bytes.subarray(start, start + size));
}

function scanOf(text: string | Buffer, chunkBytes = 1_000): Promise<LogScanResult> {
  return scanLog({ source: chunksOf(Buffer.from(text as string), chunkBytes), never: [] });
}

describe("a log", () => {
  test("yields the last run of the greatest lease, and the line in which it stands", async () => {
    const { stores } = await scanOf(`${lease(3)}\n${lease(90, { runCount: 64 })}\n${lease(5)}\n`);
    expect(stores).toEqual([
      {
        namespace: "main",
        storeId: STORE_ID,
        leaseCount: 3,
        greatest: { ledgerId: 153, event: "lease", line: 2 },
      },
    ]);
  });

  test("takes a run of a later version for the greater one", async () => {
    const { stores } = await scanOf(`${lease(9_000)}\n${lease(3, { version: 1 })}\n`);
    expect(stores[0]?.greatest).toMatchObject({ ledgerId: ledgerIdOf(1, 3), line: 2 });
  });

  test("knows the mark by a jump, by a pin and by the beginning of the store, too", async () => {
    expect((await scanOf(line("init", { firstRun: 7 }))).stores[0]?.greatest.ledgerId).toBe(6);
    expect((await scanOf(line("jump", { before: 3, mark: 65_538 }))).stores[0]?.greatest.ledgerId).toBe(65_538);
    expect((await scanOf(line("pin", { ledgerId: 12 }))).stores[0]).toMatchObject({ leaseCount: 0 });
  });

  test("never mixes namespaces and store ids", async () => {
    const text = [
      lease(1),
      lease(2, { storeId: OTHER_ID }),
      lease(3, { namespace: "lists" }),
      lease(4, { storeId: OTHER_ID }),
    ];
    const { stores } = await scanOf(text.join("\n"));
    expect(stores.map(({ namespace, storeId, greatest }) => [namespace, storeId, greatest.ledgerId])).toEqual([
      ["main", STORE_ID, 1],
      ["main", OTHER_ID, 4],
      ["lists", STORE_ID, 3],
    ]);
  });

  test.each([
    ["behind a collector's prefix", `2026-11-21T10:00:00.1Z stdout F ${lease(8)}`],
    ["in Docker's JSON", JSON.stringify({ log: `${lease(8)}\n`, stream: "stdout" })],
    ["in journald's JSON", JSON.stringify({ MESSAGE: lease(8), _PID: "1" })],
  ])("is read %s", async (_, text) => {
    expect((await scanOf(`${text}\n`)).stores[0]?.greatest.ledgerId).toBe(8);
  });

  test("passes over other events, other programs' lines and words for people", async () => {
    const text = `listening on http://127.0.0.1:7300\n\n{"msg":"something"}\n${line("report", { run: 99 })}\n${lease(1)}\n`;
    expect(await scanOf(text)).toMatchObject({ otherLineCount: 4, damagedCount: 0, stores: [{ leaseCount: 1 }] });
  });

  test("counts what a coordinator wrote, and nothing else", async () => {
    const quiet = JSON.stringify({ level: 30, time: 1, coordinator: "vm", msg: "start" });
    expect(await scanOf(`${quiet}\n${lease(1)}\n{"msg":"start"}\nwords\n`)).toMatchObject({ eventCount: 2 });
    expect(await scanOf(`${lease(2 ** 30)}\n{"MESSAGE":null}\n`)).toMatchObject({ eventCount: 0, damagedCount: 2 });
  });

  test.each([
    ["is torn at its end", lease(7).slice(0, -9)],
    ["is torn at its beginning", `"x","holder":${lease(7)}},"msg":"lease"}`],
    ["has no run", line("lease", { runCount: 1 })],
    ["has a run beyond the run space", lease(2 ** 30)],
    ["ends beyond the run space", lease(2 ** 30 - 1, { runCount: 2 })],
    ["has more runs than a lease can have", lease(1, { runCount: LEASE_RUN_COUNT_MAX + 1 })],
    ["has a version that is none", lease(1, { version: 8 })],
    ["names no store", lease(1, { storeId: 5 })],
    ["names no namespace", lease(1, { namespace: "Not One" })],
    ["wraps nothing", '{"MESSAGE":null,"_PID":"1"}'],
    ["wraps an event as bytes", JSON.stringify({ MESSAGE: [...Buffer.from(lease(7))] })],
    ["wraps an event as fields", JSON.stringify({ log: JSON.parse(lease(7)) })],
    ["wraps an event under another name", JSON.stringify({ message: lease(7) })],
    ["wraps an event as another program's", JSON.stringify({ level: "info", msg: lease(7) })],
    ["is an array", "[1, 2]"],
    ["is an array of events", `[${lease(7)}]`],
    ["is longer than any event", `{"x":"${"y".repeat(70_000)}"}`],
  ])("tells a line that %s, with its number, and goes on", async (_, damaged) => {
    const { damagedCount, damaged: told, stores } = await scanOf(`${lease(1)}\n${damaged}\n${lease(2)}\n`);
    expect({ damagedCount, line: told[0]?.line }).toEqual({ damagedCount: 1, line: 2 });
    expect(stores).toMatchObject([{ leaseCount: 2, greatest: { ledgerId: 2, line: 3 } }]);
  });

  test("is the same in one piece, in any pieces, and compressed", async () => {
    const run = fc.integer({ min: 0, max: 2 ** 30 - 1 });
    await fc.assert(
      fc.asyncProperty(
        fc.array(run, { minLength: 1, maxLength: 30 }),
        fc.integer({ min: 1, max: 400 }),
        async (runs, size) => {
          const text = Buffer.from(`${runs.map((one) => lease(one)).join("\n")}\n`);
          const whole = await scanOf(text);
          expect(whole.stores[0]).toMatchObject({ leaseCount: runs.length, greatest: { ledgerId: Math.max(...runs) } });
          expect(await scanOf(text, size)).toEqual(whole);
          expect(await scanOf(gzipSync(text), size)).toEqual(whole);
        },
      ),
      { numRuns: 30 },
    );
  });

  test("whose compressed data end early counts up to there, and says so", async () => {
    const text = Array.from({ length: 5_000 }, (_, index) => lease(index + 1, { nonce: `nonce-${index * 7_919}` }));
    const bytes = gzipSync(text.join("\n"));
    const { stores, damaged } = await scanOf(bytes.subarray(0, bytes.length - 100));
    expect(damaged).toEqual([{ line: null, why: expect.stringContaining("end early") }]);
    expect(stores[0]?.leaseCount).toBeGreaterThan(1_000);
  });
});

describe("a file", () => {
  test("is known as a log by how it begins, compressed or not", async () => {
    const folder = await temporaryFolder(tmpdir());
    const fileOf = async (name: string, contents: string | Buffer) => {
      await writeFile(join(folder, name), contents);
      return join(folder, name);
    };
    expect(isLogFile(await fileOf("log", lease(1)), [])).toBe(true);
    expect(isLogFile(await fileOf("log.gz", gzipSync(lease(1))), [])).toBe(true);
    expect(isLogFile(await fileOf("numbers", "2VznWE2i\n"), [])).toBe(false);
    expect(isLogFile(await fileOf("numbers.gz", gzipSync("2VznWE2i\n")), [])).toBe(false);
    expect(isLogFile(join(folder, "missing"), [])).toBe(false);
    expect(isLogFile(folder, [])).toBe(false);
  });

  test("of the store itself is never opened", async () => {
    const path = join(await temporaryFolder(tmpdir()), "store.db");
    await writeFile(path, lease(1));
    expect(isLogFile(path, [path])).toBe(false);
    await expect(scanLog({ source: path, never: [path] })).rejects.toThrow(ArchiveError);
  });
});
