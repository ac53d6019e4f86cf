/**
 * Prometheus' own checker, where it is installed. It comes with Debian's package prometheus, which is larger than all that a test run
 * needs besides: it is not fetched for these tests, as Redis is for nearly all.
 */
import { spawnSync } from "node:child_process";

/** Why the tests that need it are left out; undefined when it is here. */
export function promtoolUnavailable(): string | undefined {
  const { error } = spawnSync("promtool", ["--version"]);
  return error === undefined ? undefined : "no promtool on PATH: it comes with Debian's package prometheus";
}

/** Runs it; answers its exit code and everything it said. */
export function promtool(
  words: readonly string[],
  input = "",
): { readonly code: number | null; readonly said: string } {
  const { status, stdout, stderr } = spawnSync("promtool", words, { input, encoding: "utf8" });
  return { code: status, said: `${stdout}${stderr}` };
}
