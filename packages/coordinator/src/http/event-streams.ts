/**
 * `GET /v1/events`: what happens in this coordinator, as it happens, as server-sent events for pages and terminals. Memory is bounded: so many
 * streams, so many bytes waiting for each. A client that reads too slowly is cut off, reconnects automatically, and is sent what it missed.
 */
import type { ServerResponse } from "node:http";
import { type CommandContext, filledJson, type OperatorEvent, ROUTES } from "@callnumber/protocol/api";
import { describedRequest, namespaceSchema } from "@callnumber/protocol/schemas";
import * as z from "zod";
import type { RecentEvents } from "../events/recent-events.js";
import type { TypedApp } from "./app.js";
import { type Authenticator, canRead, canReadSettings, forbidden, type Principal } from "./auth.js";

/** Holds all events that are kept for a new stream. */
const WAITING_BYTES_MAX = 1024 * 1024;
/** Below the idle timeout of proxies. */
const HEARTBEAT_EVERY_MS = 15_000;
const HEARTBEAT = Buffer.from(":\n\n");
/** How long a client waits before it reconnects. */
const RETRY_MS = 2_000;

const eventsQuerySchema = describedRequest("EventsQuery", "Which events", {
  namespace: [namespaceSchema.optional(), "Events of this namespace, and those that concern all"],
  recent: [z.enum(["yes", "no"]).default("no"), "Whether to send the recent events first"],
});

export function eventsRoute(app: TypedApp, streams: EventStreams, authenticator: Authenticator): void {
  app.get(
    ROUTES.events,
    {
      config: {
        permission: "read",
        isFiltered: true,
        slots: "streams",
        operation: {
          summary: "Server-sent events: leases, rejections and changes of state",
          description: "The event `gap` means that some were missed.",
          headers: { "Last-Event-ID": "The `id` of the last message that arrived: what followed it is sent first" },
          errors: ["too_many_streams"],
          content: { "text/event-stream": "Each `data` is an `OperatorEvent` in JSON" },
        },
      },
      schema: { querystring: eventsQuerySchema },
    },
    ({ principal, query: { namespace, recent }, headers }, reply) => {
      if (namespace !== undefined && !canRead(principal, namespace)) throw forbidden();
      reply.hijack();
      reply.raw.writeHead(200, {
        "content-type": "text/event-stream; charset=utf-8",
        // A proxy that waits for the end of the response would wait without end.
        "x-accel-buffering": "no",
      });
      const isStillValid = () => authenticator.isValid(principal);
      const stream = { response: reply.raw, namespace, principal, isStillValid };
      streams.begin(stream, { lastEventId: headers["last-event-id"]?.toString(), wantsRecent: recent === "yes" });
    },
  );
}

interface Stream {
  /** Its headers are sent. */
  readonly response: ServerResponse;
  /** Events of this namespace, and those that concern all; undefined for every namespace. */
  readonly namespace: string | undefined;
  /** Gets the events of its own namespaces only, and those that concern all when all are its own. */
  readonly principal: Principal;
  /** Checked before each write: false ends the stream. */
  readonly isStillValid: () => boolean;
}

interface Past {
  /** `Last-Event-ID`: the events after it are sent first. */
  readonly lastEventId?: string | undefined;
  /** Sends a new client the recent events first. */
  readonly wantsRecent?: boolean;
}

export class EventStreams {
  readonly #recent: RecentEvents;
  readonly #commands: CommandContext | undefined;
  readonly #streams = new Set<Stream>();
  /** Serialized once: a new stream is sent hundreds of events. */
  readonly #texts = new WeakMap<OperatorEvent, Buffer>();
  /** The same for operators. */
  readonly #filledTexts = new WeakMap<OperatorEvent, Buffer>();
  readonly #unwatch: () => void;
  #heartbeat: ReturnType<typeof setInterval> | undefined;

  /** @param commands fills in the commands in what operators are sent; undefined: they keep their placeholders. */
  constructor(recent: RecentEvents, commands?: CommandContext) {
    this.#recent = recent;
    this.#commands = commands;
    this.#unwatch = recent.watch((event) => {
      for (const stream of this.#streams)
        this.#write(stream, isFor(stream, event) ? this.#textOf(stream, event) : undefined);
    });
  }

  /** Takes over a response, until its client leaves, is too slow, or all streams end. */
  begin(stream: Stream, past: Past = {}): void {
    const { response } = stream;
    if (response.closed) return;
    this.#streams.add(stream);
    response.once("close", () => this.#remove(stream));
    // A broken connection needs no handling: its close comes next.
    response.on("error", () => {});
    this.#heartbeat ??= setInterval(() => this.#sendHeartbeat(), HEARTBEAT_EVERY_MS).unref();
    response.write(`retry: ${RETRY_MS}\n\n`);
    this.#sendPast(stream, past);
  }

  /** Ends every stream at once, and follows no further events. */
  close(): void {
    this.#unwatch();
    clearInterval(this.#heartbeat);
    for (const { response } of this.#streams) response.end();
  }

  /** However much it is: a new client is not too slow. */
  #sendPast(stream: Stream, { lastEventId, wantsRecent = false }: Past): void {
    const { response } = stream;
    let events = wantsRecent ? this.#recent.all() : [];
    if (lastEventId !== undefined) {
      const since = this.#recent.since(this.#idIn(lastEventId));
      events = since.events;
      if (!since.isComplete) response.write(`event: gap\ndata: ${JSON.stringify({ lastEventId })}\n\n`);
    }
    const wanted = events.filter((event) => isFor(stream, event));
    if (!response.destroyed) response.write(Buffer.concat(wanted.map((event) => this.#textOf(stream, event))));
  }

  /** An id of an earlier process means nothing here: as if too much had been missed. */
  #idIn(lastEventId: string): number {
    const [life, id = ""] = lastEventId.split("-");
    return life === this.#recent.life && /^\d{1,15}$/.test(id) ? Number(id) : Number.POSITIVE_INFINITY;
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

  #textOf({ principal }: Stream, event: OperatorEvent): Buffer {
    const commands = canReadSettings(principal) ? this.#commands : undefined;
    const texts = commands === undefined ? this.#texts : this.#filledTexts;
    const known = texts.get(event);
    if (known !== undefined) return known;
    const json = JSON.stringify(event);
    const data = commands === undefined ? json : filledJson(json, commands);
    const text = Buffer.from(`id: ${this.#recent.life}-${event.id}\ndata: ${data}\n\n`);
    texts.set(event, text);
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
