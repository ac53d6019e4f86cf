/** The files of an archived ledger: any tool reads them, a lost or damaged one is noticed, and one lease costs one block. */
import { spawnSync } from "node:child_process";
import { statSync } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import type { LedgerEntry } from "@callnumber/protocol/wire";
import fc from "fast-check";
import { describe, expect, inject, test } from "vitest";
import { folderForTest } from "../../../test/processes/command.js";
import { NODE_DISK } from "../src/ledger-archive/archive-disk.js";
import {
  archiveFileOf,
  BLOCK_LEASES,
  FILE_LEASES_MAX,
  leasesInFile,
  linesInBlock,
} from "../src/ledger-archive/archive-file.js";
import { type ArchiveName, nameIn } from "../src/ledger-archive/archive-name.js";
import { NamespaceArchive } from "../src/ledger-archive/namespace-archive.js";
import { archivedLease, archiveIn, idOf, STORE_UUID, writeArchiveFile } from "./archive-files.js";
import { NAMESPACE } from "./commands-for-test.js";
import { randomLedger } from "./random-ledgers.js";

const UNAVAILABLE = { code: "ledger_archive_unavailable" };

describe("an archive file", () => {
  test("unpacks no more of a block than leases take", () => {
    const member = gzipSync(Buffer.alloc(64 * 1024 * 1024));
    expect(() => linesInBlock("x.jsonl.gz", member)).toThrow(expect.objectContaining(UNAVAILABLE));
  });

  test("holds random leases as they were, also for zcat, which knows nothing of the index", async () => {
    await fc.assert(
      fc.asyncProperty(randomLedger(300), async (leases) => {
        fc.pre(leases.length > 0);
        const range = { kind: "segment", first: 1, last: idOf(leases.at(-1)) } as const;
        const { name, bytes } = await archiveFileOf(range, leases, 0);
        expect(nameIn(name.name)).toEqual(name);
        expect(await leasesInFile(name, bytes)).toEqual(leases);
        const { stdout, status } = spawnSync("zcat", { input: bytes, encoding: "utf8", maxBuffer: 2 ** 26 });
        expect(status).toBe(0);
        expect(
          stdout
            .trimEnd()
            .split("\n")
            .map((line) => JSON.parse(line)),
        ).toEqual(leases);
      }),
      { seed: inject("seed"), numRuns: 10, endOnFailure: true },
    );
  });

  test("as large as can be has an index that fits", async () => {
    const leases = Array.from({ length: FILE_LEASES_MAX }, (_, index) =>
      archivedLease(2 ** 30 - FILE_LEASES_MAX + index),
    );
    const { name, bytes } = await archiveFileOf({ kind: "segment", first: 1, last: idOf(leases.at(-1)) }, leases, 2e12);
    expect(await leasesInFile(name, bytes)).toHaveLength(FILE_LEASES_MAX);
  });

  test("is never the same as another one of the same leases", async () => {
    const range = { kind: "segment", first: 1, last: 5 } as const;
    const made = await Promise.all([1, 2].map(() => archiveFileOf(range, [archivedLease(5)], 0)));
    expect(new Set(made.map(({ name }) => name.name)).size).toBe(2);
  });

  test("tells of each of its bytes when it is damaged", async () => {
    const leases = Array.from({ length: BLOCK_LEASES + 1 }, (_, index) => archivedLease(index + 1));
    const { name, bytes } = await archiveFileOf({ kind: "segment", first: 1, last: BLOCK_LEASES + 1 }, leases, 0);
    for (let at = 0; at < bytes.length; at += 7) {
      const damaged = Buffer.from(bytes);
      damaged[at] = (damaged[at] as number) ^ 1;
      await expect(leasesInFile(name, damaged), `byte ${at}`).rejects.toMatchObject(UNAVAILABLE);
    }
    for (const length of [0, 1, 30, bytes.length - 1]) {
      await expect(leasesInFile(name, bytes.subarray(0, length))).rejects.toMatchObject(UNAVAILABLE);
    }
  });
});

describe("an archived ledger", () => {
  /** Three segments of 200 leases, each second run a lease of two runs; two unfinished ones are told of later. */
  async function archived() {
    const root = await folderForTest();
    const leases = Array.from({ length: 600 }, (_, index) =>
      archivedLease(3 * index + 2, { runCount: 2, ended: index !== 250 && index !== 300 }),
    );
    const names = [];
    for (const at of [0, 200, 400]) {
      const after = at === 0 ? 0 : idOf(leases[at - 1]);
      names.push(await writeArchiveFile(root, leases.slice(at, at + 200), { after }));
    }
    return { root, leases, names, through: idOf(leases.at(-1)), archive: archiveIn(root) };
  }

  test("finds the lease of every run, and none where a run was skipped", async () => {
    const { archive, leases, through } = await archived();
    for (const [index, lease] of leases.entries()) {
      expect(await archive.find(3 * index + 1, through)).toEqual(lease);
      expect(await archive.find(3 * index + 2, through)).toEqual(lease);
      expect(await archive.find(3 * index + 3, through)).toBeUndefined();
    }
    expect(await archive.find(0, through)).toBeUndefined();
  });

  test("is listed both ways, from anywhere, across files", async () => {
    const { archive, leases, through } = await archived();
    for (const [from, limit] of [
      [0, 5],
      [599, 250],
      [600, 100],
      [1_800, 30],
      [1_801, 1_000],
      [1, 1],
      [40, 700],
    ] as const) {
      const below = leases
        .filter((lease) => idOf(lease) < from)
        .reverse()
        .slice(0, limit);
      const above = leases.filter((lease) => idOf(lease) > from).slice(0, limit);
      expect(await archive.below(from, limit, through)).toEqual(below);
      expect(await archive.after(from, limit, through)).toEqual(above);
    }
  });

  test("finds the first lease of a time or later", async () => {
    const { archive, leases, through } = await archived();
    const times = leases.map((lease) => lease.leasedAtMs);
    for (const timeMs of [0, ...times, ...times.map((time) => time + 1)]) {
      const expected = leases.find((lease) => lease.leasedAtMs >= timeMs);
      expect(await archive.firstSince(timeMs, through)).toEqual(expected);
    }
  });

  test("tells of a lease what a late file says, also of one that came after the folder was looked at", async () => {
    const { root, archive, leases, through } = await archived();
    expect(await archive.find(752, through)).toEqual(leases[250]);
    const late = [archivedLease(752, { runCount: 2 }), archivedLease(902, { runCount: 2 })];
    await writeArchiveFile(root, late, { kind: "late" });
    expect(await archive.find(752, through)).toEqual(late[0]);
    expect(await archive.find(901, through)).toEqual(late[1]);
    const all = leases.map((lease) => late.find((told) => idOf(told) === idOf(lease)) ?? lease);
    expect(await archive.after(0, 1_000, through)).toEqual(all);
    expect(await archive.below(10_000, 1_000, through)).toEqual(all.toReversed());
  });

  test("tells a lease that stands in a late file alone as leased, in its place", async () => {
    const { root, archive, leases, through } = await archived();
    expect(await archive.find(603, through)).toBeUndefined();
    const alone = [archivedLease(603), archivedLease(1_200)];
    await writeArchiveFile(root, [alone[0], archivedLease(902, { runCount: 2 }), alone[1]] as LedgerEntry[], {
      kind: "late",
    });
    expect(await archive.find(603, through)).toEqual(alone[0]);
    expect(await archive.find(600, through)).toBeUndefined();
    const all = leases.map((lease) => (idOf(lease) === 902 ? archivedLease(902, { runCount: 2 }) : lease));
    all.splice(201, 0, alone[0] as LedgerEntry);
    all.splice(401, 0, alone[1] as LedgerEntry);
    for (const limit of [1, 7, 1_000]) {
      const up: LedgerEntry[] = [];
      for (let page = all.slice(0, 1); page.length > 0; up.push(...page))
        page = [...(await archive.after(up.length === 0 ? 0 : idOf(up.at(-1)), limit, through))];
      expect(up).toEqual(all);
      const down: LedgerEntry[] = [];
      for (let page = all.slice(0, 1); page.length > 0; down.push(...page))
        page = [...(await archive.below(down.length === 0 ? 10_000 : idOf(down.at(-1)), limit, through))];
      expect(down).toEqual(all.toReversed());
    }
  });

  test("tells each lease once, in its later account, where files overlap after a restore", async () => {
    const { root, archive, leases, through } = await archived();
    const again = leases.slice(150, 260).map((lease) => archivedLease(idOf(lease), { runCount: 2 }));
    await writeArchiveFile(root, again, { after: idOf(leases[149]) });
    const all = leases.map((lease, index) => (index === 250 ? (again[100] as LedgerEntry) : lease));
    expect(await archive.after(0, 1_000, through)).toEqual(all);
    expect(await archive.below(10_000, 1_000, through)).toEqual(all.toReversed());
    expect(await archive.find(752, through)).toEqual(again[100]);
  });

  test("of which a file is missing tells nothing that the file could have held, and the rest as before", async () => {
    const { root, archive, leases, names, through } = await archived();
    await rm(join(root, NAMESPACE, STORE_UUID, names[1]?.name ?? ""));
    for (const id of [602, 603, 800, 1_199]) {
      await expect(archive.find(id, through), `run ${id}`).rejects.toMatchObject(UNAVAILABLE);
      await expect(archiveIn(root).find(id, through), `run ${id}`).rejects.toMatchObject(UNAVAILABLE);
    }
    expect(await archive.find(599, through)).toEqual(leases[199]);
    expect(await archive.find(1_202, through)).toEqual(leases[400]);
    await expect(archive.below(1_801, 201, through)).rejects.toMatchObject(UNAVAILABLE);
    await expect(archive.after(0, 201, through)).rejects.toMatchObject(UNAVAILABLE);
    await expect(archive.firstSince(leases[300]?.leasedAtMs ?? 0, through)).rejects.toMatchObject(UNAVAILABLE);
    expect(await archive.below(1_801, 200, through)).toHaveLength(200);
    expect(await archive.after(0, 200, through)).toHaveLength(200);
  });

  test("whose newest file is missing is not taken for a shorter one", async () => {
    const { root, archive, names, through } = await archived();
    await rm(join(root, NAMESPACE, STORE_UUID, names[2]?.name ?? ""));
    await expect(archive.find(through, through)).rejects.toMatchObject(UNAVAILABLE);
    await expect(archive.below(10_000, 1, through)).rejects.toMatchObject(UNAVAILABLE);
    await expect(archive.firstSince(8e15, through)).rejects.toMatchObject(UNAVAILABLE);
  });

  test("of which a block or an index is damaged tells nothing of what stands there", async () => {
    const { root, names, leases, through } = await archived();
    const path = join(root, NAMESPACE, STORE_UUID, names[0]?.name ?? "");
    const bytes = await readFile(path);
    for (const at of [40, bytes.length - 60]) {
      const damaged = Buffer.from(bytes);
      damaged[at] = (damaged[at] as number) ^ 4;
      await writeFile(path, damaged);
      await expect(archiveIn(root).find(2, through)).rejects.toMatchObject(UNAVAILABLE);
      expect(await archiveIn(root).find(1_202, through)).toEqual(leases[400]);
    }
  });

  test("of which a damaged file is put right is read again, also where it was read while it was damaged", async () => {
    const { root, through, leases, names } = await archived();
    const archive = archiveIn(root);
    const path = join(archive.folder, (names[0] as ArchiveName).name);
    const bytes = await readFile(path);
    const damaged = Buffer.from(bytes);
    for (const at of [20, Math.floor(bytes.length / 4)]) damaged[at] = (damaged[at] as number) ^ 4;
    await writeFile(path, damaged);
    for (const lease of leases.slice(0, 200)) await archive.find(idOf(lease), through).catch(() => {});
    await expect(archive.find(2, through)).rejects.toMatchObject(UNAVAILABLE);
    await writeFile(path, bytes);
    for (const lease of leases.slice(0, 200)) expect(await archive.find(idOf(lease), through)).toEqual(lease);
  });

  test("whose folder is not there is unavailable; one in which nothing was archived yet is empty", async () => {
    const root = await folderForTest();
    expect(await archiveIn(root).find(5, 0)).toBeUndefined();
    expect(await archiveIn(root).below(5, 5, 0)).toEqual([]);
    await expect(archiveIn(join(root, "missing")).find(5, 0)).rejects.toMatchObject(UNAVAILABLE);
  });

  test("reads an index and three blocks to find a lease, and neither again for what stands around it", async () => {
    const { root, through } = await archived();
    const read: number[] = [];
    const disk = {
      ...NODE_DISK,
      readEnd: async (...parameters: Parameters<typeof NODE_DISK.readEnd>) => {
        const end = await NODE_DISK.readEnd(...parameters);
        read.push(end.bytes.length / end.fileBytes);
        return end;
      },
      readPart: async (path: string, begin: number, byteCount: number) => {
        read.push(byteCount / statSync(path).size);
        return await NODE_DISK.readPart(path, begin, byteCount);
      },
    };
    const archive = new NamespaceArchive(disk, root, NAMESPACE, STORE_UUID);
    await archive.find(2, through);
    expect(read).toHaveLength(2);
    await archive.find(5, through);
    await archive.find(3 * BLOCK_LEASES + 2, through);
    expect(await archive.after(2, 2 * BLOCK_LEASES - 1, through)).toHaveLength(2 * BLOCK_LEASES - 1);
    expect(read).toHaveLength(2);
    await archive.find(9 * BLOCK_LEASES + 2, through);
    expect(read).toHaveLength(3);
    expect(read[2]).toBeLessThan(1);
  });
});
