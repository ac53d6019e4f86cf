/**
 * Pause and resume, for planned work: leasing ends before a server is stopped, and goes on afterwards without a jump.
 * What proves that nothing was restored in between is a secret that only the memory of the pausing process holds: a file can be
 * restored together with the store, the memory of a running process can't.
 */
import { randomBytes } from "node:crypto";
import { ledgerIdOf } from "@callnumber/protocol/wire";
import { CoordinatorError } from "../errors.js";
import { sealOf } from "../guard/decisions.js";
import type { Outcome } from "../store.js";
import { openGuard, type VerbOptions } from "./open-guard.js";

/** A namespace that is paused, in the memory of the process that paused it. */
export interface Pause {
  /** Ledger id of the last run leased. */
  readonly mark: number;
  readonly generation: number;
  /**
   * Goes on where it was paused. Once: the secret leaves the memory before it is sent, so that no answer that got lost can lift
   * two seals. `nodeCount`: how many data nodes there are from now on; undefined for as many as before.
   * @throws CoordinatorError `claim_raced` when the store is not as it was paused, and whatever stands against leasing: then
   *   only `recover` helps.
   */
  resume(options: { readonly nodeCount: number | undefined }): Promise<Outcome>;
  /**
   * Looks at the store; to be called now and then while the pause lasts. A record that is not as it was paused has lost its seal and
   * may be leased from, however it looks when it is to be resumed: the secret is forgotten then.
   * @throws CoordinatorError `claim_raced` when it was so. A store that can't be reached or read tells nothing.
   */
  look(): Promise<void>;
}

/** Pauses a namespace. @throws CoordinatorError every refusal of a lease: nothing is changed. */
export async function pauseNamespace(options: VerbOptions): Promise<Pause> {
  const guard = await openGuard(options);
  let secret: string | undefined = randomBytes(32).toString("hex");
  const seal = sealOf(secret);
  const { after } = await guard.seal(seal);
  const { generation, version, highWaterMark } = after;
  const mark = ledgerIdOf(version, highWaterMark);
  return {
    mark,
    generation,
    resume: async ({ nodeCount }) => {
      // A store that can't be reached yet must not cost the only try.
      await options.store.readNamespace(options.namespace);
      const sent = secret;
      secret = undefined;
      if (sent === undefined) {
        throw new CoordinatorError(
          "claim_raced",
          `namespace "${options.namespace}" was resumed by this process already, or resuming failed; "callnumber recover" says what is so`,
        );
      }
      return await guard.resume({ secret: sent, mark, generation, nodeCount });
    },
    look: async () => {
      const record = await options.store.readNamespace(options.namespace).catch(() => undefined);
      if (record === undefined || secret === undefined) return;
      if (record.seal === seal && record.generation === generation) return;
      secret = undefined;
      throw new CoordinatorError(
        "claim_raced",
        `the store lost the pause of namespace "${options.namespace}": it went back to before it, or somebody recovered it. It may be ` +
          'leased from again, and is not resumed by this process whatever becomes of it. "callnumber recover" is the way on',
      );
    },
  };
}
