/**
 * `npm run picture`: draws the pictures of the documents in Debian's Chromium: the console's Inspect page, from a real coordinator, and a
 * message of the demo's list in the reader.
 */
import { spawn, spawnSync } from "node:child_process";
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
const ARCHIVE_COMMAND = join(ROOT, "packages", "archive", "bin", "callnumber-archive.js");
const SAMPLE = join(ROOT, "packages", "archive", "sample", "garden.mbox");
/** The thread whose first answer is shown. */
const SHOWN_SUBJECT = "Seed swap this Saturday at the green shed";
const CHROMIUM = "/usr/lib/chromium/chromium";
const INSPECT_PICTURE = join(ROOT, "docs", "inspect.png");
const MESSAGE_PICTURE = join(ROOT, "docs", "message.png");

const folder = mkdtempSync(join(tmpdir(), "callnumber-picture-"));
const archive = join(folder, "garden.db");
const places = ["--store", `sqlite:${join(folder, "store.db")}`, "--checkpoint-dir", join(folder, "checkpoints")];
const servers = [];
const browser = await chromium.launch({
  executablePath: CHROMIUM,
  args: process.getuid?.() === 0 ? ["--no-sandbox"] : [],
});
try {
  const coordinator = await started([COMMAND, "serve", "--create", "--port", "0", ...places], /"url":"(http:[^"]+)"/);
  spawnSync(process.execPath, [ARCHIVE_COMMAND, "import", SAMPLE, "--archive", archive, "--coordinator", coordinator]);
  const reader = await started(
    [ARCHIVE_COMMAND, "serve", "--archive", archive, "--title", "Garden archive", "--port", "0"],
    /(http:\S+)\/\n/,
  );
  const callNumber = await imported(coordinator);
  const page = await browser.newPage({ viewport: { width: 1000, height: 640 }, colorScheme: "light" });
  await page.goto(`${coordinator}/console/#/main/inspect/${callNumber}`);
  await page.locator("main .pending").first().waitFor({ state: "detached" });
  await page.screenshot({ path: INSPECT_PICTURE });
  await page.setViewportSize({ width: 1240, height: 640 });
  await page.goto(`${reader}/list/garden.lists.beechstreet.example/2025-04`);
  await page.getByRole("link", { name: SHOWN_SUBJECT }).click();
  await page.locator("aside a").nth(1).click();
  await page.screenshot({ path: MESSAGE_PICTURE });
  console.log(`${INSPECT_PICTURE}\n${MESSAGE_PICTURE}`);
} finally {
  await browser.close();
  for (const server of servers) {
    server.kill();
    await once(server, "close");
  }
  rmSync(folder, { recursive: true });
}

/** Starts a server; resolves to the URL that it prints. */
async function started(args, pattern) {
  const server = spawn(process.execPath, args);
  servers.push(server);
  let output = "";
  for await (const chunk of server.stdout) {
    output += chunk;
    const [, url] = pattern.exec(output) ?? [];
    if (url !== undefined) return url;
  }
  throw new Error(`${args[1]} ended: ${output}`);
}

/** Resolves to a number of the last of three importers. */
async function imported(coordinator) {
  let callNumber;
  for (const list of ["python-dev", "python-list", "twisted"]) {
    const client = createClient({ coordinator, holder: { name: "callnumber-archive", labels: { archive: list } } });
    [callNumber] = (await client.take(20_000)).slice(-500);
    await client.close();
  }
  return callNumber;
}
