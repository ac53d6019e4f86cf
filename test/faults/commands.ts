/** What an operator runs: the operations behind the commands of `callnumber`, with the suite's bounds. */
import { setTimeout as delay } from "node:timers/promises";
import { type CheckpointFile, NO_CHECKPOINT_FILE } from "../../packages/coordinator/src/guard/checkpoint.js";
import { openCheckpointFile } from "../../packages/coordinator/src/guard/checkpoint-file.js";
import type { Bounds } from "../../packages/coordinator/src/guard/clocks.js";
import {
  refusalOf as advanceRejectionOf,
  advanceVersion,
  planAdvance,
} from "../../packages/coordinator/src/operator/advance-version.js";
import { planRecovery, recoverNamespace } from "../../packages/coordinator/src/operator/recover.js";
import type { Store } from "../../packages/coordinator/src/stores/store.js";
import { parseStoreUrl, placeOf } from "../../packages/coordinator/src/stores/store-url.js";
import { unlessLate } from "../backdated.js";
import { BOUNDS, NAMESPACE, type World } from "./world.js";

/** What is remembered of this world's store, or of another one, outside of it. */
export function checkpointFileOf(world: World, storeUrl = world.storeUrl): CheckpointFile {
  return openCheckpointFile({
    folder: world.checkpointDir,
    place: placeOf(parseStoreUrl(storeUrl)),
    namespace: NAMESPACE,
  });
}

/** What every command is given. */
interface CommandOptions {
  readonly store: Store;
  readonly namespace: string;
  readonly checkpointFile: CheckpointFile;
  readonly bounds: Bounds;
}

/** Runs a command, again when it failed only because it came late. */
function run(world: World, command: (common: CommandOptions) => Promise<unknown>): Promise<void> {
  return unlessLate(() =>
    world.onStore(async (store) => {
      const checkpointFile = checkpointFileOf(world);
      try {
        await command({ store, namespace: NAMESPACE, checkpointFile, bounds: BOUNDS });
      } finally {
        checkpointFile.close();
      }
    }),
  );
}

/** @throws CoordinatorError as the command does. */
export async function advance(world: World, { isForcedEarly = false } = {}): Promise<void> {
  await run(world, async (common) => {
    const options = { ...common, isForcedEarly, isClockChecked: false };
    const plan = await planAdvance(options);
    const rejection = advanceRejectionOf(plan, options);
    if (rejection !== undefined) throw rejection;
    await advanceVersion(options, plan);
  });
}

interface RecoverOptions {
  readonly isClockChecked?: boolean;
  readonly storeId?: string;
  readonly nodeCount?: number;
}

/** @throws CoordinatorError as the command does. */
export async function recover(
  world: World,
  { isClockChecked = false, storeId = world.storeId, nodeCount }: RecoverOptions = {},
): Promise<void> {
  await run(world, (common) => recoverIn(common, { isClockChecked, storeId, nodeCount }));
}

/** As `recover`, of a copy of the store on another server, by an operator who has no checkpoint. */
export async function recoverCopy({ storeId }: World, store: Store): Promise<void> {
  const common = { store, namespace: NAMESPACE, checkpointFile: NO_CHECKPOINT_FILE, bounds: BOUNDS };
  await unlessLate(() => recoverIn(common, { isClockChecked: false, storeId, nodeCount: undefined }));
}

async function recoverIn(
  common: CommandOptions,
  given: { isClockChecked: boolean; storeId: string; nodeCount: number | undefined },
): Promise<void> {
  const pause = async (pauseMs: number) => void (await delay(pauseMs));
  const options = { ...common, ...given, floors: [], watchMs: 3 * BOUNDS.heartbeatEveryMs, pause };
  await recoverNamespace(options, await planRecovery(options));
}

/** The code that something was rejected with. @throws Error when it was not rejected, or without a code. */
export async function rejectionOf(world: World, what: string, done: Promise<unknown>): Promise<string> {
  let code: unknown;
  try {
    await done;
  } catch (error) {
    code = (error as { code?: unknown }).code;
    if (typeof code !== "string") throw error;
    world.codes.add(code);
    return code;
  }
  throw new Error(`${what} should have been rejected`);
}

/** @throws Error when it is not rejected with that code. */
export async function expectRejection(world: World, code: string, what: string, done: Promise<unknown>): Promise<void> {
  const seen = await rejectionOf(world, what, done);
  if (seen !== code) throw new Error(`${what} was rejected with ${seen} instead of ${code}`);
}
