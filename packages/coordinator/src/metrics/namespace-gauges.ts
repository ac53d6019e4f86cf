/** How each namespace stands, set anew at each scrape. */
import { Gauge } from "prom-client";
import type { Observation, ObservedNamespace } from "../status/readiness.js";

/** The part of a coordinator that is looked at. */
export interface Observable {
  observe(): Promise<Observation>;
}

type Registers = ConstructorParameters<typeof Gauge>[0]["registers"];

const GUARD_STATES = ["open", "in_doubt", "fenced"] as const;

/** Gauges with a namespace and nothing else. */
const FIGURES: Readonly<Record<string, readonly [help: string, figureOf: (one: ObservedNamespace) => number]>> = {
  high_water_mark: [
    "The greatest run leased or passed over, as this coordinator knows it.",
    (one) => one.highWaterMark,
  ],
  runs_used: ["Runs leased or passed over: none of them is ever leased again.", (one) => one.runsUsed],
  runs_left: ["Runs that the run space still holds.", (one) => one.runsLeft],
  room_runs: ["Runs that may be leased right now, below the clock line.", (one) => one.roomRuns],
  line_runs_per_second: ["By how many runs a second the clock line rises.", (one) => one.lineRunsPerSecond],
  layout_version: ["The layout version whose runs are leased.", (one) => one.version],
  generation: ["Settled doubts and recoveries that the store has seen, and a bit more.", (one) => one.generation],
  data_nodes: ["Data nodes that could be promoted, by the record.", (one) => one.nodeCount],
};

export class NamespaceGauges {
  readonly #figures: readonly (readonly [Gauge, (one: ObservedNamespace) => number])[];
  readonly #guardState: Gauge;
  readonly #guardSince: Gauge;
  readonly #storeUp: Gauge;

  constructor(registers: NonNullable<Registers>) {
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
