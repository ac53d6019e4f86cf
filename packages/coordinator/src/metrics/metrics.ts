/**
 * What Prometheus is told of this process: events as they are counted, namespaces as they stand at the moment of asking, and the
 * figures of Node. A registry of its own for each server, nothing global. docs/monitoring.md lists every metric.
 */
import { version as nodeRelease } from "node:process";
import { collectDefaultMetrics, Gauge, Registry } from "prom-client";
import type { EventHub } from "../events/events.js";
import { type Certified, certificateGauge } from "./certificate-gauge.js";
import { EventCounts } from "./event-counts.js";
import { NamespaceGauges, type Observable } from "./namespace-gauges.js";

export interface MetricsOptions {
  readonly coordinator: Observable;
  readonly events: EventHub;
  readonly release: string;
  readonly servers: Certified;
}

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

  /** All of them, in Prometheus' text format. Asks the store once whether it is there, and waits a second for it at most. */
  async text(): Promise<string> {
    const observation = await this.#coordinator.observe();
    for (const { namespace } of observation.namespaces) this.#counts.know(namespace);
    this.#gauges.set(observation);
    return await this.#registry.metrics();
  }

  /** Counts no more. */
  close(): void {
    this.#unsubscribe();
  }
}
