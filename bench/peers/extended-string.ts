/**
 * What a class that extends String does to every text in its process: ioredis 6 brings one. Must be the last thing that is timed in
 * a process: there is no way back.
 */
import { figure, quantile } from "../quantiles.js";
import type { Section } from "../report.js";
import { floor } from "./contenders.js";
import { timeInTurns } from "./rounds.js";

export async function extendedStringSection(roundCount: number): Promise<Section> {
  const before = await floorNs(roundCount);
  class Extended extends String {}
  void new Extended("");
  const after = await floorNs(roundCount);
  return {
    heading: "A class that extends String, somewhere in the process",
    sentences: [
      "The floor, before and after such a class was made; ours and all others stand on the same two operations.",
    ],
    table: {
      columns: ["floor", "before: ns a number", "after", "times"],
      rows: (["kept", "read"] as const).map((column) => [
        column,
        figure(before[column]),
        figure(after[column]),
        figure(after[column] / before[column]),
      ]),
    },
  };
}

async function floorNs(roundCount: number): Promise<{ readonly kept: number; readonly read: number }> {
  const [timed] = await timeInTurns([floor()], roundCount);
  if (timed === undefined) throw new Error("broken invariant: nothing was timed");
  return { kept: quantile(timed.keptNs, 0.5), read: quantile(timed.readNs, 0.5) };
}
