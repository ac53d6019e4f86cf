/** A response of the coordinator as a component has it: the newest one, its age, and why there is no newer one. */
import { type OperatorEvent, pathOf, ROUTES } from "@callnumber/protocol/api";
import type { NamespacesResponse, StatusResponse } from "@callnumber/protocol/schemas";
import { useEffect, useState } from "preact/hooks";
import { RequestError, request } from "./api.js";
import { onEvent } from "./event-stream.js";

export interface Loadable<T> {
  /** Undefined before the first response. Kept when a later request fails. */
  readonly data: T | undefined;
  /** When it came. */
  readonly atMs: number | undefined;
  /** Why the last request failed; undefined when it did not. */
  readonly error: RequestError | undefined;
  /** When the last request that has ended was sent, by `performance.now()`: a later event may be newer than its response. */
  readonly asOfMs: number;
  readonly reload: () => void;
}

/** What is known of a path, for all components that show it, also when they are shown again. */
class Resource {
  data: unknown;
  atMs: number | undefined;
  error: RequestError | undefined;
  asOfMs = Number.NEGATIVE_INFINITY;
  /** By `performance.now()`, as `asOfMs` and the pause: the machine's clock may be set. */
  requestedAtMs = Number.NEGATIVE_INFINITY;
  readonly watchers = new Set<() => void>();
  #pausesUntilMs = 0;
  #isLoading = false;
  #isOutdated = false;

  constructor(readonly path: string) {}

  readonly load = (): void => {
    if (this.#isLoading || this.watchers.size === 0 || performance.now() < this.#pausesUntilMs) return;
    this.#isLoading = true;
    this.#isOutdated = false;
    this.requestedAtMs = performance.now();
    request(this.path)
      .then(
        (data) => {
          this.data = data;
          this.atMs = Date.now();
          this.error = undefined;
        },
        (error: unknown) => this.#fail(error),
      )
      .finally(() => {
        this.#isLoading = false;
        this.asOfMs = this.requestedAtMs;
        for (const watcher of this.watchers) watcher();
        if (this.#isOutdated) this.load();
      });
  };

  /** After a change: a response that is on its way may be older. Nothing to do for one that was requested since. */
  readonly loadSince = (changedAtMs: number): void => {
    if (this.requestedAtMs > changedAtMs) return;
    this.#isOutdated = this.#isLoading;
    this.load();
  };

  #fail(error: unknown): void {
    this.error = error instanceof RequestError ? error : new RequestError("internal_error", String(error));
    const { code, waitMs } = this.error;
    if (waitMs !== undefined) {
      this.#pausesUntilMs = performance.now() + waitMs;
      setTimeout(this.load, waitMs);
    } else if (code !== "unreachable" && this.path !== ROUTES.namespaces) {
      // The list knows whether the namespace leases, also where nothing of it can be read.
      resources.get(ROUTES.namespaces)?.loadSince(performance.now());
    }
  }
}

const resources = new Map<string, Resource>();
const RESOURCE_COUNT_MAX = 50;

/** How long events are gathered before they lead to one request. */
const GATHER_MS = 1_000;
const RELOAD_EVERY_MS = 15_000;
/** For requests that read thousands of leases: they are not repeated with each new one. */
export const REST_MS = 5_000;

/**
 * Requests `path`, again every 15 s while the page is visible, and soon after an event of `namespace`, where one is given: then at most once
 * in `restMs`, for requests that cost the coordinator more.
 */
export function useResponse<T>(path: string, namespace?: string, restMs = GATHER_MS): Loadable<T> {
  const [, redraw] = useState(0);
  const resource = resourceOf(path);

  useEffect(() => {
    const watcher = () => redraw((count) => count + 1);
    if (resource.watchers.size === 0) resource.error = undefined;
    resource.watchers.add(watcher);
    // Several components show the same.
    const loadIfVisible = () =>
      document.visibilityState === "visible" && resource.loadSince(performance.now() - GATHER_MS);
    resource.load();
    const timer = setInterval(loadIfVisible, RELOAD_EVERY_MS);
    document.addEventListener("visibilitychange", loadIfVisible);
    return () => {
      resource.watchers.delete(watcher);
      clearInterval(timer);
      document.removeEventListener("visibilitychange", loadIfVisible);
    };
  }, [resource]);

  useEffect(() => {
    if (namespace === undefined) return undefined;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let changedAtMs = 0;
    const end = onEvent((event) => {
      if (event !== null && !changes(namespace, event)) return;
      changedAtMs = performance.now();
      const restingMs = resource.requestedAtMs + restMs - performance.now();
      timer ??= setTimeout(
        () => {
          timer = undefined;
          resource.loadSince(changedAtMs);
        },
        Math.max(GATHER_MS, restingMs),
      );
    });
    return () => {
      end();
      clearTimeout(timer);
    };
  }, [resource, namespace, restMs]);

  const { data, atMs, error, asOfMs, load } = resource;
  return { data: data as T | undefined, atMs, error, asOfMs, reload: load };
}

export function useStatus(namespace: string): Loadable<StatusResponse> {
  return useResponse(pathOf("status", { namespace }), namespace);
}

export function useNamespaces(namespace: string, restMs?: number): Loadable<NamespacesResponse> {
  return useResponse(ROUTES.namespaces, namespace, restMs);
}

function resourceOf(path: string): Resource {
  const resource = resources.get(path) ?? new Resource(path);
  resources.set(path, resource);
  for (const [key, { watchers }] of resources) {
    if (resources.size <= RESOURCE_COUNT_MAX) break;
    if (watchers.size === 0 && key !== path) resources.delete(key);
  }
  return resource;
}

/** They change nothing; and the rejection of one of our requests would lead to the next request. */
const WITHOUT_CHANGE =
  /^(request_rejected|rejections_suppressed|internal_error|clock_skew|run_above_high_water_mark|events_suppressed)$/;

function changes(namespace: string, event: OperatorEvent): boolean {
  return (event.namespace === null || event.namespace === namespace) && !WITHOUT_CHANGE.test(event.event);
}
