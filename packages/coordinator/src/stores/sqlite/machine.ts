/**
 * What the embedded store reads of its machine: the id of this boot, the offset of the wall clock to the monotonic clock, and the
 * kind of a file system.
 */
import { fstatSync, readFileSync, statfsSync } from "node:fs";
import process, { hrtime, platform } from "node:process";

/** Tests replace parts of it. */
export interface Machine {
  /** The id of this boot; undefined where the system has none: then every start of the store is recovered. */
  readonly bootId: string | undefined;
  /** Wall clock minus a clock that only ever runs on, ms. */
  readonly clockOffsetMs: () => number;
  /** Folders for the restart marker that no backup holds, the best first; those that are not memory-backed are skipped. */
  readonly markerFolders: readonly string[];
  /** When an open file was last changed or renamed, ns: no program can set it, only a clock. */
  readonly changedNsOf: (file: number) => bigint;
  /** `f_type` of statfs(2) for a path that exists. */
  readonly fileSystemTypeOf: (path: string) => number;
}

export function thisMachine(): Machine {
  return {
    bootId: bootId(),
    clockOffsetMs: () => offsetBetween(Date.now, monotonicMs),
    // The second is where XDG_RUNTIME_DIR points on every system that sets it.
    markerFolders: process.geteuid === undefined ? [] : ["/dev/shm", `/run/user/${process.geteuid()}`],
    changedNsOf: (file) => fstatSync(file, { bigint: true }).ctimeNs,
    fileSystemTypeOf: (path) => statfsSync(path).type,
  };
}

/** Whether a path is on a file system in memory, as far as can be seen. The numbers are those of Linux, the only system with a boot id. */
export function isMemoryBacked(path: string, { fileSystemTypeOf }: Pick<Machine, "fileSystemTypeOf">): boolean {
  try {
    return MEMORY_FILE_SYSTEMS.has(fileSystemTypeOf(path) >>> 0);
  } catch {
    return false;
  }
}

/**
 * The name of the network file system that a path is on; undefined for a local one. FUSE counts as one: it may be a disk or an SSH
 * connection. Undefined on other systems than Linux, where the numbers mean something else.
 */
export function networkFileSystemOf(
  path: string,
  { fileSystemTypeOf }: Pick<Machine, "fileSystemTypeOf">,
): string | undefined {
  return platform === "linux" ? NETWORK_FILE_SYSTEMS.get(fileSystemTypeOf(path) >>> 0) : undefined;
}

/** From statfs(2) and the kernel's linux/magic.h. */
const MEMORY_FILE_SYSTEMS: ReadonlySet<number> = new Set([
  0x01021994, // tmpfs
  0x858458f6, // ramfs
]);

const NETWORK_FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x6969, "NFS"],
  [0x517b, "SMB"],
  [0xff534d42, "CIFS"],
  [0xfe534d42, "SMB2"],
  [0x65735546, "FUSE (sshfs, s3fs, virtiofs, …)"],
  [0x01021997, "9P"],
  [0x00c36400, "Ceph"],
  [0x5346414f, "AFS"],
  [0x6b414653, "AFS"],
  [0x73757245, "Coda"],
  [0x564c, "NCP"],
  [0x0bd00bd0, "Lustre"],
  [0x47504653, "GPFS"],
  [0x01161970, "GFS2"],
  [0x7461636f, "OCFS2"],
  [0x19830326, "BeeGFS"],
  [0x786f4256, "VirtualBox shared folder"],
  [0xbacbacbc, "VMware shared folder"],
]);

const BOOT_ID_PATH = "/proc/sys/kernel/random/boot_id";
const BOOT_ID_PATTERN = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

function bootId(): string | undefined {
  try {
    const text = readFileSync(BOOT_ID_PATH, "utf8").trim();
    return BOOT_ID_PATTERN.test(text) ? text : undefined;
  } catch {
    return undefined;
  }
}

/** The same for all processes of one boot; stops while the machine sleeps. */
function monotonicMs(): number {
  const [seconds, nanoseconds] = hrtime();
  return seconds * 1_000 + nanoseconds / 1e6;
}

const READINGS_MAX = 4;
const READING_MS_MAX = 1;

/** A process that is stopped between the two readings would see a leap: the quickest of several pairs counts. */
export function offsetBetween(wallMs: () => number, monotonic: () => number): number {
  let quickestMs = Number.POSITIVE_INFINITY;
  let offsetMs = 0;
  for (let readings = 0; readings < READINGS_MAX && quickestMs > READING_MS_MAX; readings++) {
    const before = monotonic();
    const wall = wallMs();
    const tookMs = monotonic() - before;
    if (tookMs >= quickestMs) continue;
    quickestMs = tookMs;
    offsetMs = wall - before - tookMs / 2;
  }
  return offsetMs;
}
