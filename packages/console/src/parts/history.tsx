/** Leases over the last hour, day or week. */
import { HISTORY_WINDOWS_MS, type HistoryAnswer, OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import { filledPath } from "@callnumber/protocol/wire";
import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";
import { span } from "../format.js";
import { useAnswer } from "../use-response.js";
import { Answered } from "./loaded.js";

const REST_MS = 5_000;
const WEEK_MS = 604_800_000;

export function HistorySection({ namespace }: { namespace: string }) {
  const [windowMs, setWindowMs] = useState<number>(HISTORY_WINDOWS_MS[0]);
  const path = `${filledPath(OPERATOR_ROUTES.history, { namespace })}?windowMs=${windowMs}`;
  const history = useAnswer<HistoryAnswer>(path, namespace, REST_MS);
  return (
    <section aria-labelledby="history">
      <div class="heading-line">
        <h2 id="history">Runs leased</h2>
        <fieldset class="choice">
          <legend class="unseen">Over</legend>
          {HISTORY_WINDOWS_MS.map((choice) => (
            <label key={choice}>
              <input type="radio" name="window" checked={choice === windowMs} onChange={() => setWindowMs(choice)} />
              <span>{choice === WEEK_MS ? "week" : span(choice)}</span>
            </label>
          ))}
        </fieldset>
      </div>
      <Answered answer={history} what="history">
        {(data) => <Chart history={data} />}
      </Answered>
    </section>
  );
}

const LOAD_AGAIN_AFTER_MS = 3_000;

/** What draws is half of all the script there is: no page waits for it. */
function Chart({ history }: { history: HistoryAnswer }) {
  const [Loaded, setLoaded] = useState<ComponentType<{ history: HistoryAnswer }>>();
  useEffect(() => {
    let again: ReturnType<typeof setTimeout> | undefined;
    const load = () => {
      import("./history-chart.js").then(
        ({ HistoryChart }) => setLoaded(() => HistoryChart),
        // The coordinator went away just then: the page says so already.
        () => {
          again = setTimeout(load, LOAD_AGAIN_AFTER_MS);
        },
      );
    };
    load();
    return () => clearTimeout(again);
  }, []);
  return Loaded === undefined ? <div class="plot" /> : <Loaded history={history} />;
}
