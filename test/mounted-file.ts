/** Runs programs that see one file under a second name: by a mount of the file alone, as containers make it, in a mount namespace of their own. */
import { spawn, spawnSync } from "node:child_process";
import type { SpawnProgram } from "./faults/coordinator-process.js";

export interface MountedFile {
  readonly file: string;
  /** A file that is there, and that the program sees `file` in place of. */
  readonly secondName: string;
  /** Whether the program can't find out by /proc. */
  readonly isProcHidden?: boolean;
}

/** Root may, and can become other users there; with a user namespace every user may, where the system lets them, as root alone. */
const WAYS = [["--mount"], ["--user", "--map-root-user", "--mount"]];
const SCRIPT = 'mount --bind "$1" "$2" && { [ "$3" = shown ] || mount -t tmpfs none /proc; } && shift 3 && exec "$@"';

/** Why no program can run so on this machine; undefined when it can. */
export function mountUnavailable(): string | undefined {
  const way = wayToMount();
  return typeof way === "string" ? way : undefined;
}

/** Words in front of a program's own. @throws Error when `mountUnavailable()` gives a reason. */
export function withMounted({ file, secondName, isProcHidden = false }: MountedFile): readonly string[] {
  const way = wayToMount();
  if (typeof way === "string") throw new Error(way);
  return ["unshare", ...way, "sh", "-c", SCRIPT, "sh", file, secondName, isProcHidden ? "hidden" : "shown"];
}

export function spawnWithMounted(mounted: MountedFile): SpawnProgram {
  const [first, ...words] = withMounted(mounted);
  return (program, own, options) => spawn(first as string, [...words, program, ...own], options);
}

/** Words for `unshare` with which a program can mount, or why none can. */
export function wayToMount(): readonly string[] | string {
  const complaints: string[] = [];
  for (const way of WAYS) {
    const { status, stderr, error } = spawnSync("unshare", [...way, "sh", "-c", "mount -t tmpfs none /proc"]);
    if (status === 0) return way;
    complaints.push(`unshare ${way.join(" ")}: ${error?.message ?? String(stderr).trim()}`);
  }
  return complaints.join("; ");
}
