/**
 * The checkpoints of a coordinator that runs, on a file system that really fails: importers of two namespaces keep their connections, and
 * no checkpoint holds what belongs to another one.
 * Guarantees: G8 (docs/guarantees.md).
 */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { openStore } from "../packages/coordinator/src/stores/open-store.js";
import { parseStoreUrl } from "../packages/coordinator/src/stores/store-url.js";
import { requestAfter } from "../packages/coordinator/test/leasing-crowd.js";
import { initBackdated } from "./backdated.js";
import { folderForTest, serveProcessWith } from "./processes/command.js";
import { sharedRedis } from "./redis/test-redis.js";

const NAMESPACES = ["lists", "mail"];
/** Makes a tmpfs for few files at the path, in a mount namespace of its own, and runs what follows. */
const IN_SMALL_FOLDER = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o nr_inodes=12 none "$0" && exec "$@"'];

/** One connection, over which it leases until the test ends. */
class ImporterWithConnection {
  readonly ports = new Set<number | undefined>();
  readonly codes: string[] = [];
  leaseCount = 0;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 });

  constructor(url: string, namespace: string) {
    const stopping = new AbortController();
    const working = (async () => {
      while (!stopping.signal.aborted) {
        await this.#lease(new URL(`/v1/namespaces/${namespace}/leases`, url), namespace);
        await delay(20);
      }
    })();
    onTestFinished(async () => {
      stopping.abort();
      await working;
      this.#agent.destroy();
    });
  }

  async #lease(url: URL, name: string): Promise<void> {
    const body = { ...requestAfter(undefined), holder: { name, host: "test", pid: 1, labels: {} } };
    const headers = { "content-type": "application/json" };
    const sent = request(url, { method: "POST", agent: this.#agent, headers }).end(JSON.stringify(body));
    try {
      const [answer] = await once(sent, "response");
      this.ports.add(answer.socket.localPort);
      const { code } = JSON.parse(await text(answer)) as { code?: string };
      if (code === undefined) this.leaseCount++;
      else this.codes.push(code);
    } catch (error) {
      this.codes.push((error as NodeJS.ErrnoException).code ?? String(error));
    }
  }
}

interface Served {
  readonly importers: readonly ImporterWithConnection[];
  /** Resolves when every importer has leased after this call. */
  untilLeased(): Promise<void>;
  /** As the coordinator sees it. */
  readonly folder: string;
  readonly storeIds: ReadonlyMap<string, string>;
}

/** A coordinator with checkpoints in `folder`, and an importer for each namespace. */
async function served(folder: string, runIn: readonly string[] = []): Promise<Served> {
  const { storeUrl } = sharedRedis();
  const { store } = await openStore(parseStoreUrl(storeUrl), { create: false });
  const storeIds = new Map<string, string>();
  for (const namespace of NAMESPACES) storeIds.set(namespace, await initBackdated(store, namespace));
  await store.close();
  const words = ["--checkpoint-dir", folder, "--log-level", "silent"];
  const { url, child } = await serveProcessWith({ runIn }, storeUrl, ...words);
  const all = NAMESPACES.map((namespace) => new ImporterWithConnection(url, namespace));
  const seen = runIn.length === 0 ? folder : `/proc/${child.pid}/root${folder}`;
  const untilLeased = async () => {
    const before = all.map(({ leaseCount }) => leaseCount);
    await expect
      .poll(() => all.every(({ leaseCount }, index) => leaseCount > (before[index] as number) + 1))
      .toBe(true);
  };
  return { importers: all, untilLeased, folder: seen, storeIds };
}

function expectOwnStoreIds({ folder, storeIds }: Served): void {
  for (const [namespace, storeId] of storeIds) {
    const names = readdirSync(folder).filter((name) => name.includes(`.${namespace}.`) && name.endsWith(".checkpoint"));
    expect(names).toHaveLength(1);
    expect(readFileSync(join(folder, names[0] as string), "utf8")).toContain(storeId);
  }
}

test("importers go on leasing over their connections when the checkpoint directory is removed", async () => {
  const folder = join(await folderForTest(), "checkpoints");
  const world = await served(folder);
  await world.untilLeased();
  // At once: a directory into which a file comes while it is emptied can't be removed.
  renameSync(folder, `${folder}-removed`);
  await world.untilLeased();
  expectOwnStoreIds(world);
  for (const { ports, codes } of world.importers) expect({ ports: ports.size, codes }).toEqual({ ports: 1, codes: [] });
});

test("importers are rejected over their connections while the disk takes no new file, and lease when it does again", async ({
  skip,
}) => {
  const folder = join(await folderForTest(), "checkpoints");
  mkdirSync(folder);
  const [program = "", ...rest] = [...IN_SMALL_FOLDER, folder, "true"];
  const tried = spawnSync(program, rest, { encoding: "utf8" });
  if (tried.status !== 0) skip(`no file system of its own can be made here: ${tried.stderr ?? tried.error}`);
  const world = await served(folder, [...IN_SMALL_FOLDER, folder]);
  await world.untilLeased();
  const fillers: string[] = [];
  expect(() => {
    for (;;) {
      const filler = join(world.folder, `filler-${fillers.length}`);
      writeFileSync(filler, "");
      fillers.push(filler);
    }
  }).toThrow("ENOSPC");
  // A checkpoint that has its place is written all the same, until a new file is due.
  await expect.poll(() => world.importers.every(({ codes }) => codes.includes("checkpoint_unavailable"))).toBe(true);
  for (const filler of fillers) rmSync(filler);
  await world.untilLeased();
  expectOwnStoreIds(world);
  for (const { ports, codes } of world.importers) {
    expect({ ports: ports.size, codes: [...new Set(codes)] }).toEqual({ ports: 1, codes: ["checkpoint_unavailable"] });
  }
});
