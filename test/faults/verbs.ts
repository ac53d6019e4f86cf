/** What an operator types: the operations behind the verbs of `callnumber`, with the suite's bounds. */
import { setTimeout as delay } from "node:timers/promises";
import type { CheckpointFile } from "../../packages/coordinator/src/guard/checkpoint.js";
import { openCheckpointFile } from "../../packages/coordinator/src/guard/checkpoint-file.js";
import {
  refusalOf as advanceRefusalOf,
  advanceVersion,
  planAdvance,
} from "../../packages/coordinator/src/operator/advance-version.js";
import { planRecovery, recoverNamespace } from "../../packages/coordinator/src/operator/recover.js";
import type { Store } from "../../packages/coordinator/src/stores/store.js";
import { parseStoreUrl, placeOf } from "../../packages/coordinator/src/stores/store-url.js";
import { unlessLate } from "../unless-late.js";
import { BOUNDS, NAMESPACE, type World } from "./world.js";

/** What is remembered of this world's store, or of another one, outside of it. */
export function checkpointFileOf(world: World, storeUrl = world.storeUrl): CheckpointFile {
  return openCheckpointFile({
    folder: world.checkpointDir,
    place: placeOf(parseStoreUrl(storeUrl)),
    namespace: NAMESPACE,
  });
}

/** Types a verb, again when it was refused only because it came late. */
function typed(world: World, verb: (store: Store) => Promise<void>): Promise<void> {
  return unlessLate(() => world.onStore(verb));
}

/** @throws CoordinatorError as the verb does. */
export async function advance(world: World): Promise<void> {
  await typed(world, async (store) => {
    const checkpointFile = checkpointFileOf(world);
    const common = { store, namespace: NAMESPACE, checkpointFile, bounds: BOUNDS };
    const options = { ...common, isForcedEarly: false, isClockChecked: false };
    try {
      const plan = await planAdvance(options);
      const refusal = advanceRefusalOf(plan, options);
      if (refusal !== undefined) throw refusal;
      await advanceVersion(options, plan);
    } finally {
      checkpointFile.close();
    }
  });
}

interface Given {
  readonly isClockChecked?: boolean;
  readonly storeId?: string;
  readonly nodeCount?: number;
}

/** @throws CoordinatorError as the verb does. */
export async function recover(
  world: World,
  { isClockChecked = false, storeId = world.storeId, nodeCount }: Given = {},
): Promise<void> {
  await typed(world, async (store) => {
    const checkpointFile = checkpointFileOf(world);
    const options = {
      store,
      namespace: NAMESPACE,
      checkpointFile,
      bounds: BOUNDS,
      storeId,
      floors: [],
      nodeCount,
      isClockChecked,
      watchMs: 3 * BOUNDS.heartbeatEveryMs,
      pause: async (pauseMs: number) => void (await delay(pauseMs)),
    };
    try {
      await recoverNamespace(options, await planRecovery(options));
    } finally {
      checkpointFile.close();
    }
  });
}

/** The code that something was refused with. @throws Error when it was not refused, or without a code. */
export async function refusalOf(world: World, what: string, done: Promise<unknown>): Promise<string> {
  let code: unknown;
  try {
    await done;
  } catch (error) {
    code = (error as { code?: unknown }).code;
    if (typeof code !== "string") throw error;
    world.noteCode(code);
    return code;
  }
  throw new Error(`${what} should have been refused`);
}

/** @throws Error when it is not refused with that code. */
export async function mustRefuse(world: World, code: string, what: string, done: Promise<unknown>): Promise<void> {
  const seen = await refusalOf(world, what, done);
  if (seen !== code) throw new Error(`${what} was refused with ${seen} instead of ${code}`);
}
