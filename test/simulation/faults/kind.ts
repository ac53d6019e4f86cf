/** What a kind of step is: part of the course of things, or a fault that is injected. */
import type { World } from "../world.js";

export interface Kind {
  /** Histories draw their faults from some groups only; `course` is always among them. */
  readonly group: string;
  /** How often it is drawn, relative to the others. */
  readonly weight: number;
  /**
   * Plays it; returns false, and has done nothing, when it can't be now. `a` and `b` are two numbers of the step, whose choices are taken with `Choices`; 0 means
   * the plainest, which is where shrinking leads.
   */
  readonly play: (world: World, a: Choices, b: Choices) => false | void | Promise<false | void>;
}

/** @see Kind for what they mean. */
export function kind(group: string, weight: number, play: Kind["play"]): Kind {
  return { group, weight, play };
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
