/** All kinds of steps, by name: the course of things, and every fault that is injected. */
import type { World } from "../world.js";
import { CLOCK_FAULTS, HOST_FAULTS, NETWORK_FAULTS } from "./coordinator-faults.js";
import { COURSE, OPERATOR_DEEDS } from "./course.js";
import { RECORD_FAULTS, SERVER_FAULTS } from "./server-faults.js";

export interface Kind {
  /** Histories draw their faults from some groups only; `course` is always among them. */
  readonly group: string;
  /** How often it is drawn, beside the others. */
  readonly weight: number;
  /**
   * Plays it; false when it can't be now. `a` and `b` are two numbers of the step, whose choices are taken with `Choices`; 0 stands for
   * the plainest, which is where shrinking leads.
   */
  readonly play: (world: World, a: Choices, b: Choices) => boolean | Promise<boolean>;
}

/** A number as a row of choices. */
export class Choices {
  #rest: number;

  constructor(number: number) {
    this.#rest = number;
  }

  /** 0 to `count - 1`. */
  of(count: number): number {
    const chosen = this.#rest % count;
    this.#rest = Math.floor(this.#rest / count);
    return chosen;
  }

  one<T>(items: readonly T[]): T {
    return items[this.of(items.length)] as T;
  }

  /** Mostly false; false for 0. */
  isRare(oneIn: number): boolean {
    return this.of(oneIn) === oneIn - 1;
  }
}

export const KINDS = {
  ...COURSE,
  ...NETWORK_FAULTS,
  ...HOST_FAULTS,
  ...SERVER_FAULTS,
  ...RECORD_FAULTS,
  ...CLOCK_FAULTS,
  ...OPERATOR_DEEDS,
} satisfies Record<string, Kind>;

export type KindName = keyof typeof KINDS;

export const GROUPS: readonly string[] = [...new Set(Object.values(KINDS).map(({ group }) => group))];

export interface Step {
  readonly kind: KindName;
  readonly a: number;
  readonly b: number;
  /** How much of what is under way arrives before the next step: 0 to 4 everything, else little or nothing. */
  readonly flow: number;
}
