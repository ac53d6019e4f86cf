/** Copies a folder in which others go on writing, as somebody at a terminal would. */
import { cp, rm } from "node:fs/promises";

const TRIES_MAX = 100;

/** A file that goes while the folder is read begins the copy anew. `isMeant` is asked of each name; default all. */
export async function copyFolder(
  from: string,
  to: string,
  isMeant: (name: string) => boolean = () => true,
): Promise<void> {
  for (let tries = 1; ; tries++) {
    try {
      await cp(from, to, { recursive: true, filter: isMeant });
      return;
    } catch (error) {
      if ((error as { code?: unknown }).code !== "ENOENT" || tries === TRIES_MAX) throw error;
      await rm(to, { recursive: true, force: true });
    }
  }
}
