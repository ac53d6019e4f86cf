/** Input after input for one target, each with a seed of its own, until one breaks what must hold. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { drawsOf } from "./draw.js";
import type { FuzzTarget } from "./target.js";

/** Not part of the project: a finding may hold a piece of a real letter. */
export const FINDINGS_FOLDER = fileURLToPath(new URL("../../fuzz-findings", import.meta.url));

/** What a file of a finding holds: enough to play it again, whatever becomes of the way inputs are drawn. */
export interface Finding {
  readonly target: string;
  /** `CALLNUMBER_TEST_SEED` of the run; 0-based number of the input in it. */
  readonly seed: number;
  readonly number: number;
  readonly inputHex: string;
  readonly broken: string;
}

export interface Campaign {
  readonly seed: number;
  /** Whether to go on before the input with that number. */
  readonly goesOn: (number: number) => boolean;
}

/** How many inputs were tried, and the first that broke something. */
export async function runCampaign(
  target: FuzzTarget,
  { seed, goesOn }: Campaign,
): Promise<{ readonly inputCount: number; readonly finding: Finding | undefined }> {
  const subject = await target.start();
  let number = 0;
  let input: Buffer = Buffer.alloc(0);
  const found = (error: unknown): Finding => {
    return { target: target.name, seed, number, inputHex: input.toString("hex"), broken: wordsOf(error) };
  };
  try {
    for (; goesOn(number); number++) {
      input = subject.input(drawsOf(seedOfInput(seed, number)));
      await subject.check(input);
    }
  } catch (error) {
    await subject.stop().catch(() => {});
    return { inputCount: number + 1, finding: found(error) };
  }
  try {
    await subject.stop();
  } catch (error) {
    return { inputCount: number, finding: found(error) };
  }
  return { inputCount: number, finding: undefined };
}

/** Plays a finding again. @throws as its target's check. */
export async function playAgain(target: FuzzTarget, { inputHex }: Pick<Finding, "inputHex">): Promise<void> {
  const subject = await target.start();
  try {
    await subject.check(Buffer.from(inputHex, "hex"));
  } finally {
    await subject.stop();
  }
}

/** Writes a finding into a file of the folder, and answers how to play it again: for people. */
export function savedFinding(finding: Finding, folder: string): string {
  mkdirSync(folder, { recursive: true });
  const { target, seed, number, broken } = finding;
  const path = join(folder, `${target}-${seed}-${number}.json`);
  writeFileSync(path, `${JSON.stringify(finding, null, 2)}\n`);
  return [
    `${target}: input ${number} of seed ${seed} was found to break what must hold:`,
    broken,
    "",
    `Play it again: npm run fuzz -- --replay ${path}`,
    `The whole run: npm run fuzz -- --target ${target} --seed ${seed}`,
  ].join("\n");
}

/** A large odd step: seeds of runs that stand beside each other share no inputs. */
function seedOfInput(seed: number, number: number): number {
  return (Math.imul(seed, 0x85ebca6b) + Math.imul(number, 0x9e3779b1)) >>> 0;
}

function wordsOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
