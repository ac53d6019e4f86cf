/** Whether a namespace leases, in a sentence and a mark. */
import type { GuardAnswer } from "@callnumber/protocol/wire";
import { asSentence } from "../format.js";
import { addressOf } from "../route.js";
import { Notice } from "./notice.js";
import { Lasting } from "./time.js";

type Guard = Pick<GuardAnswer, "state" | "code" | "sinceMs" | "explanation">;

export const STATE_WORDS: Readonly<Record<GuardAnswer["state"], string>> = {
  open: "Leasing is open",
  in_doubt: "Leasing waits: in doubt",
  fenced: "Leasing is fenced",
};

export const STATE_KINDS = { open: "good", in_doubt: "warning", fenced: "critical" } as const;

export function GuardLine({ namespace, guard }: { namespace: string; guard: Guard }) {
  const { state, code, sinceMs, explanation } = guard;
  return (
    <>
      {/* Apart from what is seen, whose age would be read out each second. */}
      <p class="unseen" role="status">
        {STATE_WORDS[state]}
      </p>
      <Notice
        kind={STATE_KINDS[state]}
        title={
          <>
            {STATE_WORDS[state]}, for <Lasting sinceMs={sinceMs} /> now
          </>
        }
      >
        {state !== "open" && (
          <>
            <p>{asSentence(explanation)}</p>
            <p>
              <a href={addressOf(namespace, "recovery", code ?? "")}>What happened, and what to do</a>
            </p>
          </>
        )}
      </Notice>
    </>
  );
}
