/**
 * R6, as the simulation found it: the store forgets that it was paused, leases on, is brought back to the paused state, and resumed by the
 * process that paused it, which knows of nothing else; and the one coordinator that remembers is started without its witness.
 */
import type { History } from "../history.js";

export const PAUSE_FORGOTTEN: History = {
  setting: {
    serverCount: 1,
    hostCount: 1,
    importerCount: 2,
    rate: 1,
    firstRun: 1,
    ageMs: 0,
    isOnLine: false,
    witness: "none",
    order: 0,
  },
  steps: [
    { kind: "crash", a: 0, b: 0, flow: 0 },
    { kind: "pause", a: 0, b: 0, flow: 0 },
    { kind: "backUp", a: 0, b: 0, flow: 0 },
    { kind: "crash", a: 23_005_512, b: 0, flow: 0 },
    { kind: "lease", a: 0, b: 0, flow: 0 },
    { kind: "wait", a: 203_956_476, b: 0, flow: 0 },
    { kind: "lease", a: 0, b: 0, flow: 0 },
    { kind: "restore", a: 0, b: 0, flow: 0 },
    { kind: "resume", a: 0, b: 0, flow: 0 },
    { kind: "restartCoordinator", a: 0, b: 0, flow: 0 },
    { kind: "lease", a: 282_150_243, b: 0, flow: 0 },
  ],
};
