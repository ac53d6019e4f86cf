/**
 * Our client beside others, as plain JavaScript in a process of its own: what vitest makes of a module is not what an importer
 * runs. Started by ../peers.bench.ts, which brings Redis: `node main.js ADDRESS-OF-REDIS`.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { quantile } from "../quantiles.js";
import { publish } from "../report.js";
import { contendersWith } from "./contenders.js";
import { decodingSection } from "./decoding.js";
import { extendedStringSection } from "./extended-string.js";
import { formsSection } from "./forms.js";
import { observe } from "./observed.js";
import { type Timed, timeInTurns } from "./rounds.js";
import { headlineOf, type Result, type Results, sectionsOf } from "./tables.js";
import { TicketServer } from "./ticket-server.js";

const PACKAGES = fileURLToPath(new URL("../../../node_modules", import.meta.url));
const ROUND_COUNT = 21;

const [redisUrl] = process.argv.slice(2);
if (redisUrl === undefined) throw new TypeError("give the address of a Redis");

const tickets = await TicketServer.open(redisUrl);
const contenders = await contendersWith(tickets);
const timed = await timeInTurns(contenders, ROUND_COUNT);
const results: Result[] = [];
for (const [index, contender] of contenders.entries()) {
  const rounds = timed[index] as Timed;
  const observed = await observe(contender, quantile(rounds.keptNs, 0.5));
  const version = contender.package === undefined ? undefined : versionOf(contender.package);
  results.push({ ...contender, ...rounds, ...observed, version });
}
tickets.close();
publish({
  bench: "peers",
  headline: headlineOf(results as unknown as Results),
  sections: [
    ...sectionsOf(results as unknown as Results, ROUND_COUNT),
    await formsSection(ROUND_COUNT),
    await decodingSection(ROUND_COUNT),
    await extendedStringSection(ROUND_COUNT),
  ],
});

function versionOf(name: string): string {
  return (JSON.parse(readFileSync(join(PACKAGES, name, "package.json"), "utf8")) as { version: string }).version;
}
