/** What attacks.test.ts plays, over TLS, and beside it attacks on the handshake: what they held comes back, and an importer over TLS does not feel it. */
import { setTimeout as pause } from "node:timers/promises";
import { expect, test } from "vitest";
import { ATTACKS, attack, connectionCountOf, together } from "./attacks.js";
import { CoordinatorBeside } from "./coordinator-beside.js";
import { manyOpened, manySpeaking } from "./many-callers.js";
import { Neighbour } from "./neighbour.js";
import { TLS_ATTACKS } from "./tls-attacks.js";
import { recordedHello } from "./tls-hello.js";

const COUNT = 50;
const ALL = [...ATTACKS, ...TLS_ATTACKS];
const CONNECTIONS_FEW = 100;
const KNOWN_AFTER_MS = 1_000;
/** The log, the store, and one that was told to go and has not yet. */
const DESCRIPTORS_TOLERATED = 8;

test("over TLS, attacks on requests and on handshakes: descriptors come back, no run is burnt, an importer goes on leasing", async () => {
  const parameters = ["--connections", String(connectionCountOf(ALL, COUNT) + CONNECTIONS_FEW)];
  const coordinator = await CoordinatorBeside.start({ share: 1, isEncrypted: true, parameters });
  const { descriptors, neighbourLeases } = await attack(
    together(ALL),
    coordinator,
    new Neighbour(coordinator.target),
    COUNT,
  );
  const [before, most] = descriptors;
  expect(most).toBeGreaterThan(before + 4 * COUNT);
  expect(neighbourLeases).toBeGreaterThan(0);
});

test("strangers who are in a handshake, before it or behind it make room for each other, and never cost a connection that leases", async () => {
  const parameters = ["--connections", String(CONNECTIONS_FEW)];
  const coordinator = await CoordinatorBeside.start({ share: 1, isEncrypted: true, parameters });
  const before = coordinator.descriptorCount;
  const tooMany = async () => {
    const { target } = coordinator;
    const hello = await recordedHello();
    const silent = await manyOpened(target, 2 * CONNECTIONS_FEW);
    const halfWay = await manyOpened(target, 2 * CONNECTIONS_FEW);
    for (const socket of halfWay) socket.write(hello);
    const behind = await manySpeaking(target, 2 * CONNECTIONS_FEW);
    await pause(100);
    expect(coordinator.descriptorCount).toBeLessThanOrEqual(before + CONNECTIONS_FEW + DESCRIPTORS_TOLERATED);
    // Over a connection of its own: there is room for whoever comes.
    await coordinator.mark();
    for (const socket of [...silent, ...halfWay, ...behind]) socket.destroy();
    return [];
  };
  const act = { name: "too many", act: tooMany };
  const neighbour = new Neighbour(coordinator.target);
  // In a quiet moment: from now on it is known as one that leases.
  await neighbour.during(() => pause(KNOWN_AFTER_MS));
  const { descriptors, neighbourLeases, neighbourConnections } = await attack(act, coordinator, neighbour, 1);
  expect(descriptors[1]).toBeGreaterThanOrEqual(before + CONNECTIONS_FEW);
  expect(neighbourLeases).toBeGreaterThan(0);
  expect(neighbourConnections).toBe(0);
});
