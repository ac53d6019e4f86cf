/** Generating by command: what the machine gives, waits and batches, and the state file, which is on the disk before a number is written. */
import {
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { generateBatches } from "../src/commands/generate.js";
import { machineContext, nodeIdentity } from "../src/commands/machine.js";
import { openStateFile, StateFileError } from "../src/commands/state-file.js";
import { type GenerateContext, type GenerateStep, type Scheme, SchemeError } from "../src/index.js";
import { seededRandom } from "../src/simulation/random.js";
import { schemeNamed } from "./helpers.js";

const uuid = schemeNamed("uuid");
const DRAWN = 20_000;

describe.each([
  ["this machine", machineContext(uuid, nodeIdentity(uuid, {}), () => new Map()).random],
  ["a seed", seededRandom("even")],
])("a draw from %s", (_, random) => {
  test.each([1, 2, 3, 62, 3 * 2 ** 30, 2 ** 32, 2 ** 48 - 1, 2 ** 48, 2 ** 48 + 1, 3 * 2 ** 51, 2 ** 53 - 1])(
    "a draw is as often in each third of the numbers below %d as that is large",
    (bound) => {
      const drawn = Array.from({ length: DRAWN }, () => random.below(bound));
      expect(drawn.every((value) => Number.isSafeInteger(value) && value >= 0 && value < bound)).toBe(true);
      for (const third of [0, 1, 2]) {
        const from = Math.ceil((third * bound) / 3);
        const below = Math.ceil(((third + 1) * bound) / 3);
        const share = (below - from) / bound;
        const count = drawn.filter((value) => value >= from && value < below).length;
        // Six standard deviations: once in 500 million times it is beyond by chance.
        expect(Math.abs(count - share * DRAWN)).toBeLessThanOrEqual(6 * Math.sqrt(share * (1 - share) * DRAWN));
      }
    },
  );
});

describe("generateBatches", () => {
  const number = (text: string) => ({ outcome: "generated", text, values: {} }) as const;

  /** Generates from a scheme that takes these steps, the last one forever, and returns the batches, and what ended them. */
  async function batchesOf(steps: readonly (GenerateStep | SchemeError)[], count: number) {
    const batches: string[] = [];
    let place = 0;
    const generate = (): GenerateStep => {
      const step = steps[Math.min(place++, steps.length - 1)] as GenerateStep | SchemeError;
      if (step instanceof SchemeError) throw step;
      return step;
    };
    const context = { clock: { nowMs: Date.now } } as Partial<GenerateContext> as GenerateContext;
    try {
      for await (const batch of generateBatches({ generate } as Partial<Scheme> as Scheme, context, count)) {
        batches.push(batch.length > 3 ? `${batch.length}` : batch.map(({ text }) => text).join(" "));
      }
    } catch (error) {
      return { batches, error };
    }
    return { batches };
  }

  test.each([
    ["holds many numbers in a batch", [number("a"), number("b")], 2, ["a b"]],
    ["begins another batch after a thousand numbers", [number("a")], 2_500, ["1000", "1000", "500"]],
    [
      "ends a batch before it waits",
      [number("a"), { outcome: "wait", untilMs: 0 }, { outcome: "wait", untilMs: 0 }, number("b"), number("c")],
      3,
      ["a", "b c"],
    ],
  ] as const)("generateBatches %s", async (_, steps, count, batches) => {
    expect(await batchesOf(steps, count)).toEqual({ batches });
  });

  test("generateBatches ends a batch before an error, and throws it", async () => {
    const error = new SchemeError("clock_moved_backward", "the clock went back");
    expect(await batchesOf([number("a"), number("b"), error], 3)).toEqual({ batches: ["a b"], error });
  });
});

describe("the state file", () => {
  function newDirectory(): string {
    const made = mkdtempSync(join(tmpdir(), "callnumber-test-"));
    onTestFinished(() => rmSync(made, { recursive: true }));
    return made;
  }

  /** Writes a file that holds 41 under one name. */
  function write41(path: string): void {
    const state = openStateFile(path, true);
    state.memory("disk").set("a", 41n);
    state.save();
    state.close();
  }

  const valueIn = (path: string) => {
    const state = openStateFile(path, false);
    const value = state.memory("disk").get("a");
    state.close();
    return value;
  };

  test("the state file keeps what was saved, and only that, of any size, for its owner only", () => {
    const directory = newDirectory();
    const path = join(directory, "state.json");
    const state = openStateFile(path, true);
    state.memory("disk").set("a", 41n);
    state.memory("counter").set("a", 2n ** 127n);
    state.save();
    state.memory("disk").set("a", 42n);
    state.close();
    expect(valueIn(path)).toBe(41n);
    expect(readFileSync(path, "utf8")).toContain(`"counter:a": "${2n ** 127n}"`);
    expect(readdirSync(directory)).toEqual(["state.json"]);
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test("the state file is not emptied with `create", () => {
    const path = join(newDirectory(), "state.json");
    write41(path);
    expect(openStateFile(path, true).memory("disk").get("a")).toBe(41n);
  });

  test.each([
    ["is empty", () => ""],
    ["is cut short", (text: string) => text.slice(0, -2)],
    ["has another content", () => '{"values":{}}'],
    ["has a negative number", (text: string) => text.replace('"41"', '"-41"')],
    ["has a name twice", (text: string) => text.replace('"disk:a": "41"', '"disk:a": "40",\n    "disk:a": "41"')],
    ["is not an object", () => "null"],
  ])("a state file that %s is rejected and left as it is", (_, damage) => {
    const path = join(newDirectory(), "state.json");
    write41(path);
    const damaged = damage(readFileSync(path, "utf8"));
    writeFileSync(path, damaged);
    for (const create of [false, true]) expect(() => openStateFile(path, create)).toThrow(/damaged/);
    expect(readFileSync(path, "utf8")).toBe(damaged);
    expect(readdirSync(join(path, ".."))).toEqual(["state.json"]);
  });

  test("the state file has one lock for all its names, and a link stays a link", () => {
    const directory = newDirectory();
    const [path, link] = [join(directory, "state.json"), join(directory, "link.json")];
    write41(path);
    symlinkSync(path, link);
    const state = openStateFile(link, false);
    for (const name of [path, link]) {
      expect(() => openStateFile(name, false)).toThrow(/another process generates with .*remove that file/);
    }
    state.memory("disk").set("a", 43n);
    state.save();
    state.close();
    expect(valueIn(path)).toBe(43n);
  });

  test("the state file is rejected where numbers would start again elsewhere: a broken link, a hard link", () => {
    const directory = newDirectory();
    symlinkSync(join(directory, "unmounted", "state.json"), join(directory, "link.json"));
    expect(() => openStateFile(join(directory, "link.json"), true)).toThrow(/can't be used \(ENOENT\)/);
    write41(join(directory, "state.json"));
    linkSync(join(directory, "state.json"), join(directory, "second.json"));
    expect(() => openStateFile(join(directory, "state.json"), false)).toThrow(/hard link/);
    expect(readdirSync(directory).sort()).toEqual(["link.json", "second.json", "state.json"]);
  });

  test("the state file fails with a code and leaves no lock for a device, a directory or a missing directory", () => {
    const directory = newDirectory();
    mkdirSync(join(directory, "state.json"));
    for (const path of ["/dev/zero", join(directory, "state.json"), join(directory, "none", "state.json")]) {
      expect(() => openStateFile(path, true)).toThrow(StateFileError);
    }
    expect(readdirSync(directory)).toEqual(["state.json"]);
  });
});
