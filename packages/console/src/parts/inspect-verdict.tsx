/** The coordinator's answer about a call number, in words. */
import type { InspectAnswer } from "@callnumber/protocol/wire";
import { ledgerIdOf } from "@callnumber/protocol/wire";
import { addressOf } from "../route.js";
import { asSentence, grouped } from "../words.js";
import { LeaseFields } from "./lease-fields.js";
import { Notice, type NoticeKind } from "./notice.js";
import { SequenceBar } from "./sequence-bar.js";

const VERDICTS: Readonly<Record<InspectAnswer["verdict"], readonly [NoticeKind, string]>> = {
  malformed: ["warning", "Malformed"],
  other_version: ["warning", "Of another version"],
  never_leased: ["warning", "Never leased"],
  reported: ["good", "Leased, and reported as made"],
  unreported: ["notice", "Leased, but not reported"],
};

export function InspectVerdict({ answer }: { answer: InspectAnswer }) {
  const [kind, title] = VERDICTS[answer.verdict];
  // What is malformed was said already, without asking.
  if (answer.verdict === "malformed") return null;
  return (
    <>
      <div role="status">
        <Notice kind={kind} title={title}>
          <p>{asSentence(answer.explanation)}</p>
        </Notice>
      </div>
      {"lease" in answer && (
        <>
          <SequenceBar state={answer.state} lastSequence={answer.lastSequence} marked={answer.sequence} />
          <LeaseFields lease={answer.lease} />
          <p>
            <a href={addressOf(answer.namespace, "runs", ledgerIdOf(answer.version, answer.run))}>
              All about run {grouped(answer.run)}
            </a>
          </p>
        </>
      )}
    </>
  );
}
