/** The coordinator's answer about a call number, in words. */
import type { InspectAnswer, LeaseNeighbours } from "@callnumber/protocol/wire";
import { ledgerIdOf } from "@callnumber/protocol/wire";
import { asSentence, grouped } from "../format.js";
import { runs } from "../format-event.js";
import { addressOf } from "../route.js";
import { InspectHints } from "./inspect-hints.js";
import { LeaseFields } from "./lease.js";
import { Notice, type NoticeKind } from "./notice.js";
import { SequenceBar } from "./sequence-bar.js";

const VERDICTS: Readonly<Record<InspectAnswer["verdict"], readonly [NoticeKind, string]>> = {
  malformed: ["warning", "Malformed"],
  other_version: ["warning", "Of another version"],
  never_leased: ["warning", "Never leased"],
  trimmed: ["notice", "Leased long ago"],
  reported: ["good", "Leased, and reported as made"],
  unreported: ["notice", "Leased, but not reported"],
};

export function InspectVerdict({ answer }: { answer: InspectAnswer }) {
  const [kind, title] = VERDICTS[answer.verdict];
  return (
    <>
      {/* What is malformed was said already, without asking. */}
      <div role="status" hidden={answer.verdict === "malformed"}>
        <Notice kind={kind} title={title}>
          <p>{asSentence(answer.explanation)}</p>
        </Notice>
      </div>
      {"hints" in answer && <InspectHints namespace={answer.namespace} hints={answer.hints} />}
      {"lease" in answer && (
        <>
          <SequenceBar state={answer.state} lastSequence={answer.lastSequence} marked={answer.sequence} />
          <LeaseFields lease={answer.lease} />
          {answer.neighbours !== null && <Neighbours namespace={answer.namespace} neighbours={answer.neighbours} />}
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

/** What the same process held before and after: where to look when one number of it is doubted. */
function Neighbours({ namespace, neighbours }: { namespace: string; neighbours: LeaseNeighbours }) {
  const { previous, next, explanation } = neighbours;
  const linked = [
    ["Before", previous],
    ["After", next],
  ] as const;
  return (
    <div>
      <p class="quiet">{asSentence(explanation)}</p>
      <p>
        {linked.map(
          ([place, lease]) =>
            lease !== null && (
              <a
                key={place}
                class="neighbour"
                href={addressOf(namespace, "runs", ledgerIdOf(lease.version, lease.firstRun))}
              >
                {place}: {runs(lease.firstRun, lease.runCount)}
              </a>
            ),
        )}
      </p>
    </div>
  );
}
