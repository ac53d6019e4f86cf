/**
 * The documentation as a site, from the Markdown of the repository as it is. The groups of the sidebar are the sections of
 * docs/README.md, so a page is listed in one place. `npm run site` builds it.
 */
import { readFileSync } from "node:fs";
import { basename, dirname, posix, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { deadLinks } from "../links.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const LIST = "docs/README.md";
const ICON = "packages/console/public/favicon.svg";

/** A README is the page of its folder. */
const pageOf = (file) => file.replace(/(?<=^|\/)README\.md$/, "index.md");

export default {
  title: "Callnumber",
  description: "Short, permanent message numbers for mail archives",
  head: [["link", { rel: "icon", href: `data:image/svg+xml,${encodeURIComponent(read(ICON))}` }]],
  srcDir: "..",
  srcExclude: ["**/{node_modules,dist}/**", "test/**"],
  outDir: "dist",
  cacheDir: "node_modules/.cache",
  // Relative addresses: the site can be placed into any folder of a web server.
  base: "./",
  rewrites: pageOf,
  markdown: {
    anchor: { slugify: slugOf },
    config(md) {
      md.core.ruler.push("links_of_the_repository", adaptLinks);
      // Indented code gets a frame and a copy button, too.
      md.renderer.rules.code_block = (tokens, index, ...rest) => {
        Object.assign(tokens[index], { type: "fence", info: "text" });
        return md.renderer.rules.fence(tokens, index, ...rest);
      };
    },
  },
  vite: {
    plugins: [
      {
        name: "vue-for-pages-outside",
        enforce: "pre",
        resolveId(id) {
          return /^vue(\/|$)/.test(id)
            ? this.resolve(id, fileURLToPath(import.meta.url), { skipSelf: true })
            : undefined;
        },
      },
    ],
  },
  themeConfig: {
    search: { provider: "local" },
    nav: [{ text: "All pages", link: `/${pageOf(LIST)}` }],
    sidebar: sidebarOf(read(LIST)),
    outline: [2, 3],
  },
  buildEnd({ outDir }) {
    const dead = deadLinks(outDir);
    if (dead.length > 0) throw new Error(`${dead.length} dead links:\n${dead.join("\n")}`);
  },
};

/** As GitHub does it, because links to headings must work in the repository, too. */
function slugOf(heading) {
  return heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, "")
    .replaceAll(" ", "-");
}

/** A link to a README leads to the page of its folder. A link to a file that is no page becomes the file's path. */
function adaptLinks({ tokens, env, Token }) {
  const inline = (type, tag, content) => Object.assign(new Token(type, tag, 0), { content });
  for (const block of tokens) {
    let file;
    let text;
    block.children = block.children?.flatMap((token) => {
      if (token.type === "link_open") {
        const [, path, anchor = ""] = /^([^#]*)(#.*)?$/.exec(token.attrGet("href"));
        const isPage = path === "" || path.endsWith(".md") || /^[a-z]+:/.test(path);
        if (isPage) token.attrSet("href", pageOf(path) + anchor);
        file = isPage ? undefined : relative(ROOT, resolve(dirname(env.path), path));
        text = "";
        return isPage ? token : [];
      }
      if (file === undefined) return token;
      if (token.type === "link_close")
        return text.includes(basename(file))
          ? []
          : [inline("text", "", " ("), inline("code_inline", "code", file), inline("text", "", ")")];
      text += token.content;
      return token;
    });
  }
}

/** One group for each section of the list, with each page that the section links. */
function sidebarOf(list) {
  return list
    .split(/^## /m)
    .slice(1)
    .map((section) => ({
      text: section.split("\n", 1)[0],
      collapsed: true,
      items: [...section.matchAll(/\[([^\]]+)\]\(([^)#]+\.md)\)/g)].map(([, text, link]) => {
        const file = posix.join(dirname(LIST), link);
        const [, title] = /^# (.*)$/m.exec(read(file));
        // The title of a package is its name, which says less than a link that is a phrase.
        return { text: /^[A-Z]/.test(text) && !/^[A-Z]/.test(title) ? text : title, link: `/${pageOf(file)}` };
      }),
    }));
}

function read(file) {
  return readFileSync(resolve(ROOT, file), "utf8");
}
