/**
 * The HTTP service: puts the routes together, speaks JSON only, refuses with the protocol's error bodies, stops gracefully.
 * Knows the coordinator, and nothing of stores.
 */

import { ROUTES } from "@callnumber/protocol/wire";
import swagger from "@fastify/swagger";
import type { FastifyRequest } from "fastify";
import { jsonSchemaTransform, type ZodTypeProvider } from "fastify-type-provider-zod";
import type { Coordinator } from "../coordinator.js";
import { EventHub } from "../events/events.js";
import { RecentEvents } from "../events/recent-events.js";
import { withinTrace } from "../events/trace-context.js";
import { LEASES_AT_ONCE_DEFAULT, newConcurrencyLimits } from "../limits/concurrency-limits.js";
import { LeaseLimits } from "../limits/lease-limits.js";
import { SILENT_LOG } from "../log.js";
import { Metrics } from "../metrics/metrics.js";
import { type Door, keepDoor, OPEN_DOOR } from "./access.js";
import { newApp, PARAMETER_LENGTH_MAX, type TypedApp } from "./app.js";
import { callNumberRoute } from "./call-number-route.js";
import { mayKnowSettings } from "./caller.js";
import { capacityRoute } from "./capacity-route.js";
import { consoleRoute } from "./console-route.js";
import { type Refusals, refusalsTold } from "./error-answer.js";
import { EventStreams } from "./event-streams.js";
import { eventsRoute } from "./events-route.js";
import { exportRoute } from "./export-route.js";
import { filledJson } from "./filled-json.js";
import { healthRoutes } from "./health-routes.js";
import { historyRoute } from "./history-route.js";
import { type HostNames, refuseForeignHosts } from "./host-names.js";
import { InFlight } from "./in-flight.js";
import { leaseRoute } from "./lease-route.js";
import { limitConcurrency } from "./limit-concurrency.js";
import { hostNamesFor, mustKeepToItself } from "./listening.js";
import { metricsRoute } from "./metrics-route.js";
import { namespacesRoutes } from "./namespaces-routes.js";
import { CONNECTIONS_DEFAULT, NodeServers } from "./node-servers.js";
import { openApiRoute } from "./openapi-route.js";
import { rejectOtherSites } from "./other-sites.js";
import { FOR_OWN_PAGES } from "./own-page-headers.js";
import { publicCallNumberRoute } from "./public-call-number-route.js";
import { reportRoute } from "./report-route.js";
import { runsRoutes } from "./runs-routes.js";
import { SessionDoor } from "./session-door.js";
import { sessionRoutes } from "./session-routes.js";
import { Sessions, type SignInTokens } from "./sessions.js";
import { type StartedWith, settingsRoute } from "./settings-route.js";
import { statusRoute } from "./status-route.js";
import { refuseStrayQueries } from "./strict-queries.js";
import type { TlsMaterial } from "./tls-files.js";

/** How long a stop waits for requests in flight. A request that is not through by then never will be. */
const DRAIN_TIMEOUT_MS = 10_000;
/** How long it waits for what has begun to arrive: a request of ours is one packet, or two. */
const ARRIVAL_TIMEOUT_MS = 1_000;

export interface ServerOptions {
  readonly coordinator: Coordinator;
  /** Release number, for OpenAPI and the metrics. */
  readonly release: string;
  /** The hub that the coordinator logs to: refusals go there too, and the metrics count what passes. Default: a silent one. */
  readonly events?: EventHub;
  /** What the event stream tells; whoever makes it subscribes it to the hub. Default: nothing. */
  readonly recentEvents?: RecentEvents;
  /** Who is let in. Default: everybody, and only this machine is listened to. */
  readonly door?: Door;
  /** Listen where others reach the port, although nobody is asked for a token. Default false: then `listen` throws a TypeError. */
  readonly listenWithoutTokens?: boolean;
  /** Listen where others reach the port, although nothing is encrypted. Default false: then `listen` throws a TypeError. */
  readonly listenWithoutTls?: boolean;
  /** With which tokens one signs in at the console. Default: none, and nobody is asked to. */
  readonly signInTokens?: SignInTokens | undefined;
  /**
   * Which hosts requests must name. Default: where nobody is asked for a token this machine, or any address with `listenWithoutTokens`; else
   * any host is answered under.
   */
  readonly hostNames?: HostNames | undefined;
  /** How many runs tokens and holders may take. Default: as many as are asked for. */
  readonly limits?: LeaseLimits;
  /**
   * How many leases and reports one client may have in flight, by its token or else its address; all clients together may have twice as
   * many, and further ones fail with `overloaded`. Default 64.
   */
  readonly leasesAtOnce?: number;
  /** Whether strangers may ask if a call number can exist. Default false: then there is nothing at that path. */
  readonly publicInspect?: boolean;
  /** Open connections at a time, on each address; further ones are closed. Default 2,048. */
  readonly connectionCountMax?: number;
  /** How it was started, for operators who ask, without secrets. Default: nobody is told. */
  readonly startedWith?: StartedWith | undefined;
  /** Encrypts. Default: HTTP is spoken. */
  readonly tls?: TlsMaterial | undefined;
}

export interface Server {
  /**
   * Starts to listen; resolves to the address, with the port that was taken when `port` is 0.
   * @throws TypeError for a host that others reach, where nobody is asked for a token or nothing is encrypted, and that was not said.
   */
  listen(address: { readonly host: string; readonly port: number }): Promise<string>;
  /** New connections are encrypted with this from now on. When its client CA is another one, open connections are closed. */
  useTls(material: TlsMaterial): void;
  /** Answers new requests with `shutting_down`, finishes those in flight, and closes. */
  stop(): Promise<void>;
}

export async function createServer({
  coordinator,
  release,
  events = new EventHub(SILENT_LOG),
  recentEvents = new RecentEvents(),
  door = OPEN_DOOR,
  listenWithoutTokens = false,
  listenWithoutTls = false,
  signInTokens,
  hostNames = hostNamesFor({ door, listenWithoutTokens }),
  limits = new LeaseLimits(),
  leasesAtOnce = LEASES_AT_ONCE_DEFAULT,
  publicInspect = false,
  connectionCountMax = CONNECTIONS_DEFAULT,
  startedWith,
  tls,
}: ServerOptions): Promise<Server> {
  const refusals = refusalsTold(events);
  const sessions = signInTokens && new Sessions(signInTokens);
  const wholeDoor = sessions ? new SessionDoor(door, sessions) : door;
  const servers = new NodeServers({ tls, connectionCountMax, log: events });
  const app = newApp(refusals, servers);
  const metrics = new Metrics({ coordinator, events, release, servers });
  const streams = new EventStreams(recentEvents);
  const inFlight = new InFlight();
  let isStopping = false;
  app.setErrorHandler(refusals.answerError);
  app.setNotFoundHandler((request, reply) => {
    const message = `there is nothing at ${request.method} ${request.url.slice(0, PARAMETER_LENGTH_MAX)}; ${ROUTES.openApi} lists what there is`;
    reply.send(refusals.refuse({ code: "not_found", message }, request, reply));
  });
  // With callbacks: a promise for each hook of each request would be felt.
  app.addHook("onRequest", (request, reply, done) => {
    inFlight.begin(request.raw, reply.raw);
    reply.headers(FOR_OWN_PAGES).header("cache-control", "no-store");
    if (!isStopping || request.url === ROUTES.health) {
      done();
      return;
    }
    const message = "this coordinator is stopping; ask again in a moment";
    reply.send(refusals.refuse({ code: "shutting_down", message }, request, reply));
  });
  // Not before the body is read: what comes from a connection's own events would be outside of it.
  app.addHook("preHandler", (request, _reply, done) => withinTrace(request.headers, done));
  app.addHook("onSend", (request, reply, payload, done) => {
    if (isStopping) reply.header("connection", "close");
    const isFilled = startedWith !== undefined && typeof payload === "string" && mayKnowSettings(request.caller);
    done(null, isFilled ? filledJson(payload, startedWith.commands) : payload);
  });

  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "Callnumber coordinator",
        description: "Leases runs: each is good for 16,384 call numbers, and is leased once, ever.",
        version: release,
      },
    },
    transform: jsonSchemaTransform,
  });
  rejectOtherSites(app, refusals);
  if (hostNames !== undefined) refuseForeignHosts(app, hostNames, refusals);
  refuseStrayQueries(app, refusals);
  keepDoor(app, { door: wholeDoor, refusals });
  limitConcurrency(app, newConcurrencyLimits(leasesAtOnce));
  const methods = watchMethods(app);
  await app.register(async (scope) => {
    const routes = scope.withTypeProvider<ZodTypeProvider>();
    leaseRoute(routes, { coordinator, limits });
    reportRoute(routes, { coordinator, limits });
    runsRoutes(routes, coordinator);
    exportRoute(routes, coordinator, refusals);
    callNumberRoute(routes, coordinator);
    if (publicInspect) publicCallNumberRoute(routes, coordinator);
    statusRoute(routes, coordinator);
    namespacesRoutes(routes, coordinator, release);
    capacityRoute(routes, coordinator);
    historyRoute(routes, coordinator);
    if (startedWith) settingsRoute(routes, { startedWith, release, servers, coordinator });
    healthRoutes(routes, coordinator);
    eventsRoute(routes, { streams, door: wholeDoor });
    consoleRoute(routes);
    sessionRoutes(routes, { sessions, refusals, log: events, startedWith });
  });
  openApiRoute(app);
  metricsRoute(app, metrics);
  refuseOtherMethods(app, methods, refusals);

  return {
    async listen(address) {
      mustKeepToItself(address.host, { door, isEncrypted: tls !== undefined, listenWithoutTokens, listenWithoutTls });
      const url = await app.listen(address);
      // The framework knows of TLS only what it does itself.
      return tls === undefined ? url : url.replace(/^http:/, "https:");
    },
    useTls: (material) => servers.useTls(material),
    async stop() {
      isStopping = true;
      // A stream has no end of its own to wait for.
      streams.close();
      await inFlight.untilNone({ timeoutMs: DRAIN_TIMEOUT_MS, arrivalMs: ARRIVAL_TIMEOUT_MS });
      servers.end();
      await app.close();
      metrics.close();
    },
  };
}

type Methods = Map<string, string[]>;

function watchMethods(app: TypedApp): Methods {
  const methods: Methods = new Map();
  app.addHook("onRoute", ({ url, method }) => {
    methods.set(url, [...(methods.get(url) ?? []), ...[method].flat()]);
  });
  return methods;
}

/** A known path with a wrong method is told so, and told which one is right. */
function refuseOtherMethods(app: TypedApp, methods: Methods, refusals: Refusals): void {
  // A copy: each route that is added here is watched too.
  for (const [url, allowed] of Array.from(methods)) {
    const others = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"].filter(
      (method) => !allowed.includes(method),
    );
    app.route({
      method: others,
      url,
      config: { access: "public" },
      schema: { hide: true },
      // Before the body is read or checked: whatever it holds, the method is wrong.
      onRequest: async (request: FastifyRequest, reply) => {
        reply.header("allow", allowed.join(", "));
        const message = `${request.method} is not possible here; possible: ${allowed.join(", ")}`;
        reply.send(refusals.refuse({ code: "method_not_allowed", message }, request, reply));
        return reply;
      },
      handler: async () => {},
    });
  }
}
