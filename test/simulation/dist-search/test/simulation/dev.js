import fc from "fast-check";
import { histories } from "./history.js";
import { play } from "./play.js";
import { VARIANTS } from "./variants/all.js";
import { THE_GUARD } from "./variants/variant.js";
const [name, countText, seedText] = process.argv.slice(2);
const count = Number(countText), seed = Number(seedText ?? 1);
const variant = [THE_GUARD, ...VARIANTS].find((v) => v.name === name);
const rules = { variant, lifted: new Set() };
const t0 = Date.now();
let n = 0, steps = 0, leases = 0, rep = 0, wrep = 0;
const played = new Map(), refusals = new Map();
const r = await fc.check(fc.asyncProperty(histories(200, process.env.THEME?.split(",")), async (h) => {
    const { world, violation, stepCount } = await play(h, rules);
    n++;
    steps += stepCount;
    leases += world.tally.leases.length;
    rep += world.tally.controlRepeats;
    wrep += world.tally.waitedControlRepeats;
    for (const [k, v] of world.played)
        played.set(k, (played.get(k) ?? 0) + v);
    for (const [k, v] of world.refusals)
        refusals.set(k, (refusals.get(k) ?? 0) + v);
    if (violation)
        throw new Error(violation.promise + ": " + violation.words);
}), { seed, numRuns: count, endOnFailure: process.argv[5] !== "shrink" });
console.log({ failed: r.failed, n, steps, leases, rep, wrep, ms: Date.now() - t0, perHistory: (Date.now() - t0) / n });
if (name === "none")
    console.log(played, refusals);
if (r.failed) {
    console.log(String(r.errorInstance?.stack).slice(0, 600));
    console.log(r.counterexamplePath);
    if (process.argv[5] === "shrink") {
        const h = r.counterexample[0];
        console.log(JSON.stringify(h));
        await play(h, { ...rules, hear: (l) => console.log(l) });
    }
}
//# sourceMappingURL=dev.js.map