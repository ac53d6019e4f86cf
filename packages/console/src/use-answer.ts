/** An answer of the coordinator as a component has it: the newest one, how old it is, and what stands against a newer one. */
import type { OperatorEvent } from "@callnumber/protocol/operator";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { AskError, ask } from "./ask.js";
import { onLiveEvent } from "./live.js";

export interface Answer<T> {
  /** The newest that came; undefined before the first. Kept when a later question fails. */
  readonly data: T | undefined;
  /** When it came. */
  readonly atMs: number | undefined;
  /** Why the last question has no answer; undefined when it has. */
  readonly error: AskError | undefined;
  readonly askAgain: () => void;
}

interface Kept {
  readonly data: unknown;
  readonly atMs: number;
}

/** Shown at once when somebody comes back to a page, while the question is asked anew. */
const kept = new Map<string, Kept>();
const KEPT_COUNT_MAX = 50;

/** How long events are gathered before they lead to one question. */
const GATHERING_MS = 1_000;
const EVERY_MS = 15_000;

/**
 * Asks for `path` (null: nothing), again every 15 s while somebody looks, and soon after an event of `namespace`, where one is
 * given.
 */
export function useAnswer<T>(path: string | null, namespace?: string): Answer<T> {
  const [, redraw] = useState(0);
  const state = useRef({ path: "", error: undefined as AskError | undefined, asking: 0 });
  const askAgain = useCallback(() => {
    if (path === null) return;
    const present = state.current;
    const number = ++present.asking;
    const isOver = () => state.current.path !== path || present.asking !== number;
    ask<T>(path)
      .then((data) => {
        keep(path, { data, atMs: Date.now() });
        if (!isOver()) present.error = undefined;
      })
      .catch((error: unknown) => {
        if (!isOver()) present.error = error instanceof AskError ? error : new AskError("fault", String(error));
      })
      .finally(() => {
        if (!isOver()) redraw((count) => count + 1);
      });
  }, [path]);

  if (state.current.path !== (path ?? "")) state.current = { path: path ?? "", error: undefined, asking: 0 };

  useEffect(() => {
    askAgain();
    const ifSeen = () => {
      if (document.visibilityState === "visible") askAgain();
    };
    const timer = setInterval(ifSeen, EVERY_MS);
    document.addEventListener("visibilitychange", ifSeen);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", ifSeen);
    };
  }, [askAgain]);

  useEffect(() => {
    if (namespace === undefined) return undefined;
    let gathering: ReturnType<typeof setTimeout> | undefined;
    const end = onLiveEvent((event) => {
      if (event !== null && !isNews(event, namespace)) return;
      gathering ??= setTimeout(() => {
        gathering = undefined;
        askAgain();
      }, GATHERING_MS);
    });
    return () => {
      end();
      clearTimeout(gathering);
    };
  }, [askAgain, namespace]);

  const found = path === null ? undefined : kept.get(path);
  return {
    data: found?.data as T | undefined,
    atMs: found?.atMs,
    error: state.current.error,
    askAgain,
  };
}

/** A refusal changes nothing; and ours would lead to the next question, and that to the next refusal. */
function isNews(event: OperatorEvent, namespace: string): boolean {
  const isOurs = event.namespace === null || event.namespace === namespace;
  return isOurs && event.event !== "refusal" && event.event !== "refusals";
}

function keep(path: string, answer: Kept): void {
  kept.delete(path);
  kept.set(path, answer);
  const [oldest] = kept.keys();
  if (kept.size > KEPT_COUNT_MAX && oldest !== undefined) kept.delete(oldest);
}
