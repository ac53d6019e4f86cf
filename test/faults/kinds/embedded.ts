/**
 * Faults of the embedded store: its files copied, moved, restored, lost, opened twice, and a machine that loses its power.
 * Guarantees: G11 (docs/guarantees.md).
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdtemp, readFile, rename, rm, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isMemoryBacked, thisMachine } from "../../../packages/coordinator/src/stores/sqlite/machine.js";
import { SqliteStore } from "../../../packages/coordinator/src/stores/sqlite/store.js";
import type { Store } from "../../../packages/coordinator/src/stores/store.js";
import { initBackdated } from "../../backdated.js";
import { mountUnavailable, spawnWithMounted } from "../../mounted-file.js";
import { recover } from "../commands.js";
import { Control, sqliteCounter } from "../control.js";
import type { CoordinatorProcess, SpawnProgram } from "../coordinator-process.js";
import { type Fault, type FaultSettings, faultOf } from "../run-fault.js";
import { oneOf } from "../seeded-random.js";
import { copyFolder, NAMESPACE, World } from "../world.js";

/** What strace makes fail. */
const CALLS = ["openat", "pread64", "pwrite64", "fsync", "fdatasync", "ftruncate", "fcntl", "fstat", "mmap", "unlink"];
const ERRORS = ["EIO", "ENOSPC", "EMFILE", "EACCES"];
/** A start makes fewer than so many of the most frequent one. */
const CALL_MAX = 60;
const FILES = ["store.db", "store.db-wal", "control.db"];

export const EMBEDDED: readonly Fault[] = [
  embeddedFault("the folder copied, and the copy opened", { expected: ["store_copied"] }, async (world) => {
    const copy = join(world.folder, "copy");
    await copyFolder(world.dataFolder, copy);
    await mustNotStart(world, "store_copied", join(copy, "store.db"));
    await rm(copy, { recursive: true });
  }),
  embeddedFault(
    "replaced by a copy, with other inodes, and recovered",
    { expected: ["store_copied"] },
    async (world) => {
      const copy = join(world.folder, "copy");
      await copyFolder(world.dataFolder, copy);
      await world.work();
      await world.killCoordinators();
      // In one step, because the control goes on.
      const away = `${world.dataFolder}-away`;
      await rename(world.dataFolder, away);
      await rename(copy, world.dataFolder);
      await rm(away, { recursive: true });
      await mustNotStart(world, "store_copied", world.path);
      await recover(world);
      await world.restart();
    },
  ),
  embeddedFault("opened twice", { isShort: true, expected: ["store_locked"] }, (world) =>
    mustNotStart(world, "store_locked", world.path),
  ),
  embeddedFault(
    "mounted as a single file under another name, and opened by it",
    { expected: ["store_unavailable", "store_locked"], unavailable: mountUnavailable },
    async (world) => {
      const folder = await mkdtemp(join(world.folder, "mounted-"));
      const mounted = { file: world.path, secondName: join(folder, "store.db") };
      await writeFile(mounted.secondName, "");
      await mustNotStart(world, "store_unavailable", mounted.secondName, spawnWithMounted(mounted));
      const spawnHidden = spawnWithMounted({ ...mounted, isProcHidden: true });
      await mustNotStart(world, "store_locked", mounted.secondName, spawnHidden);
    },
  ),
  embeddedFault("moved while it is open, and opened where it is", { expected: ["store_locked"] }, async (world) => {
    const folder = await mkdtemp(join(world.folder, "moved-"));
    const moved = join(folder, "store.db");
    world.coordinator.freeze();
    await rename(world.path, moved);
    await mustNotStart(world, "store_locked", moved);
    await rename(moved, world.path);
    world.coordinator.thaw();
  }),
  embeddedFault("restored in place by copying over it", { expected: ["epoch_changed"] }, async (world) => {
    const old = await saved(world);
    await world.work();
    await world.killCoordinators();
    await restore(world, old);
    await world.restart();
  }),
  embeddedFault("the log deleted", { expected: ["epoch_changed"] }, async (world) => {
    await world.work();
    await world.killCoordinators();
    await rm(`${world.path}-wal`);
    await world.restart();
  }),
  embeddedFault("the file away for a while", { expected: ["store_not_found"] }, async (world) => {
    await world.killCoordinators();
    const away = `${world.dataFolder}-away`;
    await rename(world.dataFolder, away);
    await mustNotStart(world, "store_not_found", world.path);
    await rm(world.dataFolder, { recursive: true, force: true });
    await rename(away, world.dataFolder);
    await world.restart();
  }),
  embeddedFault("power loss: the log cut at a random byte", { expected: ["epoch_changed"] }, async (world) => {
    const wal = `${world.path}-wal`;
    await world.work();
    await world.killCoordinators();
    const { size } = await stat(wal);
    await truncate(wal, Math.floor(world.random() * size));
    await world.loseMemory();
    await world.restart();
  }),
  embeddedFault(
    "a snapshot of the machine's disk restored",
    { isShort: true, expected: ["epoch_changed"] },
    async (world) => {
      const old = await saved(world);
      await world.work();
      await world.killCoordinators();
      await restore(world, old);
      await world.loseMemory();
      await world.restart();
    },
  ),
  embeddedFault(
    "a system call on the store's files that fails, then an older state restored",
    { unavailable: tracerUnavailable },
    async (world) => {
      await world.killCoordinators();
      const old = await contentsOf(world);
      const failing = spawnWithFailingCall(
        ["", "-wal", "-shm", ".lock"].map((end) => `${world.path}${end}`),
        world.random,
      );
      const coordinator = await world.addCoordinatorAt(world.path, failing).catch(() => undefined);
      if (coordinator !== undefined) {
        await leasesOrRejections(world);
        await world.removeCoordinator(coordinator);
      }
      if (world.random() < 0.5) await restore(world, old);
      await world.restart();
    },
  ),
];

/** On an embedded store: one coordinator, and a folder that can be copied, restored and lost like any other. */
class EmbeddedWorld extends World {
  readonly dataFolder = join(this.folder, "data");
  readonly path = join(this.dataFolder, "store.db");
  readonly storeUrl = `sqlite:${this.path}`;
  #markerFolder = "";

  async begin(): Promise<void> {
    const inMemory = thisMachine().markerFolders.find((folder) => isMemoryBacked(folder, thisMachine()));
    // Without such a directory each start needs a recovery: that is what the world shows then.
    this.#markerFolder = await mkdtemp(join(inMemory ?? this.folder, "callnumber-fault-"));
    this.defer(() => rm(this.#markerFolder, { recursive: true, force: true }));
    const storeId = await this.#using({ create: true }, (store) => initBackdated(store, NAMESPACE));
    await this.addCoordinator({ storeUrl: this.storeUrl, markerFolder: this.#markerFolder });
    await this.startLoad(storeId, new Control(sqliteCounter(join(this.dataFolder, "control.db"))));
  }

  get coordinator(): CoordinatorProcess {
    return this.coordinators[0] as CoordinatorProcess;
  }

  /** A second coordinator, on this store's file or on another one. */
  addCoordinatorAt(path: string, spawn?: SpawnProgram): Promise<CoordinatorProcess> {
    return this.addCoordinator({ storeUrl: `sqlite:${path}`, markerFolder: this.#markerFolder }, spawn);
  }

  /** As when the machine starts again: nothing that was in its memory is left. */
  async loseMemory(): Promise<void> {
    await rm(this.#markerFolder, { recursive: true });
    this.#markerFolder = await mkdtemp(`${this.#markerFolder}-`);
    this.defer(() => rm(this.#markerFolder, { recursive: true, force: true }));
  }

  /** Starts the coordinator that was killed. */
  async restart(): Promise<void> {
    await this.coordinator.start({ markerFolder: this.#markerFolder });
  }

  /** The coordinator must have ended. A copy is opened too: it is for `recover`. */
  override async onStore<T>(act: (store: Store) => Promise<T>): Promise<T> {
    return await this.#using({ create: false, acceptCopy: true }, act);
  }

  async #using<T>(how: { create: boolean; acceptCopy?: boolean }, act: (store: Store) => Promise<T>): Promise<T> {
    const machine = { markerFolders: [this.#markerFolder] };
    const store = new SqliteStore({ path: this.path, machine, ...how });
    try {
      return await act(store);
    } finally {
      await store.close();
    }
  }
}

function embeddedFault(name: string, settings: FaultSettings, inject: (world: EmbeddedWorld) => Promise<void>): Fault {
  return faultOf(name, settings, (options) => new EmbeddedWorld(options), inject);
}

/** @throws Error when a coordinator on that file does start, or fails for another reason. */
async function mustNotStart(world: EmbeddedWorld, code: string, path: string, spawn?: SpawnProgram): Promise<void> {
  const failure = await world.addCoordinatorAt(path, spawn).then(
    () => "it did start",
    (error: Error) => error.message,
  );
  if (!failure.includes(`${code}: `))
    throw new Error(`a coordinator on ${path} should have been rejected with ${code}: ${failure}`);
}

type Contents = ReadonlyMap<string, Buffer | undefined>;

/** The files as they are at one moment, as a backup of a running machine would have them. */
async function saved(world: EmbeddedWorld): Promise<Contents> {
  world.coordinator.freeze();
  const contents = await contentsOf(world);
  world.coordinator.thaw();
  return contents;
}

async function contentsOf(world: EmbeddedWorld): Promise<Contents> {
  const contents = new Map<string, Buffer | undefined>();
  for (const name of FILES) {
    contents.set(name, await readFile(join(world.dataFolder, name)).catch(() => undefined));
  }
  return contents;
}

/** Resolves when some runs were leased, or when importers had so many rejections, also of a coordinator that ended. */
async function leasesOrRejections(world: EmbeddedWorld): Promise<void> {
  const [leasesWanted, rejectionsWanted] = [world.received.leaseCount + 6, world.codes.sum + 200];
  const isDone = () => world.received.leaseCount >= leasesWanted || world.codes.sum >= rejectionsWanted;
  await world.until("leases or rejections", isDone);
}

/** Written over what is there: the inodes stay. */
async function restore(world: EmbeddedWorld, contents: Contents): Promise<void> {
  await rm(`${world.path}-shm`, { force: true });
  for (const [name, content] of contents) {
    const path = join(world.dataFolder, name);
    if (content === undefined) await rm(path, { force: true });
    else await writeFile(path, content);
  }
}

/** Why no program can run so on this machine; undefined when it can. */
function tracerUnavailable(): string | undefined {
  const { status, stderr, error } = spawnSync("strace", ["-o", "/dev/null", "true"]);
  return status === 0 ? undefined : `strace: ${error?.message ?? String(stderr).trim()}`;
}

/** The k-th call of one kind on the files fails, and perhaps every later one. The program ends with its tracer. */
function spawnWithFailingCall(files: readonly string[], random: () => number): SpawnProgram {
  const [call, error] = [oneOf(random, CALLS), oneOf(random, ERRORS)];
  const when = `${1 + Math.floor(random() * CALL_MAX)}${random() < 0.5 ? "" : "+"}`;
  const inject = `inject=${call}:error=${error}:when=${when}`;
  const paths = files.flatMap((file) => ["-P", file]);
  const words = ["-f", "-o", "/dev/null", ...paths, "-e", `trace=${call}`, "-e", inject];
  return (program, own, options) =>
    spawn("strace", [...words, "setpriv", "--pdeathsig", "KILL", program, ...own], options);
}
