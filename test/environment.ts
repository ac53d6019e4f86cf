/** Before each test file: what a test starts keeps its state in the folder of the run. */
import { env } from "node:process";
import { inject } from "vitest";

env["XDG_STATE_HOME"] = inject("stateFolder");
