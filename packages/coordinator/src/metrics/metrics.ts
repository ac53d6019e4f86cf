/**
 * What Prometheus gets of this process: events as they are counted, the state of each namespace at the moment of the scrape, and the figures of
 * Node. A registry of its own for each server, nothing global. docs/reference/metrics-and-events.md lists every metric.
 */
import { version as nodeRelease } from "node:process";
import { collectDefaultMetrics, Gauge, Registry } from "prom-client";
import type { CoordinatorEvent, EventHub } from "../events/events.js";
import type { Observation, ObservedNamespace } from "../status/status.js";
import { EventCounts, madeOf } from "./event-counts.js";

/** The part of a coordinator that is observed. */
interface Observable {
  observe(): Promise<Observation>;
}

export interface MetricsOptions {
  readonly coordinator: Observable;
  readonly events: EventHub;
  /** What the hub passed on before: it is counted, too. */
  readonly earlierEvents: readonly CoordinatorEvent[];
  readonly release: string;
  readonly servers: {
    /** Undefined where plain HTTP is spoken. */
    readonly material: { readonly endsAtMs: number } | undefined;
  };
}

const GUARD_STATES = ["active", "recovering", "stopped"] as const;

/** Set at each scrape. */
const GAUGES = {
  high_water_mark: [
    "The greatest run of its version (layout_version) leased or skipped, as this coordinator knows it.",
    "namespace",
  ],
  runs_used: ["Runs leased or skipped: none of them is ever leased again.", "namespace"],
  runs_left: ["Runs that are left in the run space.", "namespace"],
  headroom_runs: ["Runs that may be leased now, below the run ceiling.", "namespace"],
  ceiling_runs_per_second: ["The slope of the run ceiling, in runs per second.", "namespace"],
  layout_version: ["The layout version whose runs are leased.", "namespace"],
  data_nodes: ["Data nodes that could be promoted, by the record.", "namespace"],
  guard_state: ["1 for the state that the guard is in, 0 for the others.", "namespace", "state"],
  guard_state_since_timestamp_seconds: ["Since when the guard is in its state.", "namespace"],
  store_up: ["1 when the store responded to this scrape within a second."],
  tls_certificate_expiry_timestamp_seconds: ["When the TLS certificate in use expires."],
  build_info: ["Always 1; which release runs, on which Node.", "release", "node"],
} as const;

/** The gauges with a namespace and nothing else, and their values. */
const FIGURES: Readonly<Partial<Record<keyof typeof GAUGES, (one: ObservedNamespace) => number>>> = {
  high_water_mark: ({ highWaterMark }) => highWaterMark,
  runs_used: ({ space }) => space.runsUsed,
  runs_left: ({ space }) => space.runsLeft,
  headroom_runs: ({ space }) => space.headroomRuns,
  ceiling_runs_per_second: ({ space }) => space.ceilingRunsPerSecond,
  layout_version: ({ version }) => version,
  data_nodes: ({ nodeCount }) => nodeCount,
};

/** Gauges that are named like counters; the same figures, by kind, have the names without the ending. */
const MISNAMED = ["nodejs_active_handles_total", "nodejs_active_requests_total", "nodejs_active_resources_total"];

export class Metrics {
  readonly #options: MetricsOptions;
  readonly #registry = new Registry();
  readonly #counts: EventCounts;
  readonly #gauges: Readonly<Record<keyof typeof GAUGES, Gauge>>;
  readonly #unsubscribe: () => void;

  constructor(options: MetricsOptions) {
    this.#options = options;
    const registers = [this.#registry];
    this.#counts = new EventCounts(registers);
    this.#gauges = madeOf(GAUGES, (about) => new Gauge({ ...about, registers }));
    collectDefaultMetrics({ register: this.#registry });
    for (const name of MISNAMED) this.#registry.removeSingleMetric(name);
    for (const event of options.earlierEvents) this.#counts.count(event);
    this.#unsubscribe = options.events.subscribe((event) => this.#counts.count(event));
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** All metrics, in Prometheus' text format. Asks the store once whether it is there, and waits a second for it at most. */
  async text(): Promise<string> {
    const observation = await this.#options.coordinator.observe();
    for (const { namespace } of observation.namespaces) this.#counts.know(namespace);
    this.#counts.collect();
    this.#set(observation);
    return await this.#registry.metrics();
  }

  /** Stops counting. */
  close(): void {
    this.#unsubscribe();
  }

  #set({ isStoreUp, namespaces, refused }: Observation): void {
    const { release, servers } = this.#options;
    // A namespace may be there no more.
    for (const gauge of Object.values(this.#gauges)) gauge.reset();
    this.#gauges.build_info.set({ release, node: nodeRelease }, 1);
    this.#gauges.store_up.set(isStoreUp ? 1 : 0);
    // Without a certificate no sample: a gauge without labels is reset to 0, which would be 1970.
    if (servers.material === undefined) this.#gauges.tls_certificate_expiry_timestamp_seconds.remove();
    else this.#gauges.tls_certificate_expiry_timestamp_seconds.set(servers.material.endsAtMs / 1_000);
    for (const one of namespaces) {
      for (const [name, figureOf] of Object.entries(FIGURES)) {
        this.#gauges[name as keyof typeof GAUGES].set({ namespace: one.namespace }, figureOf(one));
      }
    }
    for (const { namespace, guard } of [...namespaces, ...refused]) {
      this.#gauges.guard_state_since_timestamp_seconds.set({ namespace }, guard.sinceMs / 1_000);
      for (const state of GUARD_STATES)
        this.#gauges.guard_state.set({ namespace, state }, state === guard.state ? 1 : 0);
    }
  }
}
