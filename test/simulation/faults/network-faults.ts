/** What happens between the places: lost, late and doubled messages, cuts, and links of replicas that break. */
import { HOST_PLACE } from "../network.js";
import { MISHAPS } from "../simulated-store.js";
import type { World } from "../world.js";
import type { Kind } from "./kind.js";

export const NETWORK_FAULTS = {
  mishap: {
    group: "messages",
    weight: 10,
    play: (world, a, b) => {
      const host = a.one(world.hosts);
      const mishap = b.one(MISHAPS);
      world.tell(() => `the next of coordinator ${host.index + 1}: ${mishap}`);
      host.store.befall(mishap);
      return true;
    },
  },
  release: {
    group: "messages",
    weight: 3,
    play: (world) => {
      if (!world.network.release()) return false;
      world.tell(() => "what was late arrives");
      return true;
    },
  },
  /** Some servers and coordinators on one side, the others on the other. */
  cut: {
    group: "cuts",
    weight: 3,
    play: (world, a) => {
      const places = placesOf(world);
      const [one, other] = [places.filter(() => a.of(2) === 1), [] as number[]];
      other.push(...places.filter((place) => !one.includes(place)));
      if (one.length === 0 || other.length === 0) return false;
      world.tell(
        () => `a cut: ${one.map(nameOf).join(", ")} on one side, ${other.map(nameOf).join(", ")} on the other`,
      );
      for (const near of one) for (const far of other) world.network.cut(near, far);
      return true;
    },
  },
  heal: {
    group: "cuts",
    weight: 3,
    play: (world) => {
      if (!world.network.heal()) return false;
      world.tell(() => "all cuts heal");
      return true;
    },
  },
  /** A replica lags: its link stands still, and goes on when the same comes again. */
  lag: {
    group: "lag",
    weight: 4,
    play: (world, a) => {
      const replica = a.one(world.group.servers);
      const { follows, index } = replica;
      if (follows === undefined) return false;
      if (world.network.isCut(index, follows)) {
        world.tell(() => `server ${index + 1} hears of server ${follows + 1} again`);
        world.network.mend(index, follows);
      } else {
        world.tell(() => `server ${index + 1} hears nothing of server ${follows + 1} any more`);
        world.network.cut(index, follows);
      }
      return true;
    },
  },
  interrupt: {
    group: "lag",
    weight: 2,
    play: (world, a) => {
      const replica = a.one(world.group.servers);
      if (!world.group.interrupt(replica)) return false;
      world.tell(() => `the link of server ${replica.index + 1} breaks, and comes again`);
      return true;
    },
  },
} satisfies Record<string, Kind>;

function placesOf(world: World): readonly number[] {
  return [...world.group.servers.map(({ index }) => index), ...world.hosts.map(({ index }) => HOST_PLACE + index)];
}

function nameOf(place: number): string {
  return place < HOST_PLACE ? `server ${place + 1}` : `coordinator ${place - HOST_PLACE + 1}`;
}
