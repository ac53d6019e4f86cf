/** The Python client as `npm run pack` makes it, installed where nothing of the repository is; and its speed. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { folderForTest, REPOSITORY, serve } from "../processes/command.js";
import { noPython, outputOf, PYTHON_CLIENT, python, pythonWith } from "./python.js";

const builder = pythonWith("build", "setuptools", "wheel", "venv");
if (builder === undefined)
  console.log("no wheel is tested: no python3 has the modules build, setuptools, wheel and venv");

test.skipIf(builder === undefined)("the wheel of the Python client works where it is installed", async () => {
  const folder = await folderForTest();
  const script = `import { packPython } from ${JSON.stringify(pathToFileURL(join(REPOSITORY, "scripts", "pack-python.mjs")))};
packPython(process.argv[1]);`;
  await outputOf(process.execPath, "--input-type=module", "--eval", script, folder);
  const files = readdirSync(join(folder, "python")).sort();
  expect(files).toEqual(["callnumber-0.1.0-py3-none-any.whl", "callnumber-0.1.0.tar.gz"]);
  const wheel = join(folder, "python", files[0] as string);
  await outputOf(builder as string, "-m", "venv", join(folder, "venv"));
  const installed = join(folder, "venv", "bin", "python3");
  await outputOf(installed, "-m", "pip", "install", "--quiet", "--no-index", wheel);
  const { url } = await serve("memory:");
  const example = `
import callnumber, pathlib
with callnumber.Client(holder="installed", coordinator=${JSON.stringify(url)}) as client:
    print(callnumber.is_call_number(client.next()), (pathlib.Path(callnumber.__file__).parent / "py.typed").exists())
    print(callnumber.__file__)`;
  const [first, place = ""] = (await outputOf(installed, "-I", "-c", example)).split("\n");
  expect(first).toBe("True True");
  expect(place.startsWith(folder)).toBe(true);
});

test.skipIf(noPython)("the Python client prints its speed", async () => {
  const { stdout } = await python([join(PYTHON_CLIENT, "tests", "speed.py")]);
  console.log(stdout.trim());
  expect(stdout).toMatch(/^next\(\): .*\ntake\(1000\): .*\n$/);
});
