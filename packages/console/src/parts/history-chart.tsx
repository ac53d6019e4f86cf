/** Runs leased over time, as bars, and in a sentence: a screen reader can't read a canvas. */
import type { HistoryAnswer } from "@callnumber/protocol/operator";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import {
  formatCount,
  formatDate,
  formatDateTime,
  formatDuration,
  formatNumber,
  formatTime,
  formatWindow,
} from "../format.js";

const HEIGHT_PX = 200;
const { bars } = uPlot.paths;

export function HistoryChart({ history }: { history: HistoryAnswer }) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | undefined>(undefined);

  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const begin = () => {
      chart.current?.destroy();
      chart.current = new uPlot(optionsFor(element, history.stepMs), dataOf(history), element);
    };
    begin();
    const size = new ResizeObserver(() => chart.current?.setSize({ width: element.clientWidth, height: HEIGHT_PX }));
    size.observe(element);
    // A canvas keeps the colors that it was drawn with.
    const scheme = matchMedia("(prefers-color-scheme: dark)");
    scheme.addEventListener("change", begin);
    return () => {
      size.disconnect();
      scheme.removeEventListener("change", begin);
      chart.current?.destroy();
      chart.current = undefined;
    };
    // A new chart for a new axis; new figures of the same axis are only set.
  }, [history.namespace, history.stepMs]);

  useEffect(() => chart.current?.setData(dataOf(history)), [history]);

  return (
    <figure class="chart">
      <div ref={place} class="plot" aria-hidden="true" />
      <figcaption class="quiet">{summaryOf(history)}</figcaption>
    </figure>
  );
}

function summaryOf({ runs, stepMs, fromMs }: HistoryAnswer): string {
  const total = runs.reduce((sum, count) => sum + count, 0);
  const window = formatWindow(stepMs * runs.length);
  if (total === 0) return `Nothing was leased in the last ${window}.`;
  const most = Math.max(...runs);
  const at = formatDateTime(fromMs + runs.indexOf(most) * stepMs);
  return `${formatCount(total, "run")} in the last ${window}; at most ${formatNumber(most)} within ${formatDuration(stepMs).replace(/^1 /, "one ")}, at ${at}.`;
}

function dataOf({ fromMs, stepMs, runs }: HistoryAnswer): uPlot.AlignedData {
  return [runs.map((_, index) => (fromMs + index * stepMs) / 1000), [...runs]];
}

/** The hour within a day, else the day. */
function tickName(atMs: number): string {
  const time = formatTime(atMs);
  return time === "00:00" ? formatDate(atMs).slice(5) : time;
}

function optionsFor(element: HTMLElement, stepMs: number): uPlot.Options {
  const style = getComputedStyle(element);
  const ink = style.getPropertyValue("color");
  const line = style.getPropertyValue("border-top-color");
  const accent = style.getPropertyValue("outline-color");
  const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { show: false }, font: "12px system-ui" };
  return {
    width: element.clientWidth,
    height: HEIGHT_PX,
    padding: [8, 24, 0, 0],
    legend: { show: false },
    cursor: { drag: { x: false, y: false }, points: { show: false } },
    // A bar is to the right of its beginning: the last one needs a step more than the last beginning.
    scales: {
      x: { range: (_, min, max) => [min, max + stepMs / 1_000] },
      y: { range: (_, __, max) => [0, Math.max(max, 1) * 1.1] },
    },
    axes: [
      {
        ...axis,
        grid: { show: false },
        space: 64,
        size: 30,
        values: (_, ticks) => ticks.map((tick) => tickName(tick * 1_000)),
      },
      {
        ...axis,
        size: 52,
        // Runs are whole.
        incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 2e5, 5e5, 1e6, 2e6, 5e6, 1e7],
        values: (_, ticks) => ticks.map((tick) => formatNumber(tick)),
      },
    ],
    series: [
      {},
      {
        fill: accent,
        stroke: accent,
        width: 0,
        points: { show: false },
        ...(bars && { paths: bars({ size: [0.7, 40], align: 1 }) }),
      },
    ],
  };
}
