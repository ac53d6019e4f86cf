/** What a recovery found, would set and would cost, for people and for programs. */
import { runOfLedgerId } from "@callnumber/protocol/wire";
import { refusalOf } from "../operator/recover.js";
import type { RecoverPlan } from "../operator/recover-plan.js";
import { leftAboveOf } from "../operator/recover-stores.js";
import { grouped, instant } from "./print.js";
import { archiveInWords, type Scanned } from "./scan-option.js";
import { logsInWords } from "./scanned-logs.js";

/** What can't be set is not told: why not, the refusal says. */
export function planInWords(plan: RecoverPlan, store: string, { archive, logs }: Scanned): string {
  const { namespace, storeId, found, fault, witnessed, floors } = plan;
  return [
    `namespace ${namespace} of ${store}, store id ${storeId}`,
    "found",
    found === undefined
      ? `  the record         ${fault === undefined || fault.code === "namespace_not_initialised" ? "none: the store holds no such namespace" : `damaged: ${fault.fault ?? fault.message}`}`
      : `  the record         mark ${grouped(found.highWaterMark)}, generation ${found.generation}, ${PHASE_WORDS[found.phase] ?? "?"}, written ${instant(found.changedAtMs)}`,
    witnessed === undefined
      ? "  the witness        nothing is remembered on this machine"
      : `  the witness        run ${grouped(runOfLedgerId(witnessed.ledgerId).run)}, generation ${witnessed.generation}`,
    ...floors
      .filter(({ from }) => from === "--floor")
      .map(({ ledgerId }) => `  --floor            run ${grouped(runOfLedgerId(ledgerId).run)}`),
    ...(archive === undefined ? [] : archiveInWords(archive)),
    ...logsInWords(namespace, storeId, logs),
    ...(refusalOf(plan) === undefined ? [...(plan.isHealthy ? HEALTHY : []), ...targetInWords(plan)] : []),
  ].join("\n");
}

const HEALTHY = [
  "nothing is wrong with the record: no recovery is needed. Start the coordinator: after a restart or a loss it",
  "recovers automatically. Recover here only when its status shows operator_needed",
];

function targetInWords(plan: RecoverPlan): readonly string[] {
  const { target, skippedRunCount, nextRunInMs, nodeCount } = plan;
  const above = leftAboveOf(plan);
  return [
    "recovering sets",
    `  the mark           to run ${grouped(target)}, on the clock line: no run of this store above it was ever leased`,
    ...(above === undefined
      ? []
      : [
          `                     run ${grouped(runOfLedgerId(above.ledgerId).run)} of store id ${above.storeId} was, and can come again here`,
        ]),
    `  data nodes         ${nodeCount}`,
    "and costs",
    `  runs               ${grouped(skippedRunCount)} are never leased`,
    `  time               the next run is free ${Math.ceil(nextRunInMs / 1000)} s later, about`,
  ];
}

const PHASE_WORDS: Readonly<Record<number, string>> = { 0: "open", 1: "claimed, not confirmed", 2: "sealed" };

export function planAsJson({ found, fault, again: _again, ...rest }: RecoverPlan, { archive, logs }: Scanned): object {
  const plan = { ...rest, ...(archive && { archive }), ...(logs.length > 0 && { logs }) };
  if (found === undefined) return { ...plan, found: null, fault: fault?.code ?? null };
  const { receiptKey: _, ...told } = found;
  return { ...plan, found: told, fault: null };
}
