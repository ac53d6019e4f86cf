/** A coordinator that the importers of the suite do not ask: what it knows of its store, it knows from when it was last asked here. */
import type { CoordinatorProcess } from "./coordinator-process.js";
import { Importer } from "./load.js";
import { NAMESPACE, type World } from "./world.js";

const LEASES = 3;

export class Apart {
  #importers = 0;

  private constructor(
    readonly world: World,
    readonly coordinator: CoordinatorProcess,
  ) {}

  /** It ends with the world, at the latest. */
  static start(world: World, coordinator: CoordinatorProcess): Apart {
    world.coordinators.splice(world.coordinators.indexOf(coordinator), 1);
    world.defer(() => coordinator.kill());
    return new Apart(world, coordinator);
  }

  /** Resolves when an importer has leased from it, however often it was rejected before. */
  async lease(): Promise<void> {
    const { received, codes } = this.world;
    const name = `apart ${this.coordinator.url} ${this.#importers++}`;
    const asked = { coordinators: () => [this.coordinator.url], changesCoordinators: false };
    const importer = new Importer({ namespace: NAMESPACE, received, codes, runCount: 1, pauseMs: 0, name, ...asked });
    try {
      await this.world.until("a coordinator apart leases", () => importer.leaseCount >= LEASES);
    } finally {
      await importer.stop();
    }
  }
}
