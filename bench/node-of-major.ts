/** Another Node than the one that runs, from npm, kept in node_modules/.cache: for `npm run bench -- --node 24`. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";

const CACHE = join(import.meta.dirname, "..", "..", "node_modules", ".cache", "node");

/** Resolves to the path of its binary. Ends the process, and says why, when there is none to be had. */
export async function nodeOfMajor(major: string): Promise<string> {
  const home = join(CACHE, major);
  const binary = join(home, "package", "bin", process.platform === "win32" ? "node.exe" : "node");
  if (!existsSync(binary)) fetchInto(home, major);
  return binary;
}

function fetchInto(home: string, major: string): void {
  const name = `node-${process.platform === "win32" ? "win" : process.platform}-${process.arch}@${major}`;
  const begun = `${home}.begun`;
  console.error(`fetching ${name} from npm, once`);
  rmSync(begun, { recursive: true, force: true });
  mkdirSync(begun, { recursive: true });
  try {
    execFileSync("npm", ["pack", name, "--silent", "--pack-destination", begun], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    const [file] = readdirSync(begun);
    execFileSync("tar", ["-xzf", join(begun, file as string), "-C", begun], { stdio: ["ignore", "ignore", "pipe"] });
  } catch (error) {
    const { stderr, message } = error as Error & { readonly stderr?: Buffer };
    rmSync(begun, { recursive: true, force: true });
    console.error(`Node ${major} can't be had here, so nothing was measured: ${stderr?.toString().trim() || message}`);
    process.exit(1);
  }
  // A fetch that is cut short must not look finished to the next run.
  rmSync(home, { recursive: true, force: true });
  renameSync(begun, home);
}
