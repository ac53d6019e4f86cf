/** An importer process: asks a coordinator for runs, one request at a time, and knows its last one and the receipt for it. */
import type { Lease } from "@callnumber/protocol/wire";
import type { Host } from "./host.js";
import { CoordinatorError, ledgerIdOf } from "./product.js";
import { BOUNDS, NAMESPACE, type World } from "./world.js";

export class Importer {
  readonly name: string;
  /** The last error, until a lease succeeds again. */
  refusedWith: CoordinatorError | undefined;
  readonly #world: World;
  #lastRun: number | null = null;
  #receipt: string | null = null;
  /** Counts the requests: an answer to an earlier one is nobody's. */
  #asked = 0;

  constructor(
    readonly index: number,
    world: World,
  ) {
    this.name = `importer ${index + 1}`;
    this.#world = world;
  }

  /** Gives up on what it asked before, if that is still under way. Resolves when the answer is there; never, when none comes. */
  async ask(host: Pick<Host, "coordinator" | "index" | "life" | "nowMs">, runCount: number): Promise<void> {
    const world = this.#world;
    const asked = ++this.#asked;
    const { life } = host;
    try {
      const lease = await host.coordinator.lease(NAMESPACE, {
        runCount,
        nonce: `nonce-of-importer-${this.index}`,
        holder: { name: this.name, host: "mail", pid: this.index + 1, labels: {} },
        lastRun: this.#lastRun,
        receipt: this.#receipt,
        // On the same host, by the same clock.
        sentAtMs: host.nowMs,
      });
      // An answer to a killed process's request can't reach anybody.
      if (host.life === life) this.#receive(lease, asked, host);
    } catch (error) {
      world.tally.refuse(this.name, error);
      if (!(error instanceof CoordinatorError)) return;
      const { code } = error;
      world.refusals.set(code, (world.refusals.get(code) ?? 0) + 1);
      world.tell(() => `${this.name} is refused by coordinator ${host.index + 1}: ${code}`);
      if (asked === this.#asked) this.refusedWith = error;
    }
  }

  #receive(lease: Lease, asked: number, host: Pick<Host, "index">): void {
    const { tally, time, storeId } = this.#world;
    const { version, firstRun, runCount } = lease;
    const lastRun = firstRun + runCount - 1;
    const words = `${this.name} by coordinator ${host.index + 1}`;
    this.#world.tell(
      () => `${words} gets runs ${firstRun} to ${lastRun}${version === 0 ? "" : ` of version ${version}`}`,
    );
    const isWaiting = asked === this.#asked;
    tally.receive(lease, time.nowMs, BOUNDS.epsMs, words, isWaiting ? this.#lastRun : undefined);
    // An importer takes no run of another store.
    if (!isWaiting || lease.storeId !== storeId) return;
    this.#lastRun = ledgerIdOf(version, lastRun);
    this.#receipt = lease.receipt;
    this.refusedWith = undefined;
  }
}
