/**
 * The open event streams: server-sent events to every page and terminal that watches. Memory is bounded: so many streams, so many
 * bytes waiting for each; who reads too slowly is cut off, comes back by itself, and is told what it missed.
 */
import type { ServerResponse } from "node:http";
import type { OperatorEvent } from "@callnumber/protocol/operator";
import type { RecentEvents } from "../events/recent-events.js";
import { ConcurrencyLimit } from "../limits/concurrency-limits.js";
import { type Caller, maySee } from "./caller.js";
import { whenClosed } from "./when-closed.js";

/** For all who watch; one alone has half. */
export const STREAM_COUNT_MAX = 64;
/** Holds all that is kept for a stream that begins; a reader so far behind later is no reader. */
const WAITING_BYTES_MAX = 1024 * 1024;
/** Below what proxies take for silence. */
const HEARTBEAT_EVERY_MS = 15_000;
const HEARTBEAT = Buffer.from(":\n\n");
/** How long a browser waits before it comes back. */
const RETRY_MS = 2_000;

export interface StreamWishes {
  /** Whose share of the streams it takes. */
  readonly asker: string;
  /** Events of this namespace, and those that concern all; undefined for every namespace. */
  readonly namespace: string | undefined;
  /** Is told of their own namespaces only, and of what concerns all when all are their own. */
  readonly caller: Caller;
  /** Asked before each word: false ends the stream. */
  readonly isStillKnown: () => boolean;
  /** `Last-Event-ID`: what followed it is told first. */
  readonly lastEventId: string | undefined;
  /** Tells first what is still known, to one who comes for the first time. */
  readonly wantsRecent: boolean;
}

interface Stream extends Pick<StreamWishes, "namespace" | "caller" | "isStillKnown"> {
  readonly response: ServerResponse;
}

export class EventStreams {
  readonly #recent: RecentEvents;
  readonly #streams = new Set<Stream>();
  /** As long as the event itself: a stream that begins is told hundreds of them. */
  readonly #texts = new WeakMap<OperatorEvent, Buffer>();
  readonly #limit = new ConcurrencyLimit(STREAM_COUNT_MAX / 2, "event streams");
  readonly #unwatch: () => void;
  #heartbeat: ReturnType<typeof setInterval> | undefined;

  constructor(recent: RecentEvents) {
    this.#recent = recent;
    this.#unwatch = recent.watch((event) => this.#tellAll(event));
  }

  /** Whether one more stream of theirs may begin. */
  hasPlaceFor(asker: string): boolean {
    return this.#limit.hasSlotFor(asker);
  }

  /**
   * Takes over the answer, whose headers are sent, until its reader leaves, is too slow, or all streams end.
   * @throws CoordinatorError `overloaded` when there is no place for the asker.
   */
  begin(response: ServerResponse, wishes: StreamWishes): void {
    const { namespace, caller, isStillKnown } = wishes;
    const stream = { response, namespace, caller, isStillKnown };
    const freeSlot = this.#limit.take(wishes.asker);
    this.#streams.add(stream);
    whenClosed(response, () => {
      freeSlot();
      this.#forget(stream);
    });
    // A broken connection is not worth a word: its close comes next.
    response.on("error", () => {});
    this.#heartbeat ??= setInterval(() => this.#beat(), HEARTBEAT_EVERY_MS).unref();
    response.write(`retry: ${RETRY_MS}\n\n`);
    this.#tellPast(stream, wishes);
  }

  /** Ends every stream at once, and begins to hold nothing more. */
  close(): void {
    this.#unwatch();
    clearInterval(this.#heartbeat);
    for (const { response } of this.#streams) response.end();
  }

  #tellPast(stream: Stream, { lastEventId, wantsRecent }: StreamWishes): void {
    if (lastEventId === undefined) {
      if (wantsRecent) this.#tellAtOnce(stream, this.#recent.all());
      return;
    }
    const { events, isComplete } = this.#recent.since(this.#idIn(lastEventId));
    if (!isComplete) stream.response.write(`event: gap\ndata: ${JSON.stringify({ lastEventId })}\n\n`);
    this.#tellAtOnce(stream, events);
  }

  /** However much it is: who has only just come is not too slow. */
  #tellAtOnce(stream: Stream, events: readonly OperatorEvent[]): void {
    const { response } = stream;
    const wanted = events.filter((event) => isFor(stream, event));
    if (!response.destroyed) response.write(Buffer.concat(wanted.map((event) => this.#textOf(event))));
  }

  /** An id of an earlier process means nothing here: as if far too much had been missed. */
  #idIn(lastEventId: string): number {
    const [life, id = ""] = lastEventId.split("-");
    return life === this.#recent.life && /^\d{1,15}$/.test(id) ? Number(id) : Number.POSITIVE_INFINITY;
  }

  #tellAll(event: OperatorEvent): void {
    if (this.#streams.size === 0) return;
    const text = this.#textOf(event);
    for (const stream of this.#streams) this.#write(stream, isFor(stream, event) ? text : undefined);
  }

  #beat(): void {
    for (const stream of this.#streams) this.#write(stream, HEARTBEAT);
  }

  /** Whoever is not known any more is cut off also where there is nothing to tell them. */
  #write({ response, isStillKnown }: Stream, text: Buffer | undefined): void {
    if (response.destroyed) return;
    if (!isStillKnown() || response.writableLength > WAITING_BYTES_MAX) response.destroy();
    else if (text !== undefined) response.write(text);
  }

  #textOf(event: OperatorEvent): Buffer {
    const known = this.#texts.get(event);
    if (known !== undefined) return known;
    const text = Buffer.from(`id: ${this.#recent.life}-${event.id}\ndata: ${JSON.stringify(event)}\n\n`);
    this.#texts.set(event, text);
    return text;
  }

  #forget(stream: Stream): void {
    this.#streams.delete(stream);
    if (this.#streams.size > 0) return;
    clearInterval(this.#heartbeat);
    this.#heartbeat = undefined;
  }
}

function isFor({ namespace, caller }: Stream, event: OperatorEvent): boolean {
  if (event.namespace === null) return caller.namespaces === "all";
  return (namespace === undefined || event.namespace === namespace) && maySee(caller, event.namespace);
}
