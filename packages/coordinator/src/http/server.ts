/**
 * The HTTP server of a coordinator: it checks what holds for every request, responds to errors with the protocol's error bodies, loads the
 * routes that it does not need at once (later-routes.ts), and stops gracefully. Knows the coordinator, and nothing of stores.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { filledJson, ROUTES } from "@callnumber/protocol/api";
import type { Coordinator } from "../coordinator.js";
import { CoordinatorError } from "../errors.js";
import { type CoordinatorEvent, EventHub } from "../events/events.js";
import { RecentEvents } from "../events/recent-events.js";
import { LeaseLimits } from "../limits/lease-limits.js";
import { SILENT_LOG } from "../log.js";
import { NumberMaker } from "../numbers/number-maker.js";
import { isLoopback } from "../platform/index.js";
import { type Authenticator, canReadSettings, NO_AUTH, type Principal } from "./auth.js";
import { type HostNames, otherSiteRejection } from "./browser-requests.js";
import { COMMON_HEADERS, errorLogger, errorResponse, type RejectedRequest, send } from "./error-response.js";
import { CONCURRENT_LEASES_DEFAULT, newLimits } from "./in-flight-limits.js";
import type { LaterRoutes } from "./later-routes.js";
import { NodeServers } from "./node-servers.js";
import { PostRequests } from "./post-requests.js";
import type { StartedWith } from "./routes/health.js";
import { addLeaseRoutes } from "./routes/leases.js";
import { addNumbersRoute } from "./routes/numbers.js";
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
   * How many leases and reports one client may have in flight, by its token or else its address, and as many requests for numbers; all clients
   * together may have twice as many, and further ones fail with `overloaded`. Default 64.
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
  /**
   * Called when the routes that are loaded after `listen` can't be, because the installation is damaged, for example: end the process then. Default:
   * it ends by an unhandled rejection.
   */
  readonly onLoadError?: (error: unknown) => void;
}

/** How long the other routes are not loaded, unless one is requested: a load would take the CPU from the importers that waited for the start. */
const LOAD_AFTER_MS = 1_000;

/** The HTTP server of one coordinator. */
export interface Server {
  /**
   * Starts to listen; resolves to the URL, with the port that was taken when `port` is 0.
   * @throws TypeError for a host that other machines reach, without tokens or without TLS, where the options don't allow that by name.
   */
  listen(address: { readonly host: string; readonly port: number }): Promise<string>;
  /** New connections are encrypted with this from now on. When its client CA is another one, open connections are closed. */
  useTls(material: TlsMaterial): void;
  /** Responds to new requests with `shutting_down`, finishes those in flight, gives up the runs that it generates numbers of, and closes. */
  stop(): Promise<void>;
}

/**
 * Creates the HTTP API and the console of a coordinator. From `listen` on, leases, reports and requests for numbers are answered; all others wait
 * until their routes are loaded, which begins with the first of them, or a second later.
 */
export function createServer(options: ServerOptions): Server {
  const { coordinator, startedWith, tls, maxConnections } = options;
  const { events = new EventHub(SILENT_LOG), recentEvents = new RecentEvents(), authenticator = NO_AUTH } = options;
  const { limits = new LeaseLimits(), maxConcurrentLeases = CONCURRENT_LEASES_DEFAULT } = options;
  const logError = errorLogger(events);
  const filled = (json: string, principal: Principal | null | undefined) =>
    startedWith !== undefined && canReadSettings(principal) ? filledJson(json, startedWith.commands) : json;
  const sendError = (error: unknown, request: RejectedCall, response: ServerResponse) => {
    const { status, headers, body } = errorResponse(logError(error, request));
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    send(response, status, filled(JSON.stringify(body), request.principal));
  };
  const siteRejection = otherSiteRejection(hostNamesOf(options));
  const rejectionOf = (request: IncomingMessage) =>
    servers.isStopping && request.url !== ROUTES.health
      ? new CoordinatorError("shutting_down", "this coordinator is stopping; try again in a moment")
      : siteRejection(request);
  // What holds for every request is checked here, once. Leases and reports go their own way, all others to the later routes.
  const listener = (request: IncomingMessage, response: ServerResponse) => {
    const rejection = rejectionOf(request);
    if (rejection !== undefined) sendError(rejection, { raw: request }, response);
    else if (!posts.take(request, response)) {
      for (const [name, value] of Object.entries(COMMON_HEADERS)) response.setHeader(name, value);
      if (later === undefined) void answerWhenLoaded(request, response);
      else later.listener(request, response);
    }
  };
  const servers = new NodeServers({ tls, maxConnections, log: events, listener });
  const inFlight = newLimits(maxConcurrentLeases);
  const posts = new PostRequests({ authenticator, servers, log: events, sendError });
  addLeaseRoutes(posts, { coordinator, limits, slots: inFlight.leases });
  const numbers = new NumberMaker({ source: coordinator, log: events });
  addNumbersRoute(posts, { numbers, limits, slots: inFlight.numbers });

  let later: LaterRoutes | undefined;
  let loading: Promise<LaterRoutes> | undefined;
  const earlierEvents: CoordinatorEvent[] = [];
  let endEarlierEvents = () => {};
  let loadTimer: NodeJS.Timeout | undefined;
  const load = async () => {
    const { makeLaterRoutes } = await import("./later-routes.js");
    endEarlierEvents();
    const shared = { ...options, events, recentEvents, authenticator, earlierEvents };
    later = await makeLaterRoutes({ ...shared, servers, posts, numbers, inFlight, logError, filled });
    return later;
  };
  const loadOnce = () => {
    if (loading === undefined) {
      loading = load();
      loading.catch(options.onLoadError);
    }
    return loading;
  };
  const answerWhenLoaded = async (request: IncomingMessage, response: ServerResponse) => {
    try {
      inFlight.waiting.take(request.socket.remoteAddress ?? "");
      const routes = await loadOnce();
      routes.listener(request, response);
    } catch (error) {
      sendError(error, { raw: request }, response);
    }
  };

  return {
    async listen(address) {
      assertExposureAllowed(address.host, options);
      endEarlierEvents = events.subscribe((event) => void earlierEvents.push(event));
      const url = await servers.listen(address);
      loadTimer = setTimeout(loadOnce, LOAD_AFTER_MS);
      return url;
    },
    useTls: (material) => servers.useTls(material),
    async stop() {
      clearTimeout(loadTimer);
      const closed = servers.close();
      const loaded = () => loading?.catch(() => undefined);
      // A stream has no end of its own to wait for.
      (await loaded())?.streams.close();
      await closed;
      await numbers.close();
      // Perhaps for `/healthz`, which is answered meanwhile.
      await (await loaded())?.close();
      endEarlierEvents();
    },
  };
}

type RejectedCall = RejectedRequest & { readonly principal?: Principal };

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
