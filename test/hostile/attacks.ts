/**
 * Callers who want the coordinator to run out of something: sockets, memory, patience, time. Over TLS where it speaks that. Shared by the short
 * and the long form.
 */
import type { Socket } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { expect } from "vitest";
import type { CoordinatorBeside } from "./coordinator-beside.js";
import { manySpeaking, speaking } from "./many-callers.js";
import type { Neighbour } from "./neighbour.js";
import { opened } from "./raw-client.js";
import { leaseBody, request, type Target } from "./row.js";

export interface Attack {
  readonly name: string;
  /** Connections that it opens, of each that it is asked for. */
  readonly connectionsEach: number;
  /** Resolves when the coordinator should have got rid of it, whether or not the attackers are still there. */
  readonly act: (target: Target, count: number) => Promise<readonly Socket[]>;
}

const FLOOD = 4;
const DYING = 2;
/** As many as may wait on a connection. */
const ASKED_AT_ONCE = 16;
const DRIBBLE_EVERY_MS = 500;
/** Longer than a request may take, and than the coordinator needs to notice. */
const PATIENCE_MS = 18_000;

/** A safety net for a busy machine: the last of them came later than the first. */
const GIVEN_BACK_WITHIN_MS = 60_000;

const right = (target: Target) => request(target, { body: leaseBody() });

export const ATTACKS: readonly Attack[] = [
  {
    name: "slow-loris: heads, a byte now and then",
    connectionsEach: 1,
    act: (target, count) => dribble(target, count, 1),
  },
  {
    name: "slow bodies, a byte now and then",
    connectionsEach: 1,
    act: (target, count) => dribble(target, count, right(target).length - 60),
  },
  {
    name: "a flood of connections that say nothing",
    connectionsEach: FLOOD,
    act: async (target, count) => {
      const sockets = await manySpeaking(target, FLOOD * count);
      await pause(PATIENCE_MS);
      return sockets;
    },
  },
  {
    name: "strangers who ask for much and read nothing of it",
    connectionsEach: 1,
    act: async (target, count) => {
      const sockets = await manySpeaking(target, count);
      const page = request(target, { path: "/openapi.json", keepsAlive: true });
      for (const socket of sockets) socket.pause().write(Buffer.concat(Array(ASKED_AT_ONCE).fill(page)));
      await pause(PATIENCE_MS);
      for (const socket of sockets) socket.destroy();
      return [];
    },
  },
  {
    name: "a flood of questions without a token",
    connectionsEach: 1,
    act: async (target, count) => {
      const sockets = await manySpeaking(target, count);
      const question = request(target, { body: leaseBody(), authorization: null, keepsAlive: true });
      const endsAtMs = performance.now() + PATIENCE_MS / 3;
      while (performance.now() < endsAtMs) {
        for (const socket of sockets) if (socket.writable && !socket.writableNeedDrain) socket.write(question);
        await pause(50);
      }
      for (const socket of sockets) socket.destroy();
      return [];
    },
  },
  {
    name: "callers that die in the middle of a request",
    connectionsEach: DYING,
    act: async (target, count) => {
      for (let index = 0; index < DYING * count; index++) {
        const connection = await opened(target);
        const socket = await speaking(target, connection);
        const bytes = right(target);
        socket.write(bytes.subarray(0, 1 + ((index * 37) % (bytes.length - 2))));
        if (index % 4 === 0) await pause(2);
        if (index % 2 === 0) connection.resetAndDestroy();
        else socket.destroy();
      }
      return [];
    },
  },
];

/** Connections of these attacks together. */
export function connectionCountOf(attacks: readonly Attack[], count: number): number {
  return attacks.reduce((sum, { connectionsEach }) => sum + connectionsEach * count, 0);
}

export interface AttackFigures {
  readonly name: string;
  readonly descriptors: readonly [before: number, most: number, after: number];
  readonly neighbourLeases: number;
  /** That the other caller opened meanwhile. */
  readonly neighbourConnections: number;
}

/** Throws when descriptors do not come back, the other caller is refused, or a run is burnt. */
export async function attack(
  { name, act }: Pick<Attack, "name" | "act">,
  coordinator: CoordinatorBeside,
  neighbour: Neighbour,
  count: number,
): Promise<AttackFigures> {
  const before = {
    descriptors: coordinator.descriptorCount,
    mark: await coordinator.mark(),
  };
  let most = before.descriptors;
  const look = setInterval(() => {
    most = Math.max(most, coordinator.descriptorCount);
  }, 50);
  const { result: sockets, worked } = await neighbour.during(() => act(coordinator.target, count));
  clearInterval(look);
  // The attackers hold on; the coordinator has let go.
  await expect
    .poll(() => coordinator.descriptorCount, { timeout: GIVEN_BACK_WITHIN_MS, interval: 50 })
    .toBeLessThanOrEqual(before.descriptors + 2);
  expect(coordinator.isAlive, name).toBe(true);
  const after = coordinator.descriptorCount;
  for (const socket of sockets) socket.destroy();
  expect(worked.failures, name).toEqual([]);
  expect((await coordinator.mark()) - before.mark, name).toBe(worked.runCount);
  return {
    name,
    descriptors: [before.descriptors, most, after],
    neighbourLeases: worked.runCount,
    neighbourConnections: worked.connectionCount,
  };
}

/** Sends the first bytes at once, and the rest one by one. */
async function dribble(target: Target, count: number, sentAtOnce: number): Promise<readonly Socket[]> {
  const bytes = right(target);
  const sockets = await manySpeaking(target, count);
  for (const socket of sockets) socket.write(bytes.subarray(0, sentAtOnce));
  const endsAtMs = performance.now() + PATIENCE_MS;
  for (let sent = sentAtOnce; performance.now() < endsAtMs; sent++) {
    // Never the last byte: then it would be a request.
    const byte = bytes.subarray(Math.min(sent, bytes.length - 2), Math.min(sent, bytes.length - 2) + 1);
    if (sent < bytes.length - 1) for (const socket of sockets) if (socket.writable) socket.write(byte);
    await pause(DRIBBLE_EVERY_MS);
  }
  return sockets;
}

/** All of them begin in the same moment. */
export function together(attacks: readonly Attack[]): Pick<Attack, "name" | "act"> {
  return { name: "all", act: async (...given) => (await Promise.all(attacks.map(({ act }) => act(...given)))).flat() };
}
