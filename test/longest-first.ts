/** The files that take minutes come first: begun last, one of them would run alone while the others wait. */
import type { TestSpecification } from "vitest/node";
import { BaseSequencer } from "vitest/node";

/** The longest first. What is not named here takes seconds. */
const LONGEST = [
  "test/faults/",
  "test/simulation/",
  "test/story/",
  "packages/cli/test/redaction",
  "packages/cli/test/recover-",
  "packages/cli/test/move-command",
  "packages/coordinator/test/move.test",
  "packages/coordinator/test/redis-store",
  "packages/coordinator/test/trim-crash",
  "packages/coordinator/test/redis-topology-cluster",
  "packages/coordinator/test/move-crash",
  "packages/coordinator/test/sqlite-",
  "test/console/",
  "packages/client/test/run-numbers",
  "packages/coordinator/test/http-timeouts",
] as const;

export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    return sorted.toSorted((one, other) => placeOf(one) - placeOf(other));
  }
}

function placeOf({ moduleId }: TestSpecification): number {
  const place = LONGEST.findIndex((part) => moduleId.includes(part));
  return place === -1 ? LONGEST.length : place;
}
