/** What the simulation must catch: the counter jumps with the claim, and not after the quorum has the claim. */
import { type ConfirmStep, decide, isRefusal, keptFields, PHASES, readRecord, type Situation } from "../product.js";
import type { Variant } from "./variant.js";

/**
 * Claim and jump in one step, before anybody has heard of the claim: the record is open on the line at once. Until others hear of it, they may
 * acknowledge leases of another master, above where this one has jumped to.
 *
 * Its epoch is that of its time, without the counts of resynchronisations: with them, nobody who could acknowledge later comes unnoticed, and
 * the order would not matter. So that the order counts for most, nobody who has heard of a later claim is told to follow a master that has
 * not. A replica that forgets the claim in a crash still costs that epoch a run now and then, in the guard's own order too.
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

function withoutSyncs(epoch: string): string {
  return epoch.split(":").slice(0, 2).join(":");
}

function nothingLeftToDo({ keys, namespace, server }: Situation, { generation }: ConfirmStep) {
  const record = readRecord(keys.fields, namespace);
  if (isRefusal(record) || record.phase !== PHASES.open) return undefined;
  return record.generation === generation && record.epoch === server.epoch ? { record, runCount: 0 } : undefined;
}
