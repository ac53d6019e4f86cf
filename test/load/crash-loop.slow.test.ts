/** Real processes: an importer that crashes and is started again and again, beside one that works. The one that works is the clock. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { capacityAnswerSchema } from "@callnumber/protocol/operator-schemas";
import { expect, onTestFinished, test } from "vitest";
import { FREE_STARTS } from "../../packages/coordinator/src/limits/start-pause.js";
import { folderForTest, serve } from "../processes/command.js";

const PROGRAM = join(import.meta.dirname, "holder-process.mjs");
/** As a supervisor with several processes: the free starts are used up sooner. */
const SUPERVISORS = 4;

test("an importer in a crash loop gets fewer and fewer leases and raises an alarm, and its neighbour feels nothing", async () => {
  const store = `sqlite:${join(await folderForTest(), "store.db")}`;
  const limits = ["--holder-burst-runs", "128", "--token-runs-per-second", "16"];
  const { url } = await serve(store, "--create", ...limits, "--log-level", "warn");
  const neighbour = new Neighbour(url);
  await expect.poll(() => neighbour.leaseCount).toBeGreaterThan(0);

  const crashing = new CrashLoop(url);
  const begin = neighbour.leaseCount;
  await expect.poll(() => crashing.leaseCount).toBeGreaterThanOrEqual(FREE_STARTS);
  const asLong = neighbour.leaseCount - begin;
  const [before, from] = [crashing.leaseCount, neighbour.leaseCount];
  await expect.poll(() => neighbour.leaseCount - from).toBeGreaterThanOrEqual(asLong);
  const after = crashing.leaseCount - before;

  expect(after).toBeLessThan(before / 2);
  expect(crashing.refusals).toContain("rate_limited");
  for (const code of ["rate_limited", "overloaded"]) expect(neighbour.refusals).not.toContain(code);
  const capacity = capacityAnswerSchema.parse(await (await fetch(`${url}/v1/namespaces/main/capacity`)).json());
  const alarm = capacity.alarms.find(({ name }) => name === "holder_restarts");
  expect(alarm?.explanation).toMatch(/^Holder "letters" on .* was started \d+ times .* Each further start waits \d+ s/);
});

class Neighbour {
  leaseCount = 0;
  readonly refusals = new Set<string>();

  constructor(coordinator: string) {
    const child = started(coordinator, { name: "lists", crashes: false });
    child.on("message", (told: string) => {
      if (told === "lease") this.leaseCount++;
      else this.refusals.add(told);
    });
    onTestFinished(() => void child.kill("SIGKILL"));
  }
}

class CrashLoop {
  leaseCount = 0;
  readonly refusals = new Set<string>();
  readonly #coordinator: string;
  readonly #children = new Set<ChildProcess>();
  #isOver = false;

  constructor(coordinator: string) {
    this.#coordinator = coordinator;
    const running = Array.from({ length: SUPERVISORS }, () => this.#startAgainAndAgain());
    onTestFinished(async () => {
      this.#isOver = true;
      for (const child of this.#children) child.kill("SIGKILL");
      await Promise.all(running);
    });
  }

  async #startAgainAndAgain(): Promise<void> {
    while (!this.#isOver) {
      const child = started(this.#coordinator, { name: "letters", crashes: true });
      this.#children.add(child);
      child.on("message", (told: string) => {
        if (told === "lease") this.leaseCount++;
        else this.refusals.add(told);
      });
      await once(child, "exit");
      this.#children.delete(child);
    }
  }
}

function started(coordinator: string, settings: { readonly name: string; readonly crashes: boolean }): ChildProcess {
  return fork(PROGRAM, [JSON.stringify({ coordinator, ...settings })]);
}
