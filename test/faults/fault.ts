/** What a fault is to the suite: a row of the guard's table. */
import type { RedisBinary } from "../redis/redis-binary.js";
import type { World, WorldOptions } from "./world.js";

export interface Fault {
  /** As in the list of faults that the design names. */
  readonly number: number;
  readonly name: string;
  /** For a fault that only the first time finds what it needs. */
  readonly injectionCountMax: number;
  /** Codes that must have been seen at the end, by an importer or in a coordinator's log. */
  readonly expected: readonly string[];
  /** Part of `npm test`, which has one at least for each guarantee. */
  readonly isShort: boolean;
  /** Why it can't happen on this machine; undefined when it can. */
  readonly unavailable: () => string | undefined;
  /** Makes the world that it happens to. */
  begin(options: FaultOptions): Promise<FaultUnderWay>;
}

export interface FaultOptions extends Pick<WorldOptions, "random" | "load"> {
  readonly binary: RedisBinary;
}

/** What every world does and tells, whatever it is made of. */
export interface Scene
  extends Pick<World, "codes" | "callNumberCount" | "problems" | "work" | "beginInjection">,
    Pick<World, "until" | "untilLeasing" | "rest" | "dispose"> {
  readonly received: Pick<World["received"], "runCount">;
  readonly control: Pick<World["control"], "count" | "repeatCount">;
}

interface FaultUnderWay {
  readonly world: Scene;
  /**
   * Does the fault once, puts right what an operator would put right, and types what an operator would type. Importers work all the
   * while. When it resolves, leasing must be able to go on.
   */
  inject(): Promise<void>;
}

/** What the author of a fault says of it, whatever its world. */
export type FaultWords = Pick<Fault, "number" | "name"> &
  Partial<Pick<Fault, "injectionCountMax" | "expected" | "isShort" | "unavailable">>;

export function faultOf(words: FaultWords, begin: Fault["begin"]): Fault {
  const { number, name, injectionCountMax, expected, isShort, unavailable } = words;
  return {
    number,
    name,
    injectionCountMax: injectionCountMax ?? Number.POSITIVE_INFINITY,
    expected: expected ?? [],
    isShort: isShort ?? false,
    unavailable: unavailable ?? (() => undefined),
    begin,
  };
}
