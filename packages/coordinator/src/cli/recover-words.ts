/** What a recovery found, would set and would cost, for people and for programs. */
import { runOfLedgerId } from "@callnumber/protocol/wire";
import type { RecoverPlan } from "../operator/recover.js";
import { refusalOf } from "../operator/recover.js";
import { type ListedNumbers, numbersInWords } from "./numbers-option.js";
import { grouped, instant } from "./print.js";

/** What can't be set is not told: why not, the refusal says. */
export function planInWords(plan: RecoverPlan, store: string, numbers: ListedNumbers | undefined): string {
  const { namespace, storeId, found, fault, checkpoint, floors } = plan;
  return [
    `namespace ${namespace} of ${store}, store id ${storeId}`,
    "found",
    found === undefined
      ? `  the record         ${fault === undefined || fault.code === "namespace_not_initialised" ? "none: the store holds no such namespace" : `damaged: ${fault.fault ?? fault.message}`}`
      : `  the record         mark ${grouped(found.highWaterMark)}, generation ${found.generation}, ${PHASE_WORDS[found.phase] ?? "?"}, written ${instant(found.changedAtMs)}`,
    checkpoint === undefined
      ? "  the witness        nothing is remembered on this machine"
      : `  the witness        run ${grouped(runOfLedgerId(checkpoint.ledgerId).run)}, generation ${checkpoint.generation}`,
    ...floors
      .filter(({ from }) => from === "--floor")
      .map(({ ledgerId }) => `  --floor            run ${grouped(runOfLedgerId(ledgerId).run)}`),
    ...(numbers === undefined ? [] : [numbersInWords(numbers)]),
    ...(refusalOf(plan) === undefined ? [...(plan.isHealthy ? HEALTHY : []), ...targetInWords(plan)] : []),
  ].join("\n");
}

const HEALTHY = [
  "nothing is wrong with the record: no recovery is needed. Start the coordinator: after a restart or a loss it",
  "recovers automatically. Recover here only when its status shows operator_needed",
];

function targetInWords(plan: RecoverPlan): readonly string[] {
  const { target, skippedRunCount, nextRunInMs, nodeCount } = plan;
  return [
    "recovering sets",
    `  the mark           to run ${grouped(target)}, on the clock line: no run of this store above it was ever leased`,
    `  data nodes         ${nodeCount}`,
    "and costs",
    `  runs               ${grouped(skippedRunCount)} are never leased`,
    `  time               the next run is free ${Math.ceil(nextRunInMs / 1000)} s later, about`,
  ];
}

const PHASE_WORDS: Readonly<Record<number, string>> = { 0: "open", 1: "claimed, not confirmed", 2: "sealed" };

export function planAsJson(
  { found, fault, again: _again, ...rest }: RecoverPlan,
  numbers: ListedNumbers | undefined,
): object {
  const plan = { ...rest, ...(numbers && { numbers }) };
  if (found === undefined) return { ...plan, found: null, fault: fault?.code ?? null };
  const { receiptKey: _, ...told } = found;
  return { ...plan, found: told, fault: null };
}
