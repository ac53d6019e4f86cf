/**
 * The HTTP server of a coordinator: it puts the routes together, responds to errors with the protocol's error bodies, and stops gracefully.
 * Knows the coordinator, and nothing of stores.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { filledJson, ROUTES } from "@callnumber/protocol/api";
import swagger from "@fastify/swagger";
import { jsonSchemaTransform, type ZodTypeProvider } from "fastify-type-provider-zod";
import type { Coordinator } from "../coordinator.js";
import { CoordinatorError } from "../errors.js";
import { EventHub } from "../events/events.js";
import { RecentEvents } from "../events/recent-events.js";
import { LeaseLimits } from "../limits/lease-limits.js";
import { SILENT_LOG } from "../log.js";
import { Metrics } from "../metrics/metrics.js";
import { isLoopback } from "../platform/index.js";
import { newApp, rejectUnknownQueries, routeThatIsOff, unknownRouteRejection } from "./app.js";
import { type Authenticator, canReadSettings, NO_AUTH, type Principal, registerAuth } from "./auth.js";
import { type HostNames, otherSiteRejection, registerConsole } from "./browser-requests.js";
import { COMMON_HEADERS, errorLogger, errorResponse, type RejectedRequest, sendJson } from "./error-response.js";
import { EventStreams, eventsRoute } from "./event-streams.js";
import { CONCURRENT_LEASES_DEFAULT, limitConcurrency, newLimits } from "./in-flight-limits.js";
import { NodeServers } from "./node-servers.js";
import { PostRequests } from "./post-requests.js";
import { healthRoutes, metricsRoute, openApiRoute, type StartedWith, settingsRoute } from "./routes/health.js";
import { leaseRoutes } from "./routes/leases.js";
import { exportRoute, namespacesRoutes, publicCallNumberRoute } from "./routes/namespaces.js";
import type { TlsMaterial } from "./tls.js";

/** What a server is made of; all but coordinator and release have a default. */
export interface ServerOptions {
  readonly coordinator: Coordinator;
  /** Release number, for OpenAPI and the metrics. */
  readonly release: string;
  /** The hub that the coordinator logs to: rejections are logged there, too, and the metrics count what passes. Default: a silent one. */
  readonly events?: EventHub;
  /** What the event stream sends; its creator subscribes it to the hub. Default: nothing. */
  readonly recentEvents?: RecentEvents;
  /** Authenticates clients. Default: no token is required, and only this machine is listened to. */
  readonly authenticator?: Authenticator;
  /** Listen on an address that other machines reach, although no token is required. Default false: then `listen` throws a TypeError. */
  readonly listenWithoutTokens?: boolean;
  /** Listen on an address that other machines reach, although nothing is encrypted. Default false: then `listen` throws a TypeError. */
  readonly listenWithoutTls?: boolean;
  /**
   * Further hosts that requests may name where no token is required, in lower case, without ports. Default none: only this machine, or with
   * `listenWithoutTokens` any address. With an authenticator requests may name any host.
   */
  readonly allowedHosts?: readonly string[];
  /** How many runs tokens and holders may take. Default: no limit. */
  readonly limits?: LeaseLimits;
  /**
   * How many leases and reports one client may have in flight, by its token or else its address; all clients together may have twice as
   * many, and further ones fail with `overloaded`. Default 64.
   */
  readonly maxConcurrentLeases?: number;
  /** Whether unauthenticated clients may ask if a call number can exist. Default false: then that path names the option. */
  readonly publicInspect?: boolean;
  /** Open connections at a time, on each address; further ones are closed. Default 2,048. */
  readonly maxConnections?: number;
  /** How it was started, for operators, without secrets. Default: that path names the options that show it. */
  readonly startedWith?: StartedWith | undefined;
  /** Encrypts. Default: plain HTTP. */
  readonly tls?: TlsMaterial | undefined;
}

/** The HTTP server of one coordinator. */
export interface Server {
  /**
   * Starts to listen; resolves to the URL, with the port that was taken when `port` is 0.
   * @throws TypeError for a host that other machines reach, without tokens or without TLS, where the options don't allow that by name.
   */
  listen(address: { readonly host: string; readonly port: number }): Promise<string>;
  /** New connections are encrypted with this from now on. When its client CA is another one, open connections are closed. */
  useTls(material: TlsMaterial): void;
  /** Responds to new requests with `shutting_down`, finishes those in flight, and closes. */
  stop(): Promise<void>;
}

/** Creates the HTTP API and the console of a coordinator. It listens when `listen` is called. */
export async function createServer(options: ServerOptions): Promise<Server> {
  const { coordinator, release, startedWith, tls, maxConnections } = options;
  const { events = new EventHub(SILENT_LOG), recentEvents = new RecentEvents(), authenticator = NO_AUTH } = options;
  const { limits = new LeaseLimits(), maxConcurrentLeases = CONCURRENT_LEASES_DEFAULT } = options;
  const logError = errorLogger(events);
  const servers = new NodeServers({ tls, maxConnections, log: events });
  const metrics = new Metrics({ coordinator, events, release, servers });
  const streams = new EventStreams(recentEvents, startedWith?.commands);
  const filled = (json: string, principal: Principal | null | undefined) =>
    startedWith !== undefined && canReadSettings(principal) ? filledJson(json, startedWith.commands) : json;
  const sendError = (error: unknown, request: RejectedCall, response: ServerResponse) => {
    const { status, headers, body } = errorResponse(logError(error, request));
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    sendJson(response, status, filled(JSON.stringify(body), request.principal));
  };
  const siteRejection = otherSiteRejection(hostNamesOf(options));
  const rejectionOf = (request: IncomingMessage) =>
    servers.isStopping && request.url !== ROUTES.health
      ? new CoordinatorError("shutting_down", "this coordinator is stopping; try again in a moment")
      : siteRejection(request);
  // What holds for every request is checked here, once. Leases and reports go their own way, all others to the framework.
  const app = newApp(logError, (framework) =>
    servers.create((request, response) => {
      const rejection = rejectionOf(request);
      if (rejection !== undefined) sendError(rejection, { raw: request }, response);
      else if (!posts.take(request, response)) {
        for (const [name, value] of Object.entries(COMMON_HEADERS)) response.setHeader(name, value);
        framework(request, response);
      }
    }),
  );
  const inFlight = newLimits(maxConcurrentLeases);
  const posts = new PostRequests(app, { authenticator, servers, slots: inFlight.leases, log: events, sendError });
  app.addHook("onSend", (request, _reply, payload, done) => {
    done(null, typeof payload === "string" ? filled(payload, request.principal) : payload);
  });

  await app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "Callnumber coordinator",
        description: "Leases runs: each holds 16,384 call numbers, and is leased once, ever.",
        version: release,
      },
    },
    transform: jsonSchemaTransform,
  });
  const rejectUnknownRoutes = unknownRouteRejection(app);
  // Before the hooks below, which don't run for it.
  await app.register(registerConsole);
  rejectUnknownQueries(app);
  registerAuth(app, authenticator, (request, reply) => servers.know(request.raw, reply.raw));
  limitConcurrency(app, inFlight);
  rejectUnknownRoutes();
  await app.register(async (scope) => {
    const routes = scope.withTypeProvider<ZodTypeProvider>();
    leaseRoutes(routes, posts, coordinator, limits);
    namespacesRoutes(routes, coordinator, release);
    exportRoute(routes, coordinator, logError);
    if (options.publicInspect) publicCallNumberRoute(routes, coordinator);
    else routeThatIsOff(routes, ROUTES.publicCallNumber, PUBLIC_INSPECT_IS_OFF);
    if (startedWith)
      settingsRoute(routes, startedWith, async () => ({
        release,
        certificateEndsAtMs: servers.material?.endsAtMs ?? null,
        findings: await coordinator.findings(),
      }));
    else routeThatIsOff(routes, ROUTES.settings, SETTINGS_ARE_OFF);
    healthRoutes(routes, coordinator);
    eventsRoute(routes, streams, authenticator);
  });
  openApiRoute(app);
  metricsRoute(app, metrics);

  return {
    async listen(address) {
      assertExposureAllowed(address.host, options);
      const url = await app.listen(address);
      // The framework does not know of our TLS.
      return tls === undefined ? url : url.replace(/^http:/, "https:");
    },
    useTls: (material) => servers.useTls(material),
    async stop() {
      // A stream has no end of its own to wait for.
      streams.close();
      await servers.close();
      await app.close();
      metrics.close();
    },
  };
}

type RejectedCall = RejectedRequest & { readonly principal?: Principal };

const PUBLIC_INSPECT_IS_OFF =
  "this coordinator does not say without a token whether a call number can exist. Start it with `serve --public-inspect`";
const SETTINGS_ARE_OFF =
  "this coordinator does not show its settings, because clients without a token may come from elsewhere. Start it with " +
  "`serve --tokens-file FILE`, or without --listen-without-tokens and --allow-host";

/** With tokens any host is allowed: a page under another name has no token. */
function hostNamesOf(options: ServerOptions): HostNames | undefined {
  const { authenticator = NO_AUTH, listenWithoutTokens, allowedHosts } = options;
  if (authenticator !== NO_AUTH) return undefined;
  return { addresses: listenWithoutTokens ? "any" : "loopback", names: new Set(allowedHosts) };
}

function assertExposureAllowed(
  host: string,
  { authenticator = NO_AUTH, tls, listenWithoutTokens = false, listenWithoutTls = false }: ServerOptions,
): void {
  if (isLoopback(host)) return;
  const refuse = (what: string, remedy: string, option: string) => {
    throw new TypeError(
      `Can't listen on "${host}": other machines reach it, and ${what}. Pass ${remedy}, listen on 127.0.0.1, or pass ${option}: true.`,
    );
  };
  if (authenticator === NO_AUTH && !listenWithoutTokens)
    refuse("no token is required", "an authenticator", "listenWithoutTokens");
  if (tls === undefined && !listenWithoutTls) refuse("nothing is encrypted", "tls", "listenWithoutTls");
}
