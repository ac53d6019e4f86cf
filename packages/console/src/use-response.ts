/** An answer of the coordinator as a component has it: the newest one, how old it is, and what stands against a newer one. */
import type { OperatorEvent } from "@callnumber/protocol/operator";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import { RequestError, request } from "./api.js";
import { onEvent } from "./event-stream.js";

export interface Answer<T> {
  /** The newest that came; undefined before the first. Kept when a later question fails. */
  readonly data: T | undefined;
  /** When it came. */
  readonly atMs: number | undefined;
  /** Why the last question has no answer; undefined when it has. */
  readonly error: RequestError | undefined;
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

interface Asking {
  readonly path: string;
  error: RequestError | undefined;
  isUnderWay: boolean;
  /** Wanted again while one was under way: what is under way may be older than what was heard. */
  isDue: boolean;
  /** By `performance.now()`, as the next: the machine's clock may be set, and nobody would be asked for as long. */
  askedAtMs: number;
  /** Until then nothing is asked: the coordinator has too much to do. */
  restsUntilMs: number;
}

/**
 * Asks for `path`, again every 15 s while somebody looks, and soon after an event of `namespace`, where one is given: then at most
 * each `restMs`, for what costs the coordinator more than a look.
 */
export function useAnswer<T>(path: string, namespace?: string, restMs = GATHERING_MS): Answer<T> {
  const [, redraw] = useState(0);
  const state = useRef(newAsking(path));
  if (state.current.path !== path) state.current = newAsking(path);

  const askAgain = useCallback(() => {
    const asking = state.current;
    asking.isDue = asking.isUnderWay;
    if (asking.isUnderWay || performance.now() < asking.restsUntilMs) return;
    asking.isUnderWay = true;
    asking.askedAtMs = performance.now();
    askTogether(path)
      .then(
        (data) => {
          keep(path, { data, atMs: Date.now() });
          asking.error = undefined;
        },
        (error: unknown) => {
          asking.error = error instanceof RequestError ? error : new RequestError("internal_error", String(error));
          const { waitMs } = asking.error;
          if (waitMs === undefined) return;
          asking.restsUntilMs = performance.now() + waitMs;
          setTimeout(() => state.current === asking && askAgain(), waitMs);
        },
      )
      .finally(() => {
        asking.isUnderWay = false;
        // Somebody went elsewhere meanwhile.
        if (state.current !== asking) return;
        redraw((count) => count + 1);
        if (asking.isDue) askAgain();
      });
  }, [path]);

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
    const end = onEvent((event) => {
      if (event !== null && !isNews(event, namespace)) return;
      const restingMs = state.current.askedAtMs + restMs - performance.now();
      gathering ??= setTimeout(
        () => {
          gathering = undefined;
          askAgain();
        },
        Math.max(GATHERING_MS, restingMs),
      );
    });
    return () => {
      end();
      clearTimeout(gathering);
    };
  }, [askAgain, namespace, restMs]);

  const found = kept.get(path);
  return { data: found?.data as T | undefined, atMs: found?.atMs, error: state.current.error, askAgain };
}

function newAsking(path: string): Asking {
  return {
    path,
    error: undefined,
    isUnderWay: false,
    isDue: false,
    askedAtMs: Number.NEGATIVE_INFINITY,
    restsUntilMs: 0,
  };
}

/** What several parts of a page ask for at the same moment is asked once. */
const together = new Map<string, Promise<unknown>>();
const MOMENT_MS = 50;

function askTogether(path: string): Promise<unknown> {
  const known = together.get(path);
  if (known !== undefined) return known;
  const asked = request(path);
  together.set(path, asked);
  setTimeout(() => together.delete(path), MOMENT_MS);
  return asked;
}

/** They change nothing; and a refusal of ours would lead to the next question, and that to the next refusal. */
const NO_NEWS = /^(refusals?|internal_error|clocks_disagree|run_beyond_mark|repeated)$/;

function isNews(event: OperatorEvent, namespace: string): boolean {
  const isOurs = event.namespace === null || event.namespace === namespace;
  return isOurs && !NO_NEWS.test(event.event);
}

function keep(path: string, answer: Kept): void {
  kept.delete(path);
  kept.set(path, answer);
  const [oldest] = kept.keys();
  if (kept.size > KEPT_COUNT_MAX && oldest !== undefined) kept.delete(oldest);
}
