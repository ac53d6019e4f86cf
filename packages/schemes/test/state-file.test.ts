/** The state of minting is on the disk before a number is out, belongs to one process at a time, and is never begun anew by itself. */
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
import { openStateFile as open, StateFileError } from "../src/commands/state-file.js";
import { FILES } from "./plain-io.js";

const openStateFile = (path: string, { create }: { readonly create: boolean }) => open(path, { create, files: FILES });

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), "callnumber-test-"));
  onTestFinished(() => rmSync(made, { recursive: true }));
  return made;
}

/** A file that holds 41 under one name. */
function written(path: string): void {
  const state = openStateFile(path, { create: true });
  state.memory("disk").set("a", 41n);
  state.save();
  state.close();
}

const kept = (path: string) => {
  const state = openStateFile(path, { create: false });
  const value = state.memory("disk").get("a");
  state.close();
  return value;
};

describe("the state of minting", () => {
  test("is there for the next process once it is saved, and only then; of any size", () => {
    const path = join(folder(), "state.json");
    const state = openStateFile(path, { create: true });
    const [disk, counter] = [state.memory("disk"), state.memory("counter")];
    disk.set("a", 41n);
    state.save();
    expect(readFileSync(path, "utf8")).toContain('"disk:a": "41"');
    disk.set("a", 42n);
    counter.set("a", 2n ** 127n);
    state.close();
    expect(kept(path)).toBe(41n);
    expect(counter.get("a")).toBe(2n ** 127n);
  });

  test("is for its owner only, and leaves nothing else behind", () => {
    const place = folder();
    written(join(place, "state.json"));
    expect(readdirSync(place)).toEqual(["state.json"]);
    expect(statSync(join(place, "state.json")).mode & 0o777).toBe(0o600);
  });

  test("is not begun anew where the file is missing, unless that is said", () => {
    const path = join(folder(), "state.json");
    expect(() => openStateFile(path, { create: false })).toThrow(/find it: without it they begin anew.*--create/);
    expect(readdirSync(join(path, ".."))).toEqual([]);
    written(path);
    expect(openStateFile(path, { create: true }).memory("disk").get("a")).toBe(41n);
  });

  test.each([
    ["is empty", () => ""],
    ["is cut short", (text: string) => text.slice(0, -2)],
    ["is another's", () => '{"values":{}}'],
    ["has a number that is none", (text: string) => text.replace('"41"', '"-41"')],
    ["has a name twice", (text: string) => text.replace('"disk:a": "41"', '"disk:a": "40",\n    "disk:a": "41"')],
    ["was edited by hand", (text: string) => text.replace("  ", " ")],
    ["is no JSON at all", () => "41"],
    ["holds null", () => "null"],
  ])("that %s is refused, and left as it is", (_, damage) => {
    const path = join(folder(), "state.json");
    written(path);
    const damaged = damage(readFileSync(path, "utf8"));
    writeFileSync(path, damaged);
    for (const create of [false, true]) expect(() => openStateFile(path, { create })).toThrow(/damaged/);
    expect(readFileSync(path, "utf8")).toBe(damaged);
    expect(readdirSync(join(path, ".."))).toEqual(["state.json"]);
  });

  test("belongs to one at a time, by whatever name the file is called", () => {
    const place = folder();
    const path = join(place, "state.json");
    written(path);
    symlinkSync(path, join(place, "other-name.json"));
    const state = openStateFile(path, { create: false });
    for (const name of ["state.json", "other-name.json"]) {
      expect(() => openStateFile(join(place, name), { create: false })).toThrow(
        new RegExp(`process ${process.pid} mints with .*remove that file`),
      );
    }
    state.close();
    expect(kept(join(place, "other-name.json"))).toBe(41n);
  });

  test("that is a link stays one: the file behind it is changed", () => {
    const place = folder();
    const path = join(place, "state.json");
    written(path);
    const link = join(place, "link.json");
    symlinkSync(path, link);
    const state = openStateFile(link, { create: false });
    state.memory("disk").set("a", 43n);
    state.save();
    state.close();
    expect(kept(path)).toBe(43n);
  });

  test("that is a link to nowhere is not made: by the name of the place itself the numbers would begin once more", () => {
    const place = folder();
    const link = join(place, "link.json");
    symlinkSync(join(place, "unmounted", "state.json"), link);
    for (const create of [true, false]) {
      expect(() => openStateFile(link, { create })).toThrow(/link\.json is a link to .*unmounted/);
    }
    expect(readdirSync(place)).toEqual(["link.json"]);
  });

  test("with a second name for the same file is refused: under that name it would stay behind", () => {
    const place = folder();
    written(join(place, "state.json"));
    linkSync(join(place, "state.json"), join(place, "second.json"));
    expect(() => openStateFile(join(place, "state.json"), { create: false })).toThrow(/hard link/);
  });

  test("that is no file is refused before it is read: a device has no end", () => {
    expect(() => openStateFile("/dev/zero", { create: true })).toThrow(StateFileError);
  });

  test("in a folder that is not there, or that is a folder itself, is a failure with a code", () => {
    const place = folder();
    mkdirSync(join(place, "state.json"));
    for (const path of [join(place, "state.json"), join(place, "none", "state.json")]) {
      expect(() => openStateFile(path, { create: true })).toThrow(StateFileError);
    }
    expect(readdirSync(place)).toEqual(["state.json"]);
  });
});
