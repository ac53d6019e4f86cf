/** The packages as `npm run pack` makes them: what they contain, and how they are published. */
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { folderForTest, REPOSITORY } from "../processes/command.js";
import {
  ARCHIVE_PACKAGE,
  COMMAND_PACKAGE,
  install,
  LIBRARIES,
  ONLY_ESM,
  packForTests,
  run,
  tarballOf,
  tarballs,
  version,
} from "./packed.js";

packForTests();

test.each([...LIBRARIES, COMMAND_PACKAGE, ARCHIVE_PACKAGE])(
  "the package %s contains its license, README and built files, and neither maps nor sources",
  async (name) => {
    const paths = (await run(tarballs, "tar", "-tf", tarballOf(name))).trim().split("\n");
    const expected = ["LICENSE", "README.md", "package.json"].map((path) => `package/${path}`);
    expect(paths).toEqual(expect.arrayContaining([...expected, expect.stringMatching(/^package\/dist\/.*\.js$/)]));
    // Maps lead to sources that are not there.
    const own =
      /^package\/(?:LICENSE|LICENSES\.md|README\.md|package\.json|bin\/[\w.-]+\.js|lua\/[\w.-]+\.lua|sql\/[\w.-]+\.sql|man\/callnumber\.1|assets\/[\w.-]+|test-vectors\/[\w.-]+|prebuilds\/.*\.node|(?:cjs|dist)\/.*[^/])$/;
    expect(paths.filter((path) => !own.test(path) || /(?:\.map|\.tsbuildinfo)$|\/\./.test(path))).toEqual([]);
    const manifest = JSON.parse(await run(tarballs, "tar", "-xOf", tarballOf(name), "package/package.json"));
    expect(manifest).toMatchObject({ name, version, license: "MIT", engines: { node: ">=20.19" } });
    expect(JSON.stringify(manifest)).not.toContain("workspace:");
    const license = await run(tarballs, "tar", "-xOf", tarballOf(name), "package/LICENSE");
    expect(license).toBe(readFileSync(join(REPOSITORY, "LICENSE"), "utf8"));
  },
);

// Those of the others resolve everywhere: `npm run check`.
test.each(ONLY_ESM)("the types of %s resolve where ES modules do", async (name) => {
  await run(REPOSITORY, "npx", "attw", "--profile", "esm-only", "--format", "ascii", tarballOf(name));
});

test("a browser bundle of the codec is small, and has the ES module even where it is required", async () => {
  const directory = await folderForTest();
  await install(directory, "--omit=dev", tarballOf("@callnumber/protocol"));
  writeFileSync(join(directory, "page.js"), 'export { decodeCallNumber } from "@callnumber/protocol/codec";\n');
  const bundled = (...words: string[]) =>
    run(REPOSITORY, "npx", "esbuild", "--bundle", "--format=esm", "--platform=browser", ...words);
  const bytes = (await bundled("--minify", join(directory, "page.js"))).length;
  console.log(`a browser bundle that decodes call numbers: ${bytes} bytes`);
  expect(bytes).toBeLessThan(5_000);
  // Otherwise a bundle that does both would hold two copies.
  writeFileSync(join(directory, "required.js"), 'console.log(require("@callnumber/protocol/codec"));\n');
  for (const page of ["page.js", "required.js"]) {
    const text = await bundled(join(directory, page));
    expect(text).toContain("@callnumber/protocol/dist/codec.js");
    expect(text).not.toContain("@callnumber/protocol/cjs/");
  }
});

test("a release has all packages in one version, and plain npm publishes none", async () => {
  const release = await settled(REPOSITORY, process.execPath, "scripts/release.mjs", "--dry-run");
  const published = release.stdout.split("\n").filter((line) => line.startsWith("+ "));
  expect(published).toEqual([...LIBRARIES, COMMAND_PACKAGE, ARCHIVE_PACKAGE].map((name) => `+ ${name}@${version}`));
  expect(await settled(REPOSITORY, process.execPath, "scripts/release.mjs", "--tag")).toMatchObject({
    code: 1,
    stdout: "",
  });
  // Logged in, at a registry that does not exist.
  const registry = ["--registry", "http://127.0.0.1:1/", "--//127.0.0.1:1/:_authToken=x", "--fetch-retries=0"];
  const directories = ["protocol", "client", "schemes", "coordinator", "cli", "archive"].map((name) =>
    join(REPOSITORY, "packages", name),
  );
  for (const { stderr } of await Promise.all(directories.map((cwd) => settled(cwd, "npm", "publish", ...registry))))
    expect(stderr).toContain("npm error code EPRIVATE");
});

function settled(cwd: string, program: string, ...words: readonly string[]) {
  return promisify(execFile)(program, words, { cwd }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({ code, stdout, stderr }),
  );
}
