/** Below the title of each page: whether the namespace leases, with the one message about it, and what to do. */
import { STORE_URL } from "@callnumber/protocol/api";
import type { ComponentChildren } from "preact";
import { isSignedIn } from "../api.js";
import { useConnection } from "../event-stream.js";
import { type Guard, useShownGuard } from "../guard.js";
import { urlOf } from "../route.js";
import { Failure, isLasting, Message, Notice } from "./notices.js";
import { Duration, Instant } from "./time.js";

export const STATE_TITLES: Readonly<Record<Guard["state"], string>> = {
  active: "Leasing is active",
  recovering: "Leasing waits for a recovery",
  stopped: "Leasing is stopped",
};

export const STATE_KINDS = { active: "good", recovering: "warning", stopped: "critical" } as const;

interface Properties {
  readonly namespace: string;
  /** Also shown while the namespace leases. */
  readonly isAlways?: boolean;
  /** What to do, shown when it does not; default: a link to the page that shows it. */
  readonly children?: ComponentChildren;
}

export function Headline({ namespace, isAlways = false, children = <WhatToDo namespace={namespace} /> }: Properties) {
  const { data: guard, atMs, error, reload } = useShownGuard();
  const { state: connection, sinceMs } = useConnection();
  const isOld = error !== undefined || (connection === "disconnected" && (atMs ?? 0) < sinceMs);
  if (error !== undefined && isLasting(error))
    return <Failure error={error} reload={reload} title="Whether runs are leased is not known" />;
  if (guard === undefined) return isAlways ? <p class="quiet pending">Loading…</p> : null;
  if (isOld) return isAlways ? <Past guard={guard} atMs={atMs} /> : null;
  return isAlways || guard.state !== "active" ? <Present guard={guard}>{children}</Present> : null;
}

function Present({ guard, children }: { guard: Guard; children: ComponentChildren }) {
  const { state, sinceMs, explanation } = guard;
  const title = (
    <>
      {STATE_TITLES[state]}, for <Duration sinceMs={sinceMs} /> now
    </>
  );
  return (
    <div>
      {/* Apart from the visible title, whose age would be read out each second. */}
      <p class="unseen" role="status">
        {STATE_TITLES[state]}
      </p>
      <Notice kind={STATE_KINDS[state]} title={title}>
        {state !== "active" && (
          <>
            <Message text={explanation} />
            {explanation.includes(STORE_URL) && (
              <p class="quiet">
                {STORE_URL} is what the coordinator was started with (serve --store)
                {isSignedIn() && "; a token of role operator, for all namespaces, shows it"}.
              </p>
            )}
            {children}
          </>
        )}
      </Notice>
    </div>
  );
}

/** Nothing is said of now. */
function Past({ guard, atMs = Date.now() }: { guard: Guard; atMs: number | undefined }) {
  const title = (
    <>
      {STATE_TITLES[guard.state].replace("is ", "was ").replace("waits", "waited")} <Instant atMs={atMs} />
    </>
  );
  return <Notice kind="notice" title={title} />;
}

function WhatToDo({ namespace }: { namespace: string }) {
  return (
    <p>
      <a href={urlOf(namespace, "recovery")}>What happened, and what to do</a>
    </p>
  );
}
