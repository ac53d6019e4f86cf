/** Notices, and the frame around every response: while it is loaded, when it is old, and why there is none. */
import type { GuardStatus } from "@callnumber/protocol/wire";
import type { ComponentChildren } from "preact";
import { useConnection } from "../event-stream.js";
import { formatAge, formatDuration, formatMessage } from "../format.js";
import type { Loadable } from "../use-response.js";
import { Duration, useNow } from "./time.js";

export type NoticeKind = "good" | "notice" | "warning" | "critical";

interface NoticeProperties {
  readonly kind: NoticeKind;
  readonly title: ComponentChildren;
  readonly children?: ComponentChildren;
}

/** The title shows how much it matters; the color only repeats it. */
export function Notice({ kind, title, children }: NoticeProperties) {
  return (
    <div class={`notice ${kind}`}>
      <p class="notice-title">
        <span class="mark" aria-hidden="true" />
        {title}
      </p>
      {children}
    </div>
  );
}

type Guard = Pick<GuardStatus, "state" | "code" | "sinceMs" | "explanation">;

export const STATE_TITLES: Readonly<Record<GuardStatus["state"], string>> = {
  active: "Leasing is active",
  recovering: "Leasing waits for a recovery",
  stopped: "Leasing is stopped",
};

export const STATE_KINDS = { active: "good", recovering: "warning", stopped: "critical" } as const;

/** Whether a namespace leases. `children`: what to do, shown when it does not. */
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

interface LoadedProperties<T> {
  readonly from: Loadable<T>;
  /** What is loaded, for "No …". */
  readonly what: string;
  readonly children: (data: T) => ComponentChildren;
}

export function Loaded<T>({ from, what, children }: LoadedProperties<T>) {
  const { data, error } = from;
  const isDisconnected = useConnection().state === "disconnected";
  if (data === undefined) return <NotLoaded {...from} what={what} />;
  const isStale = error !== undefined || isDisconnected;
  return (
    <div class={isStale ? "loaded stale" : "loaded"}>
      {isStale && <Age {...from} />}
      {children(data)}
    </div>
  );
}

function NotLoaded({ error, reload, what }: Pick<Loadable<unknown>, "error" | "reload"> & { what: string }) {
  if (error === undefined) return <p class="quiet pending">Loading…</p>;
  const { code, message, waitMs } = error;
  return (
    <Notice kind={code === "unreachable" || waitMs !== undefined ? "warning" : "critical"} title={`No ${what}`}>
      <p>{formatMessage(message)}</p>
      <p class="quiet">
        <code>{code}</code>{" "}
        {waitMs === undefined ? (
          <button type="button" class="plain" onClick={reload}>
            Try again
          </button>
        ) : (
          `Repeated automatically, in ${formatDuration(waitMs)}`
        )}
      </p>
    </Notice>
  );
}

/** So that old data are not taken for the present. */
function Age({ atMs, error }: Pick<Loadable<unknown>, "atMs" | "error">) {
  const nowMs = useNow();
  return (
    <p class="age">
      As of {formatAge(atMs ?? nowMs, nowMs)}
      {error !== undefined && error.code !== "unreachable" && `. The last request failed: ${error.message}`}
    </p>
  );
}
