/** Around what an answer shows: a quiet word while it is asked for, how old it is when a newer one can't be had, and why not. */
import type { ComponentChildren } from "preact";
import { useConnection } from "../event-stream.js";
import { ago, asSentence, duration } from "../format.js";
import type { Answer } from "../use-response.js";
import { useNow } from "./clock.js";
import { Notice } from "./notice.js";

interface Properties<T> {
  readonly answer: Answer<T>;
  /** What is asked for, to stand in "… could not be had". */
  readonly what: string;
  readonly children: (data: T) => ComponentChildren;
}

export function Answered<T>({ answer, what, children }: Properties<T>) {
  const { data, error, askAgain } = answer;
  const isAway = useConnection().state === "disconnected";
  const isStale = data !== undefined && (error !== undefined || isAway);
  if (data === undefined) {
    if (error === undefined) return <p class="quiet pending">Asking for {what} …</p>;
    return (
      <Notice
        kind={error.code === "unreachable" || error.waitMs !== undefined ? "warning" : "critical"}
        title={`No ${what}`}
      >
        <p>{asSentence(error.message)}</p>
        <p class="quiet">
          <code>{error.code}</code>{" "}
          {error.waitMs === undefined ? (
            <button type="button" class="plain" onClick={askAgain}>
              Ask again
            </button>
          ) : (
            `Asked again by itself, in ${duration(error.waitMs)}`
          )}
        </p>
      </Notice>
    );
  }
  return (
    <div class={isStale ? "answered stale" : "answered"}>
      {isStale && <Age {...answer} />}
      {children(data)}
    </div>
  );
}

/** Said beside what is old, so that nobody takes it for the present. */
function Age({ atMs, error }: Pick<Answer<unknown>, "atMs" | "error">) {
  const nowMs = useNow();
  return (
    <p class="age">
      As of {ago(atMs ?? nowMs, nowMs)}
      {error !== undefined && error.code !== "unreachable" && `; a newer one is refused: ${error.message}`}
    </p>
  );
}
