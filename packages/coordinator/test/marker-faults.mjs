/**
 * Faults of the restart marker for a process of tests, at one exact writing: kill -9 before, within or after it, a folder that takes
 * no more, or one that lets nothing be changed. The writing itself stays what the product does: only the file system under it is another.
 */
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";

/** As long as the slots of the marker are, and nothing else that the process writes. */
const SLOT_BYTES = 1_024;

const full = () => Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" });
const die = () => process.kill(process.pid, "SIGKILL");

/** What happens at the writing, given how to do it for so many bytes. */
const FAULTS = {
  "killed before": () => die(),
  "killed within": (write) => {
    // The padding of a slot is the same each time: a whole mark would have been written.
    write(SLOT_BYTES / 4);
    die();
  },
  "killed after": (write) => {
    write(SLOT_BYTES);
    die();
  },
  full: () => {
    throw full();
  },
  "full and fixed": () => {
    for (const name of ["unlinkSync", "ftruncateSync"]) {
      fs[name] = () => {
        throw Object.assign(new Error("EPERM: operation not permitted"), { code: "EPERM" });
      };
    }
    syncBuiltinESMExports();
    throw full();
  },
};

/** `{ name, at }`: which fault, and at the how-many-th writing of a slot, from 1. */
export function breakMarker(fault) {
  if (fault === undefined) return;
  const writeSync = fs.writeSync;
  let writings = 0;
  fs.writeSync = (file, bytes, ...rest) => {
    const isSlot = bytes.length === SLOT_BYTES && bytes.includes("callnumber-restart");
    if (!isSlot || ++writings !== fault.at) return writeSync(file, bytes, ...rest);
    const [, , position] = rest;
    return FAULTS[fault.name]((byteCount) => writeSync(file, bytes, 0, byteCount, position));
  };
  syncBuiltinESMExports();
}
