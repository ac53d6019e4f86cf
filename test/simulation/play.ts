/** Plays one history, step by step, as fast-check's commands: the tally is the model, the world the real thing. */
import fc from "fast-check";
import { askForLease } from "./faults/course.js";
import { Choices } from "./faults/kind.js";
import { KINDS, type Step } from "./faults/kinds.js";
import { heal } from "./healing.js";
import type { History } from "./history.js";
import type { Tally, Violation } from "./tally.js";
import { type Rules, World } from "./world.js";

export interface Played {
  readonly world: World;
  readonly violation: Violation | undefined;
  /** How many steps were played: fewer than there are when a promise broke before. */
  readonly stepCount: number;
}

/** The first levels of flow let everything arrive; the others so few messages. */
const FLOWS = [Infinity, Infinity, Infinity, Infinity, Infinity, 0, 2, 8];

export async function play({ setting, steps }: History, rules: Rules): Promise<Played> {
  const world = new World(setting, rules);
  await world.begin();
  let stepCount = 0;
  const commands = steps.map((step) => new PlayedStep(step, () => stepCount++));
  await fc.asyncModelRun(() => ({ model: world.tally, real: world }), commands);
  if (world.tally.violation === undefined) await heal(world);
  return { world, violation: world.tally.violation, stepCount };
}

class PlayedStep implements fc.AsyncCommand<Tally, World> {
  constructor(
    readonly step: Step,
    readonly count: () => void,
  ) {}

  /** After a broken promise nothing more is to be learnt. */
  check({ violation }: Readonly<Tally>): boolean {
    return violation === undefined;
  }

  async run(_: Tally, world: World): Promise<void> {
    const { kind, a, b, flow } = this.step;
    this.count();
    // What can't be now is a request for a lease instead: a history has as many steps as it says.
    const isPlayed = await KINDS[kind].play(world, new Choices(a), new Choices(b));
    if (!isPlayed) askForLease(world, new Choices(a), new Choices(b));
    const played = isPlayed ? kind : "lease";
    world.played.set(played, (world.played.get(played) ?? 0) + 1);
    await world.settle(FLOWS[flow]);
  }

  toString(): string {
    return JSON.stringify(this.step);
  }
}
