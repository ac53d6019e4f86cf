/**
 * A day of an operator, played with real processes: twenty importers in three namespaces, one of which crashes over and over; a
 * number from a complaint; an export; a ledger that is trimmed while the power goes; and everything is found again.
 */
import { watch } from "node:fs";
import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { decodeCallNumber } from "@callnumber/protocol/codec";
import { type LedgerEntry, ledgerIdOf } from "@callnumber/protocol/wire";
import { Redis } from "ioredis";
import { beforeEach, expect, test } from "vitest";
import { fillRedis } from "../../bench/filled-ledgers.js";
import { CHROMIUM, launchChromium, newPage, WITHOUT_CHROMIUM } from "../console/browser.js";
import { callnumber, folderForTest, type ServingProcess, serveProcess } from "../processes/command.js";
import { ownServerUnavailable, type RedisServer, startRedisServer } from "../redis/test-redis.js";
import { createWatchedDisk, type WatchedDisk, watchedDiskUnavailable } from "../redis/watched-disk.js";
import { Importer, type ImporterSettings } from "./importers.js";

const NAMESPACES = { lists: 8, letters: 7, news: 5 } as const;
type Namespace = keyof typeof NAMESPACES;
const CRASHING = { namespace: "letters", name: "letters-3" } as const;
/** Of ninety days, so that a trim takes some steps. */
const BACKLOG_LEASES = 8_600;
const RETENTION_DAYS = "30";

/** A look starts a process or reads what twenty have written. */
const LOOK_EVERY_MS = 500;
/** A safety net: on a busy machine the day is long. */
const DAY_ENDS_MS = 600_000;

beforeEach((context) => {
  const reason = ownServerUnavailable() ?? watchedDiskUnavailable();
  context.skip(reason !== undefined, reason);
});

test(
  "an operator sees what is wrong, finds who made a number, and loses nothing when the power goes",
  async () => {
    const folder = await folderForTest();
    const ledgerDir = join(folder, "ledger");
    await mkdir(ledgerDir);
    const disk = createWatchedDisk();
    const redis = await startRedisServer({
      config: { appendonly: "yes", appendfsync: "always" },
      preloads: [disk.preload],
    });
    const store = redis.storeUrl;
    for (const namespace of Object.keys(NAMESPACES)) {
      expect(
        await callnumber(["init", "--namespace", namespace, "--label", `archive=${namespace}`, "--store", store]),
      ).toMatchObject({ code: 0 });
    }
    const client = new Redis(redis.url);
    await fillRedis(client, "lists", BACKLOG_LEASES);
    client.disconnect();
    const witness = ["--witness-folder", join(folder, "witness")];
    let coordinator = await serveProcess(store, "--namespace", "lists", ...witness);
    const { url } = coordinator;
    const importers = twentyImporters(url, folder);
    for (const importer of importers) importer.start();

    await seenInMetrics(url);
    await seenInTerminal(url);
    await seenInConsole(url);
    await numberIsFound(url, importers);

    const exported = await exportedLedger(url, "lists");
    expect(exported.length).toBeGreaterThanOrEqual(BACKLOG_LEASES);

    expect(await coordinator.stop()).toBe(0);
    expect(
      await callnumber(["retention", "--days", RETENTION_DAYS, "--namespace", "lists", "--store", store, ...witness]),
    ).toMatchObject({ code: 0 });
    const trimming = ["--ledger-dir", ledgerDir];
    const again = () =>
      serveProcess(store, "--namespace", "lists", "--port", new URL(url).port, ...witness, ...trimming);
    coordinator = await again();
    await powerGoesInTheMiddle({ coordinator, redis, disk, ledgerDir });
    await redis.start();
    coordinator = await again();
    await expect.poll(() => trimsIn(coordinator), { interval: LOOK_EVERY_MS }).toHaveLength(1);

    // Everybody goes on, and what was exported before is there, each lease once.
    const before = await Promise.all(importers.map(async (importer) => (await importer.numbers()).length));
    await expect
      .poll(
        async () => {
          const counts = await Promise.all(importers.map(async (importer) => (await importer.numbers()).length));
          return counts.every((count, index) => count > (before[index] as number));
        },
        { interval: LOOK_EVERY_MS },
      )
      .toBe(true);
    await Promise.all(importers.map((importer) => importer.stop()));
    await everythingIsFound({ url, ledgerDir }, importers, exported);
    await numberIsFound(url, importers);
    expect(await coordinator.stop()).toBe(0);
  },
  DAY_ENDS_MS,
);

function twentyImporters(coordinator: string, folder: string): readonly Importer[] {
  return Object.entries(NAMESPACES).flatMap(([namespace, count]) =>
    Array.from({ length: count }, (_, index) => {
      const name = `${namespace}-${index}`;
      const settings: ImporterSettings = { coordinator, namespace, name, labels: { archive: namespace } };
      return new Importer(folder, name === CRASHING.name ? { ...settings, crashesAfter: 50 } : settings);
    }),
  );
}

async function seenInMetrics(url: string): Promise<void> {
  const alarms = async () =>
    (await (await fetch(`${url}/metrics`)).text())
      .split("\n")
      // Where the story takes long, 64 starts have come together, too.
      .filter(
        (line) => line.startsWith("callnumber_alarms{") && line.endsWith(" 1") && !line.includes("holder_restarts"),
      );
  await expect
    .poll(alarms, { interval: LOOK_EVERY_MS })
    .toEqual([expect.stringContaining(`namespace="${CRASHING.namespace}",name="holder_share"`)]);
}

async function seenInTerminal(url: string): Promise<void> {
  const at = ["--coordinator", url, "--namespace", CRASHING.namespace];
  const status = await callnumber(["status", ...at]);
  expect(status).toMatchObject({ code: 0, stdout: expect.stringMatching(/holder_share[\s\S]*letters-3/) });
  const check = await callnumber(["status", "--check", ...at]);
  expect(check).toMatchObject({ code: 1, stdout: expect.stringContaining(CRASHING.name) });
  expect((await callnumber(["status", "--check", "--coordinator", url, "--namespace", "news"])).code).toBe(0);
  const listed = await callnumber(["status", "--all-namespaces", "--coordinator", url]);
  for (const namespace of Object.keys(NAMESPACES)) expect(listed.stdout).toContain(`archive=${namespace}`);
}

async function seenInConsole(url: string): Promise<void> {
  if (CHROMIUM === undefined) return console.warn(WITHOUT_CHROMIUM);
  const browser = await launchChromium();
  try {
    const { page, wrongs } = await newPage(browser, new URL(url).origin);
    await page.goto(`${url}/console/#/${CRASHING.namespace}`);
    await page.getByText(CRASHING.name).first().waitFor();
    await page.getByRole("region", { name: "Alarms" }).getByText(CRASHING.name).first().waitFor();
    expect(wrongs()).toEqual([]);
  } finally {
    await browser.close();
  }
}

/** From eight characters to who made them, for one importer of each namespace. */
async function numberIsFound(url: string, importers: readonly Importer[]): Promise<void> {
  for (const namespace of Object.keys(NAMESPACES)) {
    const importer = importers.find(({ settings }) => settings.namespace === namespace) as Importer;
    const [number] = await importer.numbers();
    const complaint = `https://lists.example.org/message/${number}`;
    const found = await callnumber(["inspect", complaint, "--coordinator", url, "--namespace", namespace, "--json"]);
    const [answer] = JSON.parse(found.stdout) as readonly { lease: LedgerEntry }[];
    expect(answer).toMatchObject({ callNumber: number, lease: { holder: { name: importer.settings.name } } });
  }
}

async function exportedLedger(url: string, namespace: string): Promise<readonly LedgerEntry[]> {
  const at = ["--coordinator", url, "--namespace", namespace];
  const { code, stdout } = await callnumber(["export", ...at, "--format", "ndjson"]);
  expect(code).toBe(0);
  const lines = leasesIn(stdout);
  const end = lines.pop() as unknown as { end: true; leaseCount: number };
  expect(end).toMatchObject({ end: true, leaseCount: lines.length });
  return lines;
}

interface Stage {
  readonly coordinator: ServingProcess;
  readonly redis: RedisServer;
  readonly disk: WatchedDisk;
  readonly ledgerDir: string;
}

/** As soon as the first leases are written to a file, coordinator and Redis are gone, and what Redis had not synced. */
async function powerGoesInTheMiddle({ coordinator, redis, disk, ledgerDir }: Stage): Promise<void> {
  await new Promise<void>((resolve) => {
    const watcher = watch(ledgerDir, () => {
      watcher.close();
      resolve();
    });
  });
  coordinator.child.kill("SIGKILL");
  await disk.losePower(redis);
}

/** What the coordinator logged of its trims since it was started. */
function trimsIn({ output }: ServingProcess): readonly string[] {
  return output()
    .stdout.split("\n")
    .filter((line) => line.includes('"msg":"ledger_trimmed"'));
}

function leasesIn(text: string): LedgerEntry[] {
  const lines = text.split("\n").filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line) as LedgerEntry);
}

/** What was trimmed and what is in the store, each lease once: it may have been written twice. */
async function wholeLedger({ url, ledgerDir }: Place, namespace: string): Promise<readonly LedgerEntry[]> {
  const names = (await readdir(ledgerDir)).filter((name) => name.startsWith(`${namespace}.`));
  const texts = await Promise.all(names.map((name) => readFile(join(ledgerDir, name), "utf8")));
  const leases = [...texts.flatMap(leasesIn), ...(await exportedLedger(url, namespace))];
  return [...new Map(leases.map((lease) => [lease.nonce, lease])).values()];
}

interface Place {
  readonly url: string;
  readonly ledgerDir: string;
}

/** No number was made twice; the run of each is in the ledger, under the one who made it; and what was exported before is there. */
async function everythingIsFound(
  place: Place,
  importers: readonly Importer[],
  exported: readonly LedgerEntry[],
): Promise<void> {
  for (const namespace of Object.keys(NAMESPACES) as Namespace[]) {
    const ledger = await wholeLedger(place, namespace);
    const holders = new Map<number, string>();
    for (const { version, firstRun, runCount, holder } of ledger) {
      for (let run = firstRun; run < firstRun + runCount; run++) {
        const id = ledgerIdOf(version, run);
        if (holders.has(id)) expect.fail(`run ${run} of ${namespace} is in the ledger twice`);
        holders.set(id, holder.name);
      }
    }
    const seen = new Set<string>();
    for (const importer of importers.filter(({ settings }) => settings.namespace === namespace)) {
      for (const number of await importer.numbers()) {
        if (seen.has(number)) expect.fail(`${number} of ${namespace} was made twice`);
        seen.add(number);
        const { version, run } = decodeCallNumber(number);
        const holder = holders.get(ledgerIdOf(version, run));
        if (holder !== importer.settings.name)
          expect.fail(`${number} was made by ${importer.settings.name}; in the ledger its run has ${holder}`);
      }
    }
    expect(seen.size).toBeGreaterThan(0);
    if (namespace === "lists") {
      const nonces = new Set(ledger.map(({ nonce }) => nonce));
      expect(exported.filter(({ nonce }) => !nonces.has(nonce))).toEqual([]);
    }
  }
}
