/** What the simulation must catch: the counter jumps with the claim, and not after the quorum has the claim. */
import { type ConfirmStep, decide, isRefusal, keptFields, PHASES, readRecord, type Situation } from "../product.js";
import type { Variant } from "./variant.js";

/**
 * Claim and jump in one step, before anybody has heard of the claim: the record is open on the line at once. Until others hear of it, they may
 * acknowledge leases of another master, above where this one has jumped to.
 *
 * Its epoch is that of its time, without the counts of resynchronisations: with them, nobody who could acknowledge later comes unnoticed, and
 * the order would not matter. So that the order alone is at fault, nobody who has heard of a later claim comes back to a master that has not:
 * what else that epoch would cost, is spared. In this world the guard's own order repeats nothing (`claim-before-jump`).
 */
export const JUMP_BEFORE_WAIT: Variant = {
  name: "jump-before-wait",
  fault: "the counter jumps with the claim, and not after the quorum has the claim",
  breaks: "no run is leased twice",
  focus: {
    groups: ["failover", "cuts", "lag", "routes"],
    setting: { serverCount: 3, hostCount: 2, isOnLine: true, rate: 16, firstRun: 1 },
  },
  epochOf: withoutSyncs,
  sparesReturns: true,
  decide(situation, command) {
    if (command.step === "confirm") return nothingLeftToDo(situation, command) ?? decide(situation, command);
    const claimed = decide(situation, command);
    if (command.step !== "claim" || isRefusal(claimed)) return claimed;
    const { storeId, nonce, isSilenceAccepted } = command;
    const { generation } = claimed.record;
    const keys = { ...situation.keys, fields: keptFields(claimed.record) };
    const confirm = { step: "confirm", storeId, nonce, isSilenceAccepted, generation, floor: 0 } as const;
    return decide({ ...situation, keys }, confirm);
  },
};

/** The same world with the order of the guard: no variant to catch, but what shows that the one above is caught for its order. */
export const CLAIM_BEFORE_JUMP: Variant = {
  name: "claim-before-jump",
  fault: "nothing, in a world where who has heard of a later claim does not come back to a master that has not",
  epochOf: withoutSyncs,
  sparesReturns: true,
};

function withoutSyncs(epoch: string): string {
  return epoch.split(":").slice(0, 2).join(":");
}

function nothingLeftToDo({ keys, namespace, server }: Situation, { generation }: ConfirmStep) {
  const record = readRecord(keys.fields, namespace);
  if (isRefusal(record) || record.phase !== PHASES.open) return undefined;
  return record.generation === generation && record.epoch === server.epoch ? { record, runCount: 0 } : undefined;
}
