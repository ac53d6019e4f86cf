/** Runs leased over the last hour, day or week: as a chart, and in a sentence. */
import { HISTORY_WINDOWS_MS, pathOf } from "@callnumber/protocol/api";
import type { HistoryResponse } from "@callnumber/protocol/schemas";
import { useState } from "preact/hooks";
import {
  formatCount,
  formatDateTime,
  formatDuration,
  formatNumber,
  formatTick,
  formatWindow,
  formatZone,
  ticksIn,
} from "../format.js";
import { REST_MS, useResponse } from "../use-response.js";
import { Loaded } from "./notices.js";

export function History({ namespace }: { namespace: string }) {
  const [windowMs, setWindowMs] = useState<number>(HISTORY_WINDOWS_MS[0]);
  const path = `${pathOf("history", { namespace })}?windowMs=${windowMs}`;
  const history = useResponse<HistoryResponse>(path, namespace, REST_MS);
  return (
    <section aria-labelledby="history">
      <div class="heading-line">
        <h2 id="history">Runs leased</h2>
        <select
          aria-label="Runs leased over"
          value={windowMs}
          onChange={({ currentTarget }) => setWindowMs(Number(currentTarget.value))}
        >
          {HISTORY_WINDOWS_MS.map((choice) => (
            <option key={choice} value={choice}>
              last {formatWindow(choice)}
            </option>
          ))}
        </select>
      </div>
      <Loaded from={history} what="history">
        {(data) => <Chart history={data} />}
      </Loaded>
    </section>
  );
}

const PLOT_HEIGHT = 160;
const STEPS_Y_MAX = 4;

/** Both axes have their unit; a window of hours has times of day, a longer one has days. */
function Chart({ history }: { history: HistoryResponse }) {
  const { runs, fromMs, stepMs } = history;
  const lengthMs = stepMs * runs.length;
  const levels = levelsUpTo(Math.max(...runs, 1));
  const yOf = (count: number) => PLOT_HEIGHT * (1 - count / (levels.at(-1) as number));
  const xOf = (atMs: number) => `${((atMs - fromMs) / lengthMs) * 100}%`;
  return (
    <figure>
      <p class="quiet" aria-hidden="true">
        Runs in each {formatWindow(stepMs)}
      </p>
      <svg class="chart" height={PLOT_HEIGHT} aria-hidden="true">
        {levels.map((count) => (
          <g key={count}>
            <line x2="100%" y1={yOf(count)} y2={yOf(count)} />
            <text x="-8" y={yOf(count)} dy="0.32em" text-anchor="end">
              {formatNumber(count)}
            </text>
          </g>
        ))}
        {runs.map((count, index) => (
          <rect
            key={index}
            x={xOf(fromMs + (index + 0.1) * stepMs)}
            y={yOf(count)}
            width={`${80 / runs.length}%`}
            height={PLOT_HEIGHT - yOf(count)}
          >
            <title>{`${formatCount(count, "run")}, ${formatDateTime(fromMs + index * stepMs)}`}</title>
          </rect>
        ))}
        {ticksIn(fromMs, lengthMs).map((atMs) => (
          <g key={atMs}>
            <line class="tick" x1={xOf(atMs)} x2={xOf(atMs)} y1={PLOT_HEIGHT} y2={PLOT_HEIGHT + 5} />
            <text x={xOf(atMs)} y={PLOT_HEIGHT + 20} text-anchor="middle">
              {formatTick(atMs, lengthMs)}
            </text>
          </g>
        ))}
      </svg>
      <p class="quiet time-axis" aria-hidden="true">
        Time, {formatZone(fromMs)}
      </p>
      <figcaption class="quiet">{summaryOf(history)}</figcaption>
    </figure>
  );
}

/** From 0 to at least `most`, in steps of 1, 2 or 5 times a power of ten. */
function levelsUpTo(most: number): readonly number[] {
  const power = 10 ** Math.floor(Math.log10(most / STEPS_Y_MAX));
  const step = Math.max(
    1,
    [1, 2, 5, 10].map((factor) => factor * power).find((size) => size * STEPS_Y_MAX >= most) as number,
  );
  return Array.from({ length: Math.ceil(most / step) + 1 }, (_, index) => index * step);
}

function summaryOf({ runs, stepMs, fromMs }: HistoryResponse): string {
  const total = runs.reduce((sum, count) => sum + count, 0);
  const window = formatWindow(stepMs * runs.length);
  if (total === 0) return `Nothing was leased in the last ${window}.`;
  const most = Math.max(...runs);
  const at = formatDateTime(fromMs + runs.indexOf(most) * stepMs);
  const step = formatDuration(stepMs).replace(/^1 /, "one ");
  return `${formatCount(total, "run")} in the last ${window}; at most ${formatNumber(most)} within ${step}, at ${at}.`;
}
