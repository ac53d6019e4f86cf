/**
 * The coordinator's event stream, once for the whole page: whether it is there, and what it told. The browser comes back by itself
 * after a break; where it gives up, we begin anew.
 */
import { OPERATOR_ROUTES, type OperatorEvent } from "@callnumber/protocol/operator";
import { useEffect, useState } from "preact/hooks";
import { addressAtCoordinator, parsed } from "./ask.js";
import { isSignedOut } from "./session.js";

export interface Live {
  readonly state: "beginning" | "live" | "away";
  /** Since when it is so. */
  readonly sinceMs: number;
}

/** Null: the stream is there again, or something was missed; whatever is shown may be old. */
type EventListener = (event: OperatorEvent | null) => void;

const EVENT_COUNT_MAX = 1_000;
const ANEW_AFTER_MS = 3_000;

let live: Live = { state: "beginning", sinceMs: Date.now() };
/** By the number in the stream, which also tells one process of the coordinator from the next. */
const told = new Map<string, OperatorEvent>();
const watchers = new Set<() => void>();
const listeners = new Set<EventListener>();
let source: EventSource | undefined;

/** Follows the stream, from the first use on. */
export function useLive(): Live {
  useRedrawOnChange();
  return live;
}

/** What was told, newest first: of the namespace, and what concerns all. */
export function useEvents(namespace: string): readonly OperatorEvent[] {
  useRedrawOnChange();
  return [...told.values()]
    .filter((event) => event.namespace === null || event.namespace === namespace)
    .sort((a, b) => b.atMs - a.atMs || b.id - a.id);
}

/** What an empty list says: `nothing`, when all would have been told. */
export function useNothingIn(nothing: string): string {
  return useLive().state === "live" ? nothing : "Not known while the coordinator does not answer.";
}

/** Answers what ends it. */
export function onLiveEvent(listener: EventListener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

function useRedrawOnChange(): void {
  const [, redraw] = useState(0);
  useEffect(() => {
    begin();
    const watcher = () => redraw((count) => count + 1);
    watchers.add(watcher);
    return () => void watchers.delete(watcher);
  }, []);
}

function begin(): void {
  if (source !== undefined) return;
  const stream = new EventSource(`${addressAtCoordinator(OPERATOR_ROUTES.events)}?recent=yes`);
  source = stream;
  stream.addEventListener("open", () => {
    enter("live");
    for (const listener of listeners) listener(null);
  });
  stream.addEventListener("message", ({ data, lastEventId }: MessageEvent<string>) => {
    if (told.has(lastEventId)) return;
    const event = parsed(data) as OperatorEvent;
    told.set(lastEventId, event);
    const [oldest] = told.keys();
    if (told.size > EVENT_COUNT_MAX && oldest !== undefined) told.delete(oldest);
    for (const listener of listeners) listener(event);
    redrawSoon();
  });
  stream.addEventListener("gap", () => {
    for (const listener of listeners) listener(null);
  });
  stream.addEventListener("error", () => {
    enter("away");
    if (stream.readyState !== EventSource.CLOSED || isSignedOut()) return;
    setTimeout(() => {
      source = undefined;
      begin();
    }, ANEW_AFTER_MS);
  });
}

function enter(state: Live["state"]): void {
  if (live.state === state) return;
  live = { state, sinceMs: Date.now() };
  redrawSoon();
}

let isRedrawDue = false;
/** However many events come at once, the page is drawn once. */
function redrawSoon(): void {
  if (isRedrawDue) return;
  isRedrawDue = true;
  setTimeout(() => {
    isRedrawDue = false;
    for (const watcher of watchers) watcher();
  }, 50);
}
