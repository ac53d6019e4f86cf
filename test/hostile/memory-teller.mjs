/**
 * Loaded into a coordinator's process before its own code (`node --import`): at SIGUSR2 it collects all garbage and writes what is still in
 * use, in bytes, into the file that `MEMORY_TOLD_IN` names. What a process takes from the machine is no measure of that: the allocator
 * keeps what was given back.
 */
import { renameSync, writeFileSync } from "node:fs";
import process from "node:process";
import { setImmediate as othersTurn } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

/** What the end of one object sets free goes with the next collection. */
const COLLECTIONS = 4;

const path = process.env["MEMORY_TOLD_IN"];
setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc");

process.on("SIGUSR2", async () => {
  for (let collection = 0; collection < COLLECTIONS; collection++) {
    collectGarbage();
    await othersTurn();
  }
  const { heapUsed, external, rss } = process.memoryUsage();
  writeFileSync(`${path}.part`, JSON.stringify({ heapBytes: heapUsed, externalBytes: external, residentBytes: rss }));
  renameSync(`${path}.part`, path);
});
