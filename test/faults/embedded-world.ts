/** A world on an embedded store: one coordinator, and a folder that can be copied, restored and lost like any other. */
import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { isMemoryBacked, thisMachine } from "../../packages/coordinator/src/stores/sqlite/machine.js";
import { SqliteStore } from "../../packages/coordinator/src/stores/sqlite/store.js";
import type { Store } from "../../packages/coordinator/src/stores/store.js";
import { initBackdated } from "../backdated.js";
import { sqliteControl } from "./control.js";
import type { CoordinatorProcess, SpawnProgram } from "./coordinator-process.js";
import { BOUNDS, NAMESPACE, World } from "./world.js";

export class EmbeddedWorld extends World {
  #markerFolder = "";

  async begin(): Promise<void> {
    const inMemory = thisMachine().markerFolders.find((folder) => isMemoryBacked(folder, thisMachine()));
    // Without such a directory each start needs a recovery: that is what the world shows then.
    this.#markerFolder = await mkdtemp(join(inMemory ?? this.folder, "callnumber-fault-"));
    this.defer(() => rm(this.#markerFolder, { recursive: true, force: true }));
    const storeId = await this.#using({ create: true }, (store) => initBackdated(store, NAMESPACE));
    await this.addCoordinator({ storeUrl: this.storeUrl, markerFolder: this.#markerFolder });
    await this.startLoad(
      storeId,
      sqliteControl(() => join(this.dataFolder, "control.db")),
    );
  }

  get dataFolder(): string {
    return join(this.folder, "data");
  }

  get path(): string {
    return join(this.dataFolder, "store.db");
  }

  get storeUrl(): string {
    return `sqlite:${this.path}`;
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
    const store = new SqliteStore({ path: this.path, bounds: BOUNDS, machine, ...how });
    try {
      return await act(store);
    } finally {
      await store.close();
    }
  }
}
