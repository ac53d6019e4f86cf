/**
 * `npm run audit`: asks the registry for known faults of what the published packages need. Exit code 0: none, or the registry answers no
 * such question, which is then said; 1: some; with `-- --must-answer` also when nothing was answered.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const [pnpm] = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8")).packageManager.split("+");

const { stdout, error } = spawnSync("npx", ["--yes", pnpm, "audit", "--prod", "--json"], {
  cwd: ROOT,
  encoding: "utf8",
  timeout: 120_000,
});
const answer = parsed(stdout);

if (answer?.metadata === undefined) {
  const reason = answer?.error?.message ?? error?.message ?? "no answer";
  console.log(`NOT CHECKED: the registry does not report which packages have known faults (${reason.slice(0, 200)}).`);
  process.exit(process.argv.includes("--must-answer") ? 1 : 0);
}
const faults = Object.values(answer.advisories ?? {});
for (const { severity, module_name: name, vulnerable_versions: versions, title } of faults) {
  console.log(`${severity}: ${name} ${versions}: ${title}`);
}
console.log(faults.length === 0 ? "no known fault in what the packages need" : `${faults.length} known faults`);
process.exit(faults.length === 0 ? 0 : 1);

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
