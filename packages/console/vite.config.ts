/** Builds the page into the coordinator's package, which serves it. */
import { defineConfig } from "vite";

export default defineConfig({
  // Relative addresses: the page works behind whatever path a proxy puts before it.
  base: "./",
  build: {
    outDir: "../coordinator/dist/console",
    emptyOutDir: true,
    target: "es2023",
    // The page's policy allows no data: address and no inline script.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
});
