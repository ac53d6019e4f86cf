/** Leases over the last hour, day or week. */
import { HISTORY_WINDOWS_MS, type HistoryAnswer, OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import { filledPath } from "@callnumber/protocol/wire";
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { formatWindow } from "../format.js";
import { useResponse } from "../use-response.js";
import { Loaded } from "./loaded.js";

const REST_MS = 5_000;
const WEEK_MS = 604_800_000;
const RETRY_AFTER_MS = 3_000;

export function History({ namespace }: { namespace: string }) {
  const [windowMs, setWindowMs] = useState<number>(HISTORY_WINDOWS_MS[0]);
  const path = `${filledPath(OPERATOR_ROUTES.history, { namespace })}?windowMs=${windowMs}`;
  const history = useResponse<HistoryAnswer>(path, namespace, REST_MS);
  return (
    <section aria-labelledby="history">
      <div class="heading-line">
        <h2 id="history">Runs leased</h2>
        <fieldset class="choice">
          <legend class="unseen">Over</legend>
          {HISTORY_WINDOWS_MS.map((choice) => (
            <label key={choice}>
              <input type="radio" name="window" checked={choice === windowMs} onChange={() => setWindowMs(choice)} />
              <span>{choice === WEEK_MS ? "week" : formatWindow(choice)}</span>
            </label>
          ))}
        </fieldset>
      </div>
      <Loaded from={history} what="history">
        {(data) => <Chart history={data} />}
      </Loaded>
    </section>
  );
}

/** The library that draws is half of all scripts: it is loaded here, and no page waits for it. */
function Chart({ history }: { history: HistoryAnswer }) {
  const [HistoryChart, setHistoryChart] = useState<ComponentType<{ history: HistoryAnswer }>>();
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const load = () => {
      import("./history-chart.js").then(
        (loaded) => setHistoryChart(() => loaded.HistoryChart),
        // The coordinator went away just then.
        () => {
          timer = setTimeout(load, RETRY_AFTER_MS);
        },
      );
    };
    load();
    return () => clearTimeout(timer);
  }, []);
  return HistoryChart === undefined ? <div class="plot" /> : <HistoryChart history={history} />;
}
