/**
 * Replication as Redis does it: who follows whom, partial and full resynchronizations, acknowledgements, and what each changes in
 * replication ids, `sync_full` and `sync_partial_ok`. Knows nothing of namespaces.
 */
import { Server } from "./server.js";
import type { World } from "./world.js";

export class Group {
  readonly servers: readonly Server[];
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
    let ids = 0;
    const newId = () => `id${++ids}`;
    const seenEpoch = world.rules.variant.epochOf ?? ((epoch: string) => epoch);
    const { serverCount } = world.setting;
    this.servers = Array.from({ length: serverCount }, (_, index) => new Server(index, newId, seenEpoch));
  }

  at(index: number): Server {
    return this.servers[index % this.servers.length] as Server;
  }

  get masters(): readonly Server[] {
    return this.servers.filter(({ isUp, role }) => isUp && role === "master");
  }

  /** A master or replica has new writes: its replicas get them. */
  spread(server: Server): void {
    for (const replica of this.#followersOf(server)) this.#replicate(server, replica);
  }

  /** REPLICAOF NO ONE. Its old master goes on and is not informed. */
  promote(server: Server): void {
    this.#breakLink(server, "none");
    server.role = "master";
    server.follows = undefined;
    server.beginStream();
    this.#kickFollowers(server);
  }

  /** REPLICAOF another one: no master any more from this moment, whether the link comes to stand or not. */
  follow(server: Server, master: Server): void {
    this.#breakLink(server, "asking");
    server.role = "slave";
    server.follows = master.index;
    this.#ask(server);
  }

  /** The link of a replica breaks and comes again. */
  interrupt(replica: Server): boolean {
    if (replica.follows === undefined || replica.link !== "up") return false;
    this.#breakLink(replica, "asking");
    this.#ask(replica);
    return true;
  }

  /** The process ends: nothing is attached to it any more, and it to nothing. */
  end(server: Server): void {
    server.isUp = false;
    this.#breakLink(server, "none");
    server.acknowledged.length = 0;
    for (const follower of this.#followersOf(server)) this.#breakLink(follower, "asking");
  }

  /** After `start`: looks for its master, and is found by its replicas. */
  rejoin(server: Server, master: Server | undefined): void {
    server.follows = master?.index;
    if (master !== undefined) {
      server.link = "asking";
      this.#ask(server);
    }
    for (const follower of this.#followersOf(server)) this.#ask(follower);
  }

  #followersOf(server: Server): readonly Server[] {
    return this.servers.filter(({ follows, isUp }) => isUp && follows === server.index);
  }

  #breakLink(replica: Server, link: "none" | "asking"): void {
    if (replica.follows !== undefined) this.at(replica.follows).acknowledged[replica.index] = undefined;
    replica.linkLife++;
    replica.link = link;
    replica.isReplicating = false;
  }

  /** A stream that changes its name, or its past, is requested again by all its followers. */
  #kickFollowers(server: Server): void {
    for (const follower of this.#followersOf(server)) {
      this.#breakLink(follower, "asking");
      this.#ask(follower);
    }
  }

  /** PSYNC. */
  #ask(replica: Server): void {
    const life = ++replica.linkLife;
    const master = this.at(replica.follows as number);
    this.#world.network.carry(replica.index, master.index, "psync", () => {
      if (replica.linkLife !== life || !master.isUp || !this.#mayFollow(replica, master)) return;
      // A replica without its own master gives nothing on; it is asked again when it has one.
      if (master.role === "slave" && master.link !== "up") return;
      if (master.continuesFor(replica)) this.#continue(master, replica, life);
      else this.#copy(master, replica, life);
    });
  }

  /** Whether the link may come up; else the replica stays without one. */
  #mayFollow(replica: Server, master: Server): boolean {
    const { rules, isRepaired } = this.#world;
    return !rules.variant.sparesReturns || isRepaired || replica.generationHeard <= master.generation;
  }

  #continue(master: Server, replica: Server, life: number): void {
    const { replId } = master;
    master.syncPartial++;
    master.acknowledged[replica.index] = -1;
    replica.link = "loading";
    this.#world.network.carry(master.index, replica.index, "continue", () => {
      if (replica.linkLife !== life) return;
      replica.link = "up";
      if (replica.adoptStream(replId)) this.#kickFollowers(replica);
      else this.#askedBefore(replica);
      this.#acknowledge(master, replica, life);
      this.#replicate(master, replica);
    });
  }

  #copy(master: Server, replica: Server, life: number): void {
    master.syncFull++;
    const saved = master.saved();
    master.acknowledged[replica.index] = -1;
    replica.link = "loading";
    this.#world.network.carry(master.index, replica.index, "copy", () => {
      if (replica.linkLife !== life) return;
      replica.load(saved);
      replica.link = "up";
      this.#kickFollowers(replica);
      this.#acknowledge(master, replica, life);
      this.#replicate(master, replica);
    });
  }

  #askedBefore(server: Server): void {
    for (const follower of this.#followersOf(server)) if (follower.link === "asking") this.#ask(follower);
  }

  #replicate(master: Server, replica: Server): void {
    if (replica.link !== "up" || replica.isReplicating || replica.offset === master.offset) return;
    replica.isReplicating = true;
    const life = replica.linkLife;
    this.#world.network.carry(master.index, replica.index, "replicate", () => {
      if (replica.linkLife !== life) return;
      replica.isReplicating = false;
      for (const contents of master.log.slice(replica.offset + 1 - master.logStart)) replica.write(contents);
      this.#acknowledge(master, replica, life);
      this.spread(replica);
    });
  }

  #acknowledge(master: Server, replica: Server, life: number): void {
    const { offset } = replica;
    this.#world.network.carry(replica.index, master.index, "acknowledge", () => {
      const before = master.acknowledged[replica.index];
      if (replica.linkLife !== life || before === undefined || before >= offset) return;
      master.acknowledged[replica.index] = offset;
      this.#world.calls.acknowledged(master);
    });
  }
}
