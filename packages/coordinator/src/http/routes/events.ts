/** `GET /v1/events`: what happens in this coordinator, as it happens. */
import { OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import { namespaceSchema } from "@callnumber/protocol/schemas";
import { z } from "zod";
import { CoordinatorError } from "../../errors.js";
import type { TypedApp } from "../app.js";
import { type Authenticator, canRead, FORBIDDEN } from "../auth.js";
import { errorResponses, SAME_ORIGIN_HEADERS } from "../error-response.js";
import { type EventStreams, STREAM_COUNT_MAX } from "../event-streams.js";
import { clientKey } from "../in-flight-limits.js";

const TOO_MANY =
  `too many event streams are open for this token or address, which may have ${STREAM_COUNT_MAX / 2} of ${STREAM_COUNT_MAX} while others have ` +
  "none, and fewer beside others; close one";

export function eventsRoute(app: TypedApp, streams: EventStreams, authenticator: Authenticator): void {
  app.get(
    OPERATOR_ROUTES.events,
    {
      config: { permission: "read", isFiltered: true, slots: "none" },
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
      const { principal } = request;
      const { namespace, recent } = request.query;
      if (namespace !== undefined && !canRead(principal, namespace)) throw new CoordinatorError("forbidden", FORBIDDEN);
      const client = clientKey(request);
      if (!streams.hasSlotFor(client)) throw new CoordinatorError("too_many_streams", TOO_MANY);
      const lastEventId = request.headers["last-event-id"];
      reply.hijack();
      reply.raw.writeHead(200, {
        ...SAME_ORIGIN_HEADERS,
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-store",
        // A proxy that waits for the end of the response would wait without end.
        "x-accel-buffering": "no",
      });
      streams.begin(reply.raw, {
        client,
        namespace,
        principal,
        isStillValid: () => authenticator.isValid(principal),
        lastEventId: typeof lastEventId === "string" ? lastEventId : undefined,
        wantsRecent: recent === "yes",
      });
    },
  );
}
