/** Starts a part of a bench that must not run inside vitest: what vitest makes of a module is not what an importer runs. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import process from "node:process";

/** Another Node than this one for the plain processes: the path of its binary. */
export const NODE_VARIABLE = "CALLNUMBER_BENCH_NODE";

const COMPILED = join(import.meta.dirname, "dist");

/**
 * Runs bench/NAME/main.ts, as `npm run bench` has compiled it, to its end.
 * @throws Error when it ends otherwise than with 0; what it said is on the terminal.
 */
export async function plainProcess(name: string, ...parameters: readonly string[]): Promise<void> {
  const node = process.env[NODE_VARIABLE] ?? process.execPath;
  const child = spawn(node, [join(COMPILED, name, "main.js"), ...parameters], {
    stdio: ["ignore", "inherit", "inherit"],
  });
  const [code, signal] = (await once(child, "close")) as [number | null, NodeJS.Signals | null];
  if (code !== 0) throw new Error(`${name}/main.js ended with ${code ?? signal}`);
}
