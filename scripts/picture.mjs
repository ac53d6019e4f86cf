/** `npm run picture`: draws the console's Inspect page for the README, from a real coordinator in Debian's Chromium. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { createClient } from "@callnumber/client";
import { chromium } from "playwright-core";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const COMMAND = join(ROOT, "packages", "cli", "bin", "callnumber.js");
const CHROMIUM = "/usr/lib/chromium/chromium";
const PICTURE = join(ROOT, "docs", "inspect.png");

const folder = mkdtempSync(join(tmpdir(), "callnumber-picture-"));
const places = ["--store", `sqlite:${join(folder, "store.db")}`, "--checkpoint-dir", join(folder, "checkpoints")];
const serve = spawn(process.execPath, [COMMAND, "serve", "--create", "--port", "0", ...places]);
const browser = await chromium.launch({
  executablePath: CHROMIUM,
  args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
});
try {
  const coordinator = await listeningUrl();
  const callNumber = await imported(coordinator);
  const page = await browser.newPage({ viewport: { width: 1000, height: 640 }, colorScheme: "light" });
  await page.goto(`${coordinator}/console/#/main/inspect/${callNumber}`);
  await page.locator("main .pending").first().waitFor({ state: "detached" });
  await page.screenshot({ path: PICTURE });
  console.log(PICTURE);
} finally {
  await browser.close();
  serve.kill();
  await once(serve, "close");
  rmSync(folder, { recursive: true });
}

/** Resolves to the URL that `serve` prints. */
async function listeningUrl() {
  let output = "";
  for await (const chunk of serve.stdout) {
    output += chunk;
    const [, url] = /"url":"(http:[^"]+)"/.exec(output) ?? [];
    if (url !== undefined) return url;
  }
  throw new Error(`serve ended: ${output}`);
}

/** Resolves to a number of the last of three importers. */
async function imported(coordinator) {
  let callNumber;
  for (const archive of ["python-dev", "python-list", "twisted"]) {
    const client = createClient({ coordinator, holder: { name: "callnumber-archive", labels: { archive } } });
    [callNumber] = (await client.take(20_000)).slice(-500);
    await client.close();
  }
  return callNumber;
}
