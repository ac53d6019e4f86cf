/** The release number, from the package itself. */
import { createRequire } from "node:module";

export const RELEASE = (createRequire(import.meta.url)("../package.json") as { version: string }).version;
