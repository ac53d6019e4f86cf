/** Part of `npm run check`: mypy, strict, on the Python client, its tests and its example. Says so where mypy is missing. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const CLIENT = fileURLToPath(new URL("../clients/python", import.meta.url));
const CHECKED = ["src", "tests", "../../examples/minimal-importer-python/import_mail.py"];

const { status, stdout, stderr, error } = spawnSync("mypy", CHECKED, { cwd: CLIENT, encoding: "utf8" });
if (error?.code === "ENOENT") {
  console.log("skipped: there is no mypy on PATH (Debian: mypy)");
} else {
  console.log(`${stdout ?? ""}${stderr ?? ""}${error?.message ?? ""}`.trim());
  process.exitCode = status ?? 1;
}
