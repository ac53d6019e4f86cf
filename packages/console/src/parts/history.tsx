/** Runs leased over the last hour, day or week: as bars, and in a sentence. */
import { HISTORY_WINDOWS_MS, type HistoryResponse, OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import { filledPath } from "@callnumber/protocol/wire";
import { useState } from "preact/hooks";
import { formatCount, formatDateTime, formatDuration, formatNumber, formatWindow } from "../format.js";
import { REST_MS, useResponse } from "../use-response.js";
import { Loaded } from "./notices.js";

export function History({ namespace }: { namespace: string }) {
  const [windowMs, setWindowMs] = useState<number>(HISTORY_WINDOWS_MS[0]);
  const path = `${filledPath(OPERATOR_ROUTES.history, { namespace })}?windowMs=${windowMs}`;
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
        {(data) => <Bars history={data} />}
      </Loaded>
    </section>
  );
}

function Bars({ history }: { history: HistoryResponse }) {
  const { runs, fromMs, stepMs } = history;
  const most = Math.max(...runs, 1);
  return (
    <figure>
      <div class="bars" aria-hidden="true">
        {runs.map((count, index) => (
          <span
            key={index}
            style={{ height: `${(count / most) * 100}%` }}
            title={`${formatCount(count, "run")}, ${formatDateTime(fromMs + index * stepMs)}`}
          />
        ))}
      </div>
      <figcaption class="quiet">{summaryOf(history)}</figcaption>
    </figure>
  );
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
