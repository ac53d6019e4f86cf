/** Coordinators that lease in tight loops: each asks again as soon as it is answered, and the messages of all arrive in any order. */
import type { Host } from "./host.js";
import type { Violation } from "./importer.js";
import type { Variant } from "./variant.js";
import { THE_GUARD } from "./variants.js";
import { World } from "./world.js";

interface CrowdOptions {
  readonly nodeCount: number;
  readonly hostCount: number;
  /** Seed of the order in which messages arrive. */
  readonly order: number;
  readonly variant?: Variant;
}

interface Share {
  readonly leaseCount: number;
  /** Changes that were asked for, for each lease. */
  readonly tries: number;
}

export class Crowd {
  readonly #world: World;
  readonly #leaseCounts: number[];
  #isOver = false;

  private constructor(world: World) {
    this.#world = world;
    this.#leaseCounts = world.hosts.map(() => 0);
  }

  static async gather({ nodeCount, hostCount, order, variant = THE_GUARD }: CrowdOptions): Promise<Crowd> {
    const world = new World(
      {
        serverCount: nodeCount,
        hostCount,
        importerCount: hostCount,
        rate: 16,
        firstRun: 1,
        ageMs: 0,
        isOnLine: false,
        checkpoint: "own",
        order,
      },
      { variant, lifted: new Set() },
    );
    await world.begin();
    return new Crowd(world);
  }

  get violation(): Violation | undefined {
    return this.#world.tally.violation;
  }

  get shares(): readonly Share[] {
    return this.#world.hosts.map(({ store }, index) => {
      const leaseCount = this.#leaseCounts[index] as number;
      return { leaseCount, tries: store.changeCount / leaseCount };
    });
  }

  /** Lets so many messages arrive. */
  async lease(messageCount: number): Promise<void> {
    const world = this.#world;
    const loops = world.hosts.map((host) => this.#loop(host));
    await world.settle(messageCount);
    this.#isOver = true;
    await world.settle();
    await Promise.all(loops);
  }

  async #loop(host: Host): Promise<void> {
    const { importers, tally } = this.#world;
    const importer = importers[host.index] as World["importers"][number];
    while (!this.#isOver) {
      const before = tally.leases.length;
      await importer.ask(host, 1);
      if (importer.refusedWith === undefined && tally.leases.length > before)
        this.#leaseCounts[host.index] = (this.#leaseCounts[host.index] ?? 0) + 1;
    }
  }
}
