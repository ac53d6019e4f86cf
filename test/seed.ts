/** Before each test file: property tests draw from the seed of the run, which vitest.config.ts prints, so a failure can be run again. */
import fc from "fast-check";
import { inject } from "vitest";

declare module "vitest" {
  interface ProvidedContext {
    seed: number;
  }
}

fc.configureGlobal({ seed: inject("seed") });
