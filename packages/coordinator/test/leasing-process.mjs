/**
 * A process for tests to kill, to starve and to start again: opens an embedded store and does what its standard input says.
 * Argument: JSON with `path`, `bounds`, and what the tests change: `machine` (`markerFolders`), `markerFault`, `diesAtAnswer`,
 * `touches`; with `initRate` it makes file and namespace first.
 * Input, a line each: `lease N` leases N times one run, all at once; `forever N` the same repeatedly; `read` reads the
 * database file as any program would; `stop`.
 * Output, a line each: `made` with the store id, `open` with how the start was judged, a run for each lease that was answered, `done` after each `lease`, and
 * `refused CODE`, after which it ends.
 */
import { readFileSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { breakMarker } from "./marker-faults.mjs";

const options = JSON.parse(process.argv[2]);
const { path, bounds, machine, markerFault, diesAtAnswer, touches, initRate } = options;
let answers = 0;
breakMarker(markerFault);

// Only now: what is broken must be broken before it is imported.
const { Coordinator } = await import("../dist/coordinator.js");
const { SqliteStore } = await import("../dist/stores/sqlite/store.js");

const holder = { name: "test", host: "h", pid: process.pid, labels: {} };
const request = { runCount: 1, nonce: "nonce-0123456789", holder, lastRun: null, proof: null };

try {
  const create = initRate !== undefined;
  const store = new SqliteStore({ path, create, machine });
  const coordinator = new Coordinator({ store, name: "leasing-process", bounds });
  if (create) print(`made ${(await coordinator.initNamespace("main", { rate: initRate })).storeId}`);
  print(`open ${store.restarts.get("main")}`);
  if (touches) coordinator.startHeartbeat();
  for await (const line of createInterface({ input: process.stdin })) {
    if (line === "stop") break;
    await obey(line, coordinator);
  }
  await coordinator.stopHeartbeat();
  await store.close();
} catch (error) {
  if (error.code === undefined) throw error;
  print(`refused ${error.code}`);
}
process.exit(0);

/** Before the process goes on, so that a kill takes nothing back that was printed; waits for a reader who is slower than the leasing. */
function print(text) {
  for (;;) {
    try {
      writeSync(1, `${text}\n`);
      return;
    } catch (error) {
      if (error.code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
    }
  }
}

async function obey(line, coordinator) {
  const [word, count] = line.split(" ");
  if (word === "read") readFileSync(path);
  if (word === "read") print("done");
  if (word === "lease") {
    await leaseAtOnce(coordinator, Number(count));
    print("done");
  }
  if (word === "forever") for (;;) await leaseAtOnce(coordinator, Number(count));
}

async function leaseAtOnce(coordinator, count) {
  const outcomes = await Promise.allSettled(Array.from({ length: count }, () => leaseOne(coordinator)));
  const refused = outcomes.find(({ status }) => status === "rejected");
  if (refused === undefined) return;
  // Once more: a store that failed must go on refusing.
  print(`refused ${refused.reason.code}`);
  await leaseOne(coordinator);
}

async function leaseOne(coordinator) {
  for (;;) {
    try {
      const { firstRun } = await coordinator.lease("main", { ...request, sentAtMs: Date.now() });
      if (++answers === diesAtAnswer) process.kill(process.pid, "SIGKILL");
      return print(firstRun);
    } catch (error) {
      // After a skip, until the line has risen.
      if (error.code !== "run_ceiling_reached") throw error;
      await delay(error.retryAfterMs);
    }
  }
}
