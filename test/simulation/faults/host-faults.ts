/** What happens to coordinators: killed at any await, started with and without their witness, stopped, pointed elsewhere. */
import { HOST_PLACE } from "../network.js";
import type { Kind } from "./kind.js";

const WITNESSES = ["kept", "kept", "lost", "damaged"] as const;

export const HOST_FAULTS = {
  restartCoordinator: {
    group: "hosts",
    weight: 5,
    play: (world, a, b) => {
      const host = a.one(world.hosts);
      const fate = b.one(WITNESSES);
      const forgets = fate !== "kept" || host.folderKnowsLess;
      if (forgets && !world.limits.mayForget(host)) return false;
      world.tell(() => `coordinator ${host.index + 1} is killed and started again, its witness ${fate}`);
      if (fate === "lost") host.loseWitness();
      if (fate === "damaged") host.damageWitness();
      host.restart();
      return true;
    },
  },
  reroute: {
    group: "routes",
    weight: 5,
    play: (world, a, b) => {
      const host = a.one(world.hosts);
      const server = b.one(world.group.servers);
      if (host.route === server.index) return false;
      world.tell(() => `coordinator ${host.index + 1} is pointed at server ${server.index + 1}`);
      host.route = server.index;
      return true;
    },
  },
  stopCoordinator: {
    group: "stops",
    weight: 2,
    play: (world, a) => {
      const host = a.one(world.hosts);
      if (!world.network.stop(HOST_PLACE + host.index)) return false;
      world.tell(() => `coordinator ${host.index + 1} is stopped (SIGSTOP)`);
      return true;
    },
  },
  continueCoordinator: {
    group: "stops",
    weight: 3,
    play: (world) => {
      const stopped = world.hosts.find(({ index }) => world.network.isStopped(HOST_PLACE + index));
      if (stopped === undefined) return false;
      world.tell(() => `coordinator ${stopped.index + 1} goes on (SIGCONT)`);
      return world.network.goOn(HOST_PLACE + stopped.index);
    },
  },
} satisfies Record<string, Kind>;
