/** The links of a built site. VitePress itself checks that pages exist, but not their headings, nor pictures. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, sep } from "node:path";

/** Returns the links in the pages of a folder that lead to no file, or to no heading of a page, as `PAGE: LINK`. */
export function deadLinks(folder: string): string[] {
  const pages = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".html"));
  const texts = new Map(
    pages.map((page) => [`/${page.replaceAll(sep, "/")}`, readFileSync(join(folder, page), "utf8")]),
  );
  const dead: string[] = [];
  for (const [page, text] of texts) {
    for (const [, link = ""] of text.matchAll(/\s(?:href|src)="([^"]+)"/g)) {
      const { origin, pathname, hash } = new URL(link, `http://site${page}`);
      if (origin !== "http://site") continue;
      const target = pathname.replace(/\/$/, "/index.html");
      const isThere = existsSync(join(folder, decodeURI(target)));
      const anchor = decodeURIComponent(hash.slice(1));
      if (!isThere || (anchor !== "" && !texts.get(target)?.includes(` id="${anchor}"`))) dead.push(`${page}: ${link}`);
    }
  }
  return dead;
}
