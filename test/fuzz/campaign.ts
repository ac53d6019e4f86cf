/** Fuzzing: input after input for one target, each with a seed of its own, until one breaks what must hold. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { codec } from "./codec.js";
import { httpBody } from "./http-body.js";
import { drawsOf, type FuzzTarget } from "./inputs.js";
import { mboxSplitter } from "./mbox-splitter.js";
import { storeUrl, tokensFile } from "./operator-input.js";

/** What parses untrusted input. */
export const TARGETS: readonly FuzzTarget[] = [codec, httpBody, tokensFile, storeUrl, mboxSplitter];

/** Not part of the project: a finding may hold a piece of a real letter. */
const FINDINGS_FOLDER = fileURLToPath(new URL("../../fuzz-findings", import.meta.url));

/** What the file of a finding holds: enough to play it again, whatever becomes of the way inputs are drawn. */
export interface Finding {
  readonly target: string;
  readonly seed: number;
  /** 0-based number of the input in the run. */
  readonly number: number;
  readonly inputHex: string;
  readonly broken: string;
}

/** Returns how many inputs were tried. @throws Error that says how to play the first finding again. */
export async function fuzz(target: FuzzTarget, seed: number, goesOn: (number: number) => boolean): Promise<number> {
  const subject = await target.start();
  let number = 0;
  for (; goesOn(number); number++) {
    const input = subject.input(drawsOf(seedOfInput(seed, number)));
    try {
      await subject.check(input);
    } catch (error) {
      const broken = error instanceof Error ? (error.stack ?? error.message) : String(error);
      const finding = { target: target.name, seed, number, inputHex: input.toString("hex"), broken };
      throw new Error(saved(finding), { cause: error });
    }
  }
  return number;
}

/** Writes a finding into a file. Returns how to play it again, for people. */
function saved(finding: Finding): string {
  mkdirSync(FINDINGS_FOLDER, { recursive: true });
  const { target, seed, number, broken } = finding;
  const path = join(FINDINGS_FOLDER, `${target}-${seed}-${number}.json`);
  writeFileSync(path, `${JSON.stringify(finding, null, 2)}\n`);
  return [
    `${target}: input ${number} of seed ${seed} breaks what must hold:`,
    broken,
    "",
    `Play it again: npm run fuzz -- --replay ${path}`,
  ].join("\n");
}

/** A large odd step: seeds of runs that are next to each other share no inputs. */
function seedOfInput(seed: number, number: number): number {
  return (Math.imul(seed, 0x85ebca6b) + Math.imul(number, 0x9e3779b1)) >>> 0;
}
