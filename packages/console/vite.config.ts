/** Builds the page into the coordinator's package, which serves it; each file also compressed, for browsers that accept gzip. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { defineConfig, type Plugin } from "vite";

const compressed: Plugin = {
  name: "compressed",
  writeBundle({ dir = "" }, bundle) {
    for (const name of Object.keys(bundle)) {
      const path = join(dir, name);
      writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }));
    }
  },
};

export default defineConfig({
  // Relative URLs: the page works behind whatever path a proxy puts before it.
  base: "./",
  plugins: [compressed],
  build: {
    outDir: "../coordinator/dist/console",
    emptyOutDir: true,
    target: "es2023",
    // The page's policy allows no data: URL and no inline script.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
