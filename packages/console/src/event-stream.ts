/**
 * The coordinator's event stream, once for the whole page: whether it is connected, and which events it sent. Read with `fetch`, because
 * `EventSource` can't send a token. It reconnects automatically, and requests the events that it missed.
 */
import type { OperatorEvent } from "@callnumber/protocol/api";
import { useEffect, useState } from "preact/hooks";
import { openEventStream, parsed } from "./api.js";

export interface Connection {
  readonly state: "connecting" | "connected" | "disconnected";
  readonly sinceMs: number;
}

/** Null: the stream is connected again, or events were missed; whatever the page shows may be old. */
type EventListener = (event: OperatorEvent | null) => void;

const EVENT_COUNT_MAX = 1_000;
const RECONNECT_AFTER_MS = 2_000;

let connection: Connection = { state: "connecting", sinceMs: Date.now() };
/** By the id in the stream, which differs between two processes of the coordinator. */
const events = new Map<string, OperatorEvent>();
/** By `performance.now()`. */
const receptions = new WeakMap<OperatorEvent, number>();
const watchers = new Set<() => void>();
const listeners = new Set<EventListener>();
let lastEventId: string | undefined;
let isFollowing = false;

/** Follows the stream, from the first use on. */
export function useConnection(): Connection {
  useRedrawOnChange();
  return connection;
}

/** The events of the namespace and those that concern all, newest first. */
export function useEvents(namespace: string): readonly OperatorEvent[] {
  useRedrawOnChange();
  return [...events.values()]
    .filter((event) => event.namespace === null || event.namespace === namespace)
    .sort((a, b) => b.atMs - a.atMs || b.id - a.id);
}

/** When the page was sent the event, by `performance.now()`. */
export function receivedAtMs(event: OperatorEvent): number {
  return receptions.get(event) ?? 0;
}

/** Returns a function that ends it. */
export function onEvent(listener: EventListener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

function useRedrawOnChange(): void {
  const [, setDrawCount] = useState(0);
  useEffect(() => {
    if (!isFollowing) void follow();
    const watcher = () => setDrawCount((count) => count + 1);
    watchers.add(watcher);
    return () => void watchers.delete(watcher);
  }, []);
}

async function follow(): Promise<never> {
  isFollowing = true;
  for (;;) {
    try {
      await read(await openEventStream(lastEventId));
    } catch {
      // Whatever broke it: the page shows that, and connects again.
    }
    enter("disconnected");
    await new Promise((resolve) => setTimeout(resolve, RECONNECT_AFTER_MS));
  }
}

async function read(stream: ReadableStream<Uint8Array>): Promise<void> {
  enter("connected");
  notify(null);
  // The types of the platform's streams differ in their buffers.
  const reader = stream
    .pipeThrough(new TextDecoderStream() as never as TransformStream<Uint8Array, string>)
    .getReader();
  let unfinished = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const messages = (unfinished + value).split("\n\n");
    unfinished = messages.pop() ?? "";
    for (const message of messages) receive(message);
  }
}

/** A message of `text/event-stream`: lines of `name: value`. */
function receive(message: string): void {
  const fields = new Map(message.split("\n").map((line) => line.split(/: ?(.*)/s, 2) as [string, string]));
  const [id, data] = [fields.get("id"), fields.get("data")];
  if (fields.get("event") === "gap") notify(null);
  if (id === undefined || data === undefined || events.has(id)) return;
  lastEventId = id;
  const event = parsed(data) as OperatorEvent;
  events.set(id, event);
  receptions.set(event, performance.now());
  const [oldest] = events.keys();
  if (events.size > EVENT_COUNT_MAX && oldest !== undefined) events.delete(oldest);
  notify(event);
  redraw();
}

function notify(event: OperatorEvent | null): void {
  for (const listener of listeners) listener(event);
}

function enter(state: Connection["state"]): void {
  if (connection.state === state) return;
  connection = { state, sinceMs: Date.now() };
  redraw();
}

/** However many events come at once, Preact draws the page once. */
function redraw(): void {
  for (const watcher of watchers) watcher();
}
