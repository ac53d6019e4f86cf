/**
 * All routes but those of `PostRequests`, on the web framework. It takes longer to load than everything else of a coordinator together, so it is
 * loaded when leases are answered already.
 */
import type { RequestListener } from "node:http";
import { ROUTES } from "@callnumber/protocol/api";
import type { Coordinator } from "../coordinator.js";
import type { CoordinatorEvent, EventHub } from "../events/events.js";
import type { RecentEvents } from "../events/recent-events.js";
import { Metrics } from "../metrics/metrics.js";
import type { NumberMaker } from "../numbers/number-maker.js";
import { newApp, rejectUnknownQueries, unknownRouteRejection, type ZodTypeProvider } from "./app.js";
import { type Authenticator, type Principal, registerAuth } from "./auth.js";
import { registerConsole } from "./console.js";
import type { LogError } from "./error-response.js";
import { EventStreams, eventsRoute } from "./event-streams.js";
import { type Limits, limitConcurrency } from "./in-flight-limits.js";
import type { NodeServers } from "./node-servers.js";
import { describeRoutes } from "./openapi.js";
import type { PostRequests } from "./post-requests.js";
import {
  healthRoutes,
  metricsRoute,
  openApiRoute,
  SETTINGS,
  type StartedWith,
  settingsRoute,
} from "./routes/health.js";
import { exportRoute, namespacesRoutes, PUBLIC_CALL_NUMBER, publicCallNumberRoute } from "./routes/namespaces.js";
import { routeThatIsOff } from "./routes/route-parts.js";

export interface LaterRoutesOptions {
  readonly coordinator: Coordinator;
  readonly release: string;
  readonly events: EventHub;
  readonly recentEvents: RecentEvents;
  /** Events of the hub until now, which the metrics count, too. */
  readonly earlierEvents: readonly CoordinatorEvent[];
  readonly authenticator: Authenticator;
  readonly publicInspect?: boolean;
  readonly startedWith?: StartedWith | undefined;
  readonly servers: NodeServers;
  /** Describes its routes here, and is handed requests for them that it did not recognize. */
  readonly posts: PostRequests;
  readonly numbers: NumberMaker;
  readonly inFlight: Limits;
  readonly logError: LogError;
  /** Fills in the commands in JSON for a client. */
  readonly filled: (json: string, principal: Principal | null) => string;
}

export interface LaterRoutes {
  readonly listener: RequestListener;
  readonly streams: EventStreams;
  /** Call it when no request is in flight. */
  close(): Promise<void>;
}

/** @throws Error when a file of the installation is missing or damaged. */
export async function makeLaterRoutes(options: LaterRoutesOptions): Promise<LaterRoutes> {
  const { coordinator, release, events, recentEvents, authenticator, startedWith, servers } = options;
  const { posts, numbers, inFlight, logError, filled } = options;
  const metrics = new Metrics({ coordinator, events, earlierEvents: options.earlierEvents, release, servers });
  const streams = new EventStreams(recentEvents, startedWith?.commands);
  const app = newApp(logError);
  app.addHook("onSend", (request, _reply, payload, done) => {
    done(null, typeof payload === "string" ? filled(payload, request.principal) : payload);
  });
  const makeDocument = describeRoutes(app, release);
  const rejectUnknownRoutes = unknownRouteRejection(app);
  // Before the hooks below, which don't run for it.
  await app.register(registerConsole);
  rejectUnknownQueries(app);
  registerAuth(app, authenticator, (request, reply) => servers.know(request.raw, reply.raw));
  limitConcurrency(app, inFlight);
  rejectUnknownRoutes();
  await app.register(async (scope) => {
    const routes = scope.withTypeProvider<ZodTypeProvider>();
    posts.register(routes);
    namespacesRoutes(routes, coordinator, release, numbers.made);
    exportRoute(routes, coordinator, logError);
    if (options.publicInspect) publicCallNumberRoute(routes, coordinator);
    else routeThatIsOff(routes, ROUTES.publicCallNumber, PUBLIC_CALL_NUMBER, PUBLIC_INSPECT_IS_OFF);
    if (startedWith)
      settingsRoute(routes, startedWith, async () => ({
        release,
        certificateEndsAtMs: servers.material?.endsAtMs ?? null,
        findings: await coordinator.findings(),
      }));
    else routeThatIsOff(routes, ROUTES.settings, SETTINGS, SETTINGS_ARE_OFF);
    healthRoutes(routes, coordinator);
    eventsRoute(routes, streams, authenticator);
  });
  openApiRoute(app, makeDocument);
  metricsRoute(app, metrics);
  await app.ready();
  return {
    listener: app.routing,
    streams,
    async close() {
      await app.close();
      metrics.close();
    },
  };
}

const PUBLIC_INSPECT_IS_OFF =
  "this coordinator does not say without a token whether a call number can exist. Start it with `serve --public-inspect`";
const SETTINGS_ARE_OFF =
  "this coordinator does not show its settings, because clients without a token may come from elsewhere. Start it with " +
  "`serve --tokens-file FILE`, or without --listen-without-tokens and --allow-host";
