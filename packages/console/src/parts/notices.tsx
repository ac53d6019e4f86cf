/** Notices, and the frame around every response: while it is loaded, when it is old, and why there is none. */
import type { ComponentChildren } from "preact";
import type { RequestError } from "../api.js";
import { useConnection } from "../event-stream.js";
import { formatAge, formatDuration, formatMessage } from "../format.js";
import { useShownGuard } from "../guard.js";
import type { Loadable } from "../use-response.js";
import { Command } from "./command.js";
import { useNow } from "./time.js";

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

/** A message of the coordinator, with its commands as code. */
export function Message({ text }: { text: string }) {
  return (
    <p>
      {formatMessage(text)
        .split("`")
        .map((part, index) => (index % 2 === 0 ? part : <Command key={index} text={part} />))}
    </p>
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
  const isStale = useIsStale(from);
  const shown = useShownGuard();
  // The headline of the page has the message, once for all.
  if (error !== undefined && isLasting(error) && error.code === (shown.error ?? shown.data)?.code)
    return <p class="quiet">Not available: {what}</p>;
  if (data === undefined && error === undefined) return <p class="quiet pending">Loading…</p>;
  if (data === undefined) return <Failure error={error as RequestError} reload={from.reload} title={`No ${what}`} />;
  return (
    <div class={isStale ? "loaded stale" : "loaded"}>
      {isStale && <Age {...from} />}
      {children(data)}
    </div>
  );
}

/** Whether a response is from before, and there may be a newer one. */
export function useIsStale({ error }: Pick<Loadable<unknown>, "error">): boolean {
  const { state } = useConnection();
  return error !== undefined || state === "disconnected";
}

/** Neither the connection nor the moment is the cause. */
export function isLasting({ code, waitMs }: RequestError): boolean {
  return code !== "unreachable" && waitMs === undefined;
}

type FailureProperties = Pick<Loadable<unknown>, "reload"> & { error: RequestError; title: string };

export function Failure({ error, reload, title }: FailureProperties) {
  const { code, message, waitMs } = error;
  return (
    <Notice kind={isLasting(error) ? "critical" : "warning"} title={title}>
      <Message text={message} />
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
      {error !== undefined &&
        error.code !== "unreachable" &&
        `. The last request failed: ${formatMessage(error.message)}`}
    </p>
  );
}
