/**
 * What is tried again when it came late. On a busy machine a step can be on its way to Redis for longer than a suite lets clocks differ;
 * it is refused then and has changed nothing, and whoever asked is told to look at the clocks and to ask again.
 */
import { CoordinatorError } from "../packages/coordinator/src/errors.js";

/** Clocks that are set wrong stay wrong: then the last refusal is the answer. */
const TRIES_MAX = 100;

/** @throws whatever `ask` throws; `clock_skew` when it was refused with that each time. */
export async function unlessLate<T>(ask: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await ask();
    } catch (error) {
      const isLate = error instanceof CoordinatorError && error.code === "clock_skew";
      if (!isLate || tries === TRIES_MAX) throw error;
    }
  }
}
