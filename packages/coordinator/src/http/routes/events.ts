/** `GET /v1/events`: what happens in this coordinator, as it happens. */
import { OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import { namespaceSchema } from "@callnumber/protocol/schemas";
import { z } from "zod";
import { CoordinatorError } from "../../errors.js";
import type { TypedApp } from "../app.js";
import { askerOf } from "../asker.js";
import { type Door, OUT_OF_REACH } from "../auth.js";
import { maySee } from "../caller.js";
import { errorResponses } from "../error-responses.js";
import { type EventStreams, STREAM_COUNT_MAX } from "../event-streams.js";
import { FOR_OWN_PAGES } from "../own-page-headers.js";

const TOO_MANY =
  `too many event streams are open for this token or address, which may have ${STREAM_COUNT_MAX / 2} of ${STREAM_COUNT_MAX} while others have ` +
  "none, and fewer beside others; close one";

interface EventsRouteOptions {
  readonly streams: EventStreams;
  readonly door: Door;
}

export function eventsRoute(app: TypedApp, { streams, door }: EventsRouteOptions): void {
  app.get(
    OPERATOR_ROUTES.events,
    {
      config: { access: "read", isFiltered: true, slots: "none" },
      schema: {
        summary:
          "Server-sent events: leases, refusals and what the guard does, with Last-Event-ID; `gap` tells of missed ones",
        querystring: z.strictObject({
          namespace: namespaceSchema.optional(),
          recent: z.enum(["yes", "no"]).default("no").describe("tell first what is still known"),
        }),
        response: { ...errorResponses },
      },
    },
    (request, reply) => {
      const { caller } = request;
      const { namespace, recent } = request.query;
      if (namespace !== undefined && !maySee(caller, namespace)) throw new CoordinatorError("forbidden", OUT_OF_REACH);
      const asker = askerOf(request);
      if (!streams.hasPlaceFor(asker)) throw new CoordinatorError("too_many_streams", TOO_MANY);
      const lastEventId = request.headers["last-event-id"];
      reply.hijack();
      reply.raw.writeHead(200, {
        ...FOR_OWN_PAGES,
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-store",
        // A proxy that waits for the end of the answer would wait for ever.
        "x-accel-buffering": "no",
      });
      streams.begin(reply.raw, {
        asker,
        namespace,
        caller,
        isStillKnown: () => door.knows(caller),
        lastEventId: typeof lastEventId === "string" ? lastEventId : undefined,
        wantsRecent: recent === "yes",
      });
    },
  );
}
