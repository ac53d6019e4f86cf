/** What `callnumber recover --scan` costs: call numbers a second, and that its memory does not grow with them. Needs Linux's /proc. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { callNumbersOfRun, SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import { afterAll, expect, test } from "vitest";
import { callnumber, folderForTest, REPOSITORY } from "../test/processes/command.js";
import { machineInWords } from "./machine.js";
import { figure } from "./quantiles.js";
import { publish } from "./report.js";

const COMMAND = join(REPOSITORY, "packages", "coordinator", "bin", "callnumber.js");
const RUNS_IN_CHUNK = 4;
const TICKS_PER_SECOND = 100;

const rows: string[][] = [];

afterAll(() => {
  publish({
    bench: "archive-scan",
    sections: [
      {
        heading: "An archive read by recover --scan",
        sentences: [`${machineInWords()} The archive comes from a pipe.`],
        table: {
          columns: ["archive", "call numbers", "seconds", "seconds of CPU", "a second of CPU", "MiB at most"],
          rows,
        },
      },
    ],
  });
});

test.each([
  ["one call number a line", [], (callNumber: string) => `${callNumber}\n`],
  ["URLs", [], (callNumber: string) => `https://lists.example.org/message/${callNumber}\n`],
  ["CSV", ["--scan-column", "2"], (callNumber: string) => `17,${callNumber},"Re: a subject, with ""quotes"""\n`],
])("an archive of %s", async (name, more, row) => {
  const store = `sqlite:${join(await folderForTest(), "store.db")}`;
  await callnumber(["init", "--store", store]);
  const chunk = Buffer.from(runs().map(row).join(""));
  for (const millions of [1, 10, 100]) {
    const chunkCount = Math.round((millions * 1_000_000) / (RUNS_IN_CHUNK * SEQUENCE_COUNT));
    const child = spawn(process.execPath, [COMMAND, "recover", "--store", store, "--scan", "-", ...more], {
      stdio: ["pipe", "ignore", "inherit"],
    });
    const ended = once(child, "close");
    let cost = { peakMiB: 0, cpuSeconds: 0 };
    const startedAtMs = performance.now();
    for (let sent = 0; sent < chunkCount; sent++) {
      if (!child.stdin.write(chunk)) await once(child.stdin, "drain");
      cost = costOf(child.pid as number);
    }
    child.stdin.end();
    expect(await ended).toEqual([0, null]);
    const seconds = (performance.now() - startedAtMs) / 1_000;
    const { peakMiB, cpuSeconds } = cost;
    rows.push([
      name,
      `${millions} million`,
      figure(seconds),
      figure(cpuSeconds),
      `${figure(millions / cpuSeconds)} million`,
      String(peakMiB),
    ]);
  }
});

/** The same runs over and over: what is measured is the reading. */
function runs(): string[] {
  return Array.from({ length: RUNS_IN_CHUNK }, (_, run) => callNumbersOfRun(0, run + 1)).flatMap((spell) =>
    Array.from({ length: SEQUENCE_COUNT }, (_, sequence) => spell(sequence)),
  );
}

/** Until now, of a process that still runs: its start, some 0.3 s, included. */
function costOf(pid: number): { readonly peakMiB: number; readonly cpuSeconds: number } {
  const [, peakKiB] = /VmHWM:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return {
    peakMiB: Math.round(Number(peakKiB) / 1_024),
    cpuSeconds: (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND,
  };
}
