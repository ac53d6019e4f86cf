/** Runs before each test file. */
import fc from "fast-check";
import { inject } from "vitest";

declare module "vitest" {
  interface ProvidedContext {
    seed: number;
  }
}

fc.configureGlobal({ seed: inject("seed") });

/** When the run is killed, its workers end too, and with them the servers that they started. Otherwise they would finish their tests first. */
if (process.listenerCount("disconnect") === 0) process.once("disconnect", () => process.exit(1));
