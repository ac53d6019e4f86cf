/** The one path of a file that has several names by links: for locks, markers and replacing it. */
import { existsSync, lstatSync, readlinkSync, realpathSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";

/** A link without a target: a file that is made through it would be in a place that no one gave, with another lock next to it. */
export class LinkLeadsNowhere extends Error {
  override readonly name = "LinkLeadsNowhere";
  readonly code = "link_leads_nowhere";

  constructor(link: string) {
    super(
      `${link} is a link to ${readlinkSync(link)}, and nothing that can be reached is there. Mount it or make it; or name the place ` +
        "itself, or remove the link",
    );
  }
}

/**
 * Absolute and without links, also where the file, or directories above it, are not there yet.
 * @throws LinkLeadsNowhere for a link among them whose target is not there.
 */
export function realPathOf(givenPath: string): string {
  const path = resolve(givenPath);
  try {
    return realpathSync(path);
  } catch {
    // It is missing, or can't be reached: the rest distinguishes them.
  }
  if (isLink(path) && !existsSync(path)) throw new LinkLeadsNowhere(path);
  const folder = dirname(path);
  return folder === path ? path : join(realPathOf(folder), basename(path));
}

/** False where it can't be read: opening it then fails with the reason. */
export function isLink(path: string): boolean {
  try {
    return lstatSync(path).isSymbolicLink();
  } catch {
    return false;
  }
}
