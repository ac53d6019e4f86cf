/** The lease limits that result from the options of `serve`. */
import { Command } from "commander";
import { expect, test } from "vitest";
import { limitOptions } from "../src/commands/serve.js";
import { type LimitOptions, limitsOf } from "../src/serve/access.js";

const REQUEST = { runCount: 1_000_000, holder: { name: "letters", host: "mail-1", pid: 1, labels: {} }, lastRun: 1 };

type Own = Omit<LimitOptions, "host" | "tokensFile">;
type Place = Pick<LimitOptions, "host" | "tokensFile">;

const LOOPBACK: Place = { host: "127.0.0.1" };
const NETWORK: Place = { host: "0.0.0.0" };

function optionsOf(...words: readonly string[]): Own {
  const command = new Command("serve").exitOverride().configureOutput({ writeErr: () => {} });
  for (const option of limitOptions()) command.addOption(option);
  return command.parse([...words], { from: "user" }).opts();
}

/** The runs that one holder, and then another one of the same token, are granted; 0 when the request is rejected. */
function granted(place: Place, ...words: readonly string[]): readonly number[] {
  const limits = limitsOf({ ...optionsOf(...words), ...place });
  return ["letters", "lists"].map((name) => {
    try {
      return limits.admit("aa", "main", { ...REQUEST, holder: { ...REQUEST.holder, name } }).runCount;
    } catch (error) {
      expect(error).toMatchObject({ code: "rate_limited" });
      return 0;
    }
  });
}

test("there are no limits for programs of this machine, and else 256 runs for a token and 128 for a holder", () => {
  expect(granted(LOOPBACK)).toEqual([1_000_000, 1_000_000]);
  expect(granted(NETWORK)).toEqual([128, 128]);
  expect(granted({ ...LOOPBACK, tokensFile: "tokens" })).toEqual([128, 128]);
});

test("the options set limits, also on loopback", () => {
  expect(granted(LOOPBACK, "--holder-burst-runs", "7")).toEqual([7, 7]);
  expect(
    granted(LOOPBACK, "--token-runs-per-second", "1", "--token-burst-runs", "10", "--holder-burst-runs", "7"),
  ).toEqual([7, 3]);
  expect(granted(LOOPBACK, "--holder-runs-per-second", "3")).toEqual([128, 128]);
});

test.each(["none", "0"])("%s turns a limit off", (none) => {
  expect(granted(NETWORK, "--holder-burst-runs", none)).toEqual([256, 0]);
  expect(granted(NETWORK, "--holder-runs-per-second", none)).toEqual([256, 0]);
  expect(granted(NETWORK, "--token-burst-runs", none, "--holder-burst-runs", none)).toEqual([1_000_000, 1_000_000]);
});

test.each(["-1", "1.5", "many", "", "1000001"])("a limit of %j is rejected", (text) => {
  expect(() => optionsOf("--token-burst-runs", text)).toThrow(/whole number/);
  expect(() => optionsOf("--max-concurrent-leases", text)).toThrow(/1 to/);
  // Nothing would ever be leased.
  expect(() => optionsOf("--max-concurrent-leases", "0")).toThrow(/1 to/);
});
