/**
 * The open event streams: server-sent events to every page and terminal that follows them. Memory is bounded: so many streams, so many
 * bytes waiting for each. A client that reads too slowly is cut off, reconnects automatically, and is sent what it missed.
 */
import type { ServerResponse } from "node:http";
import type { OperatorEvent } from "@callnumber/protocol/operator";
import type { RecentEvents } from "../events/recent-events.js";
import { ConcurrencyLimit } from "../limits/concurrency-limits.js";
import { canRead, type Principal } from "./auth.js";

/** For all clients; one alone has half. */
export const STREAM_COUNT_MAX = 64;
/** Holds all events that are kept for a new stream. */
const WAITING_BYTES_MAX = 1024 * 1024;
/** Below the idle timeout of proxies. */
const HEARTBEAT_EVERY_MS = 15_000;
const HEARTBEAT = Buffer.from(":\n\n");
/** How long a client waits before it reconnects. */
const RETRY_MS = 2_000;

export interface StreamOptions {
  /** Whose slots it takes. */
  readonly client: string;
  /** Events of this namespace, and those that concern all; undefined for every namespace. */
  readonly namespace: string | undefined;
  /** Gets the events of its own namespaces only, and those that concern all when all are its own. */
  readonly principal: Principal;
  /** Checked before each write: false ends the stream. */
  readonly isStillValid: () => boolean;
  /** `Last-Event-ID`: the events after it are sent first. */
  readonly lastEventId: string | undefined;
  /** Sends a new client the recent events first. */
  readonly wantsRecent: boolean;
}

interface Stream extends Pick<StreamOptions, "namespace" | "principal" | "isStillValid"> {
  readonly response: ServerResponse;
}

export class EventStreams {
  readonly #recent: RecentEvents;
  readonly #streams = new Set<Stream>();
  /** Serialized once: a new stream is sent hundreds of events. */
  readonly #texts = new WeakMap<OperatorEvent, Buffer>();
  readonly #limit = new ConcurrencyLimit(STREAM_COUNT_MAX / 2, "event streams");
  readonly #unwatch: () => void;
  #heartbeat: ReturnType<typeof setInterval> | undefined;

  constructor(recent: RecentEvents) {
    this.#recent = recent;
    this.#unwatch = recent.watch((event) => this.#broadcast(event));
  }

  hasSlotFor(client: string): boolean {
    return this.#limit.hasSlotFor(client);
  }

  /**
   * Takes over a response whose headers are sent, until its client leaves, is too slow, or all streams end.
   * @throws CoordinatorError `overloaded` when the client has no slot left.
   */
  begin(response: ServerResponse, options: StreamOptions): void {
    const { namespace, principal, isStillValid } = options;
    const stream = { response, namespace, principal, isStillValid };
    const freeSlot = this.#limit.take(options.client);
    this.#streams.add(stream);
    const end = () => {
      freeSlot();
      this.#remove(stream);
    };
    if (response.closed) end();
    else response.once("close", end);
    // A broken connection needs no handling: its close comes next.
    response.on("error", () => {});
    this.#heartbeat ??= setInterval(() => this.#sendHeartbeat(), HEARTBEAT_EVERY_MS).unref();
    response.write(`retry: ${RETRY_MS}\n\n`);
    this.#sendPast(stream, options);
  }

  /** Ends every stream at once, and follows no further events. */
  close(): void {
    this.#unwatch();
    clearInterval(this.#heartbeat);
    for (const { response } of this.#streams) response.end();
  }

  #sendPast(stream: Stream, { lastEventId, wantsRecent }: StreamOptions): void {
    if (lastEventId === undefined) {
      if (wantsRecent) this.#sendAll(stream, this.#recent.all());
      return;
    }
    const { events, isComplete } = this.#recent.since(this.#idIn(lastEventId));
    if (!isComplete) stream.response.write(`event: gap\ndata: ${JSON.stringify({ lastEventId })}\n\n`);
    this.#sendAll(stream, events);
  }

  /** However much it is: a new client is not too slow. */
  #sendAll(stream: Stream, events: readonly OperatorEvent[]): void {
    const { response } = stream;
    const wanted = events.filter((event) => isFor(stream, event));
    if (!response.destroyed) response.write(Buffer.concat(wanted.map((event) => this.#textOf(event))));
  }

  /** An id of an earlier process means nothing here: as if too much had been missed. */
  #idIn(lastEventId: string): number {
    const [life, id = ""] = lastEventId.split("-");
    return life === this.#recent.life && /^\d{1,15}$/.test(id) ? Number(id) : Number.POSITIVE_INFINITY;
  }

  #broadcast(event: OperatorEvent): void {
    if (this.#streams.size === 0) return;
    const text = this.#textOf(event);
    for (const stream of this.#streams) this.#write(stream, isFor(stream, event) ? text : undefined);
  }

  #sendHeartbeat(): void {
    for (const stream of this.#streams) this.#write(stream, HEARTBEAT);
  }

  /** A client whose token is not valid any more is cut off also where there is nothing to send. */
  #write({ response, isStillValid }: Stream, text: Buffer | undefined): void {
    if (response.destroyed) return;
    if (!isStillValid() || response.writableLength > WAITING_BYTES_MAX) response.destroy();
    else if (text !== undefined) response.write(text);
  }

  #textOf(event: OperatorEvent): Buffer {
    const known = this.#texts.get(event);
    if (known !== undefined) return known;
    const text = Buffer.from(`id: ${this.#recent.life}-${event.id}\ndata: ${JSON.stringify(event)}\n\n`);
    this.#texts.set(event, text);
    return text;
  }

  #remove(stream: Stream): void {
    this.#streams.delete(stream);
    if (this.#streams.size > 0) return;
    clearInterval(this.#heartbeat);
    this.#heartbeat = undefined;
  }
}

function isFor({ namespace, principal }: Stream, event: OperatorEvent): boolean {
  if (event.namespace === null) return principal.namespaces === "all";
  return (namespace === undefined || event.namespace === namespace) && canRead(principal, event.namespace);
}
