/** Minting by command: what the machine gives, waits and batches, and the state file, which is on the disk before a number is written. */
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
import { machineContext, needsState } from "../src/commands/machine.js";
import { mintNumbers } from "../src/commands/mint.js";
import { openStateFile, StateFileError } from "../src/commands/state-file.js";
import {
  type MintContext,
  type Minted,
  type MintStep,
  SCHEMES,
  type Scheme,
  SchemeError,
  schemeNamed,
} from "../src/index.js";

describe("the context of a machine", () => {
  const { random } = machineContext(schemeNamed("uuid"), {}, undefined);
  const DRAWN = 20_000;

  test.each([1, 2, 3, 62, 2 ** 32, 2 ** 48 - 1, 2 ** 48, 2 ** 48 + 1, 3 * 2 ** 51, 2 ** 53 - 1])(
    "random numbers below %d are within, and in the middle on average",
    (bound) => {
      const drawn = Array.from({ length: DRAWN }, () => random.below(bound));
      expect(drawn.every((value) => Number.isSafeInteger(value) && value >= 0 && value < bound)).toBe(true);
      const mean = drawn.reduce((sum, value) => sum + value / bound, 0) / DRAWN;
      // Six standard deviations of the mean: once in 500 million runs it is beyond by chance.
      const deviation = Math.sqrt((1 - 1 / bound ** 2) / 12 / DRAWN);
      expect(Math.abs(mean - (1 - 1 / bound) / 2)).toBeLessThanOrEqual(6 * deviation);
    },
  );

  test("needs each node number that the machine does not know, and rejects one without a field", () => {
    for (const scheme of SCHEMES) {
      const { fields } = scheme;
      const isStated = fields.some(
        ({ source }) => source.kind === "node" && (source.from === "given" || source.from === "server"),
      );
      if (isStated) expect(() => machineContext(scheme, {}, undefined)).toThrow(/ needs --(node|server) N, from 0 to /);
    }
    for (const options of [{ node: 1 }, { server: 1 }]) {
      expect(() => machineContext(schemeNamed("uuid"), options, undefined)).toThrow(/has no place for --/);
    }
  });

  test("counts from a state file only", () => {
    expect(SCHEMES.filter(needsState).map(({ name }) => name)).toEqual(["call-number", "chibrary-4-16-20", "tickets"]);
    const { counter, disk } = machineContext(schemeNamed("tickets"), { server: 1 }, undefined);
    expect(() => counter.next()).toThrow(/needs a state file/);
    expect(() => disk.get("a")).toThrow(/needs a state file/);
  });
});

describe("mintNumbers", () => {
  type Step = MintStep | SchemeError;
  const number = (text: string): Minted => ({ outcome: "minted", text, values: {} });

  /** Mints from a scheme that takes these steps, the last one forever, and returns the calls in their order. */
  async function callsOf(steps: readonly Step[], count: number, nowMs = Date.now) {
    const calls: string[] = [];
    let place = 0;
    const mint = (): MintStep => {
      const step = steps[Math.min(place++, steps.length - 1)] as Step;
      if (step instanceof SchemeError) throw step;
      return step;
    };
    const minting = mintNumbers({
      scheme: { mint } as Partial<Scheme> as Scheme,
      context: { clock: { nowMs } } as Partial<MintContext> as MintContext,
      count,
      save: () => void calls.push("save"),
      write: async (numbers) =>
        void calls.push(numbers.length > 3 ? `${numbers.length}` : numbers.map(({ text }) => text).join(" ")),
      onLongWait: (waitMs) => void calls.push(`long wait of ${waitMs}`),
    });
    return { calls, error: await minting.catch((error: unknown) => error) };
  }

  test("saves before it writes, many numbers by one save", async () => {
    expect((await callsOf([number("a"), number("b")], 2)).calls).toEqual(["save", "a b"]);
    expect((await callsOf([number("a")], 2_500)).calls).toEqual(["save", "1000", "save", "1000", "save", "500"]);
  });

  test("writes what it has before it waits, and reports a long wait once", async () => {
    const wait = { outcome: "wait", untilMs: Date.now() } as const;
    const steps = [number("a"), wait, wait, number("b"), number("c")];
    expect((await callsOf(steps, 3)).calls).toEqual(["save", "a", "save", "b c"]);
    const long = { outcome: "wait", untilMs: 3_600_000 } as const;
    expect((await callsOf([long, long, number("a")], 1, () => 0)).calls).toEqual(["long wait of 3600000", "save", "a"]);
  });

  test("writes what was minted before an error, and throws it", async () => {
    const thrown = new SchemeError("clock_moved_backward", "the clock went back");
    expect(await callsOf([number("a"), number("b"), thrown], 3)).toEqual({ calls: ["save", "a b"], error: thrown });
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
    const state = openStateFile(path, { create: true });
    state.memory("disk").set("a", 41n);
    state.save();
    state.close();
  }

  const valueIn = (path: string) => {
    const state = openStateFile(path, { create: false });
    const value = state.memory("disk").get("a");
    state.close();
    return value;
  };

  test("keeps what was saved, and only that, of any size, for its owner only", () => {
    const directory = newDirectory();
    const path = join(directory, "state.json");
    const state = openStateFile(path, { create: true });
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

  test("is not created without `create`, and not emptied with it", () => {
    const path = join(newDirectory(), "state.json");
    expect(() => openStateFile(path, { create: false })).toThrow(/find it: without it they start again.*--create/);
    expect(readdirSync(join(path, ".."))).toEqual([]);
    write41(path);
    expect(openStateFile(path, { create: true }).memory("disk").get("a")).toBe(41n);
  });

  test.each([
    ["is empty", () => ""],
    ["is cut short", (text: string) => text.slice(0, -2)],
    ["has another content", () => '{"values":{}}'],
    ["has a negative number", (text: string) => text.replace('"41"', '"-41"')],
    ["has a name twice", (text: string) => text.replace('"disk:a": "41"', '"disk:a": "40",\n    "disk:a": "41"')],
    ["is no object", () => "null"],
  ])("that %s is rejected and left as it is", (_, damage) => {
    const path = join(newDirectory(), "state.json");
    write41(path);
    const damaged = damage(readFileSync(path, "utf8"));
    writeFileSync(path, damaged);
    for (const create of [false, true]) expect(() => openStateFile(path, { create })).toThrow(/damaged/);
    expect(readFileSync(path, "utf8")).toBe(damaged);
    expect(readdirSync(join(path, ".."))).toEqual(["state.json"]);
  });

  test("has one lock, whatever name the file is opened by, and a link stays one", () => {
    const directory = newDirectory();
    const [path, link] = [join(directory, "state.json"), join(directory, "link.json")];
    write41(path);
    symlinkSync(path, link);
    const state = openStateFile(link, { create: false });
    for (const name of [path, link]) {
      expect(() => openStateFile(name, { create: false })).toThrow(
        new RegExp(`process ${process.pid} mints with .*remove that file`),
      );
    }
    state.memory("disk").set("a", 43n);
    state.save();
    state.close();
    expect(valueIn(path)).toBe(43n);
  });

  test("is rejected where numbers would start again elsewhere: a broken link, a hard link", () => {
    const directory = newDirectory();
    symlinkSync(join(directory, "unmounted", "state.json"), join(directory, "link.json"));
    expect(() => openStateFile(join(directory, "link.json"), { create: true })).toThrow(/link whose target is missing/);
    write41(join(directory, "state.json"));
    linkSync(join(directory, "state.json"), join(directory, "second.json"));
    expect(() => openStateFile(join(directory, "state.json"), { create: false })).toThrow(/hard link/);
    expect(readdirSync(directory).sort()).toEqual(["link.json", "second.json", "state.json"]);
  });

  test("that is a device, a directory or in none is an error with a code, and leaves no lock", () => {
    const directory = newDirectory();
    mkdirSync(join(directory, "state.json"));
    for (const path of ["/dev/zero", join(directory, "state.json"), join(directory, "none", "state.json")]) {
      expect(() => openStateFile(path, { create: true })).toThrow(StateFileError);
    }
    expect(readdirSync(directory)).toEqual(["state.json"]);
  });
});
