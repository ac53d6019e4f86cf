/** Whether a namespace leases, in a sentence. */
import type { GuardStatus } from "@callnumber/protocol/wire";
import type { ComponentChildren } from "preact";
import { formatMessage } from "../format.js";
import { Notice } from "./loaded.js";
import { Duration } from "./time.js";

type Guard = Pick<GuardStatus, "state" | "code" | "sinceMs" | "explanation">;

export const STATE_TITLES: Readonly<Record<GuardStatus["state"], string>> = {
  active: "Leasing is active",
  recovering: "Leasing waits for a recovery",
  stopped: "Leasing is stopped",
};

export const STATE_KINDS = { active: "good", recovering: "warning", stopped: "critical" } as const;

/** `children`: what to do, shown when it does not lease. */
export function GuardNotice({ guard, children }: { guard: Guard; children: ComponentChildren }) {
  const { state, sinceMs, explanation } = guard;
  return (
    <>
      {/* Apart from the visible title, whose age would be read out each second. */}
      <p class="unseen" role="status">
        {STATE_TITLES[state]}
      </p>
      <Notice
        kind={STATE_KINDS[state]}
        title={
          <>
            {STATE_TITLES[state]}, for <Duration sinceMs={sinceMs} /> now
          </>
        }
      >
        {state !== "active" && <p>{formatMessage(explanation)}</p>}
        {state !== "active" && children}
      </Notice>
    </>
  );
}
