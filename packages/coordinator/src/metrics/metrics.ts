/**
 * What Prometheus gets of this process: events as they are counted, the state of each namespace at the moment of the scrape, and the figures of
 * Node. A registry of its own for each server, nothing global. docs/monitoring.md lists every metric.
 */
import { version as nodeRelease } from "node:process";
import { collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { type EventHub } from "../events/events.js";
import { type Observation, type ObservedNamespace } from "../status/readiness.js";
import { EventCounts } from "./event-counts.js";

/** The part of a coordinator that is observed. */
interface Observable {
  observe(): Promise<Observation>;
}

export interface MetricsOptions {
  readonly coordinator: Observable;
  readonly events: EventHub;
  readonly release: string;
  readonly servers: {
    /** Undefined where plain HTTP is spoken. */
    readonly material: { readonly endsAtMs: number } | undefined;
  };
}

type Registers = NonNullable<ConstructorParameters<typeof Gauge>[0]["registers"]>;

const GUARD_STATES = ["active", "recovering", "stopped"] as const;

/** Gauges with a namespace and nothing else. */
const FIGURES: Readonly<Record<string, readonly [help: string, figureOf: (one: ObservedNamespace) => number]>> = {
  high_water_mark: [
    "The greatest run leased or passed over, as this coordinator knows it.",
    (one) => one.highWaterMark,
  ],
  runs_used: ["Runs leased or passed over: none of them is ever leased again.", (one) => one.runsUsed],
  runs_left: ["Runs that the run space still holds.", (one) => one.runsLeft],
  headroom_runs: ["Runs that may be leased right now, below the clock line.", (one) => one.headroomRuns],
  ceiling_runs_per_second: ["By how many runs a second the clock line rises.", (one) => one.ceilingRunsPerSecond],
  layout_version: ["The layout version whose runs are leased.", (one) => one.version],
  generation: ["Settled doubts and recoveries that the store has seen, and a bit more.", (one) => one.generation],
  data_nodes: ["Data nodes that could be promoted, by the record.", (one) => one.nodeCount],
};

/** Gauges that are called like counters; the same figures, by kind, bear the names without the ending. */
const MISNAMED = ["nodejs_active_handles_total", "nodejs_active_requests_total", "nodejs_active_resources_total"];

export class Metrics {
  readonly #registry = new Registry();
  readonly #coordinator: Observable;
  readonly #counts: EventCounts;
  readonly #gauges: NamespaceGauges;
  readonly #unsubscribe: () => void;

  constructor({ coordinator, events, release, servers }: MetricsOptions) {
    const registers = [this.#registry];
    this.#coordinator = coordinator;
    this.#counts = new EventCounts(registers);
    this.#gauges = new NamespaceGauges(registers);
    new Gauge({
      name: "callnumber_build_info",
      help: "Always 1; which release runs, on which Node.",
      labelNames: ["release", "node"],
      registers,
    }).set({ release, node: nodeRelease }, 1);
    certificateGauge(registers, servers);
    collectDefaultMetrics({ register: this.#registry });
    for (const name of MISNAMED) this.#registry.removeSingleMetric(name);
    this.#unsubscribe = events.subscribe((event) => this.#counts.count(event));
  }

  get contentType(): string {
    return this.#registry.contentType;
  }

  /** All metrics, in Prometheus' text format. Asks the store once whether it is there, and waits a second for it at most. */
  async text(): Promise<string> {
    const observation = await this.#coordinator.observe();
    for (const { namespace } of observation.namespaces) this.#counts.know(namespace);
    this.#gauges.set(observation);
    return await this.#registry.metrics();
  }

  /** Stops counting. */
  close(): void {
    this.#unsubscribe();
  }
}

/** The state of each namespace, set at each scrape. */
class NamespaceGauges {
  readonly #figures: readonly (readonly [Gauge, (one: ObservedNamespace) => number])[];
  readonly #guardState: Gauge;
  readonly #guardSince: Gauge;
  readonly #storeUp: Gauge;

  constructor(registers: Registers) {
    const gauge = (name: string, help: string, labelNames: readonly string[]) =>
      new Gauge({ name: `callnumber_${name}`, help, labelNames: [...labelNames], registers });
    this.#figures = Object.entries(FIGURES).map(([name, [help, figureOf]]) => [
      gauge(name, help, ["namespace"]),
      figureOf,
    ]);
    this.#guardState = gauge("guard_state", "1 for the state that the guard is in, 0 for the others.", [
      "namespace",
      "state",
    ]);
    const since = "Since when the guard is in its state.";
    this.#guardSince = gauge("guard_state_since_timestamp_seconds", since, ["namespace"]);
    this.#storeUp = gauge("store_up", "1 when the store answered this scrape within a second.", []);
  }

  set({ isStoreUp, namespaces, refused }: Observation): void {
    this.#storeUp.set(isStoreUp ? 1 : 0);
    for (const [gauge] of this.#figures) gauge.reset();
    for (const gauge of [this.#guardState, this.#guardSince]) gauge.reset();
    for (const one of namespaces) {
      for (const [gauge, figureOf] of this.#figures) gauge.set({ namespace: one.namespace }, figureOf(one));
    }
    for (const { namespace, guard } of [...namespaces, ...refused]) {
      this.#guardSince.set({ namespace }, guard.sinceMs / 1_000);
      for (const state of GUARD_STATES) this.#guardState.set({ namespace, state }, state === guard.state ? 1 : 0);
    }
  }
}

/** When the certificate ends that is in use at the moment of the scrape. Where plain HTTP is spoken there is no sample. */
function certificateGauge(registers: Registers, servers: MetricsOptions["servers"]): void {
  const gauge = new Gauge({
    name: "callnumber_tls_certificate_expiry_timestamp_seconds",
    help: "When the TLS certificate in use ends.",
    registers,
    collect() {
      if (servers.material !== undefined) this.set(servers.material.endsAtMs / 1_000);
    },
  });
  // A gauge without labels begins at 0: that would be a certificate that ended in 1970.
  gauge.remove();
}
