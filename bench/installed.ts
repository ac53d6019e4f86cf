/** A command as users have it: packed, and installed from its tarball. */
import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { folderForTest, REPOSITORY } from "../test/processes/command.js";

/** Installs a package in an empty directory, without a network. Returns the directory of the package. */
export async function installed(name: "callnumber" | "callnumber-archive"): Promise<string> {
  const directory = await folderForTest();
  const options = { cwd: directory, stdio: "ignore" } as const;
  execFileSync(process.execPath, [join(REPOSITORY, "scripts", "pack.mjs"), directory], options);
  const tarball = readdirSync(directory).find((file) => file.replace(/-\d.*/, "") === name) ?? "";
  execFileSync("npm", ["install", "--offline", "--ignore-scripts", join(directory, tarball)], options);
  return join(directory, "node_modules", name);
}
