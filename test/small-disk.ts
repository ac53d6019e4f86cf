/** A disk that a test fills: a tmpfs in a mount namespace of its own, which ends with the process that made it, however that ends. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync, rmSync, statSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { wayToMount } from "./mounted-file.js";

const PAGE_BYTES = 4_096;
const USER = ["--user", "--preserve-credentials"];

export interface SmallDisk {
  /** Words before a program that run it where the disk is. */
  readonly runIn: readonly string[];
  /** Where a program that runs there finds it. */
  readonly folder: string;
  /** Where the test finds it. */
  readonly seenFolder: string;
  /** Leaves at most so many bytes free; the next write of more than that fails with ENOSPC. */
  fill(freeBytes?: number): void;
  /** Gives back what `fill` took. */
  free(): void;
}

/** Why `smallDisk` can't work on this machine, for `ctx.skip(reason)`; undefined when it can. */
export function smallDiskUnavailable(): string | undefined {
  const way = wayToMount();
  return typeof way === "string" ? `no file system of its own can be made here: ${way}` : undefined;
}

/**
 * Mounts a disk of so many KiB at a folder that is there. It is gone when the test ends, or when what `defer` was given is called.
 * @throws Error when `smallDiskUnavailable()` gives a reason.
 */
export async function smallDisk(
  folder: string,
  sizeKib: number,
  defer: (end: () => Promise<void>) => void = onTestFinished,
): Promise<SmallDisk> {
  const way = wayToMount();
  if (typeof way === "string") throw new Error(way);
  const script = 'mount -t tmpfs -o "size=$1k" none "$0" && echo mounted && exec cat';
  const holder = spawn("unshare", [...way, "sh", "-c", script, folder, `${sizeKib}`]);
  // The end of its input ends it, too: that comes with the end of this process.
  const [closed, mounted] = [once(holder, "close"), once(holder.stdout, "data")];
  defer(async () => {
    holder.kill("SIGKILL");
    await closed;
  });
  await Promise.race([mounted, closed.then(() => Promise.reject(new Error(`${folder} was not mounted`)))]);
  const seenFolder = `/proc/${holder.pid}/root${folder}`;
  const filler = join(seenFolder, "filler");
  return {
    runIn: ["nsenter", "--target", `${holder.pid}`, ...(way.includes("--user") ? USER : []), "--mount"],
    folder,
    seenFolder,
    fill(freeBytes = 0) {
      const reserve = join(seenFolder, "reserve");
      writeFileSync(reserve, Buffer.alloc(freeBytes));
      writeUntilFull(filler);
      rmSync(reserve);
    },
    free: () => rmSync(filler),
  };
}

function writeUntilFull(path: string): void {
  const file = openSync(path, "a");
  try {
    for (;;) writeSync(file, Buffer.alloc(PAGE_BYTES));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOSPC") throw error;
  } finally {
    closeSync(file);
  }
  if (statSync(path).size === 0) throw new Error(`${path} took nothing of the disk`);
}
