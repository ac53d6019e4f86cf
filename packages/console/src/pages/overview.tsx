/** What an operator sees first: is it leasing, how much is left, who takes it. */
import type { CapacityAnswer, NamespacesAnswer } from "@callnumber/protocol/operator";
import { OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import { filledPath, pathOf, type StatusAnswer } from "@callnumber/protocol/wire";
import { isSignedIn } from "../api.js";
import { counted, farDate, grouped, perCent, roughly, span } from "../format.js";
import { Alarms } from "../parts/alarms.js";
import { useNow } from "../parts/clock.js";
import { CommandLine } from "../parts/command.js";
import { GuardLine } from "../parts/guard.js";
import { HistorySection } from "../parts/history.js";
import { HoldersTable } from "../parts/holders-table.js";
import { Answered } from "../parts/loaded.js";
import { NamespacesTable } from "../parts/namespaces.js";
import { RecentEventList } from "../parts/recent-event-list.js";
import { Instant } from "../parts/time.js";
import { useAnswer } from "../use-response.js";

/** What looks at thousands of leases is not asked for with each of them. */
const REST_MS = 5_000;

export function OverviewPage({ namespace }: { namespace: string }) {
  const status = useAnswer<StatusAnswer>(pathOf("status", { namespace }), namespace);
  const capacity = useAnswer<CapacityAnswer>(filledPath(OPERATOR_ROUTES.capacity, { namespace }), namespace, REST_MS);
  const namespaces = useAnswer<NamespacesAnswer>(OPERATOR_ROUTES.namespaces, namespace, REST_MS);
  const described = namespaces.data?.namespaces.find((one) => one.namespace === namespace);
  const isUnused = status.data !== undefined && status.data.lastLeaseAtMs === null;
  return (
    <>
      <h1 tabIndex={-1}>Overview</h1>
      {capacity.data && <Alarms alarms={capacity.data.alarms} />}
      {/* The list knows the guard even where the record can't be read. */}
      {status.data === undefined && status.error !== undefined && described !== undefined ? (
        <GuardLine namespace={namespace} guard={described.guard} />
      ) : (
        <Answered answer={status} what="status">
          {(data) => (
            <>
              <GuardLine namespace={namespace} guard={data.guard} />
              <Figures status={data} rates={capacity.data?.rates ?? data.rates} />
            </>
          )}
        </Answered>
      )}
      {isUnused ? (
        <Beginning namespace={namespace} />
      ) : (
        <>
          <HistorySection namespace={namespace} />
          <section aria-labelledby="holders">
            <h2 id="holders">Who takes the runs</h2>
            <Answered answer={capacity} what="figures of the holders">
              {(data) => <HoldersTable capacity={data} />}
            </Answered>
          </section>
        </>
      )}
      <RecentEventList namespace={namespace} />
      {namespaces.data && namespaces.data.namespaces.length > 1 && (
        <NamespacesTable namespaces={namespaces.data.namespaces} present={namespace} />
      )}
    </>
  );
}

function Figures({ status, rates }: Pick<StatusAnswer, "rates"> & { status: StatusAnswer }) {
  const { version, highWaterMark, runsUsed, runsLeft, callNumbersLeft, lastLeaseAtMs, guard, firstRun } = status;
  const share = runsUsed / (runsUsed + runsLeft);
  return (
    <dl class="figures">
      <div>
        <dt>High-water mark</dt>
        <dd>
          <b>{grouped(highWaterMark)}</b>
          <small>
            version {version}
            {lastLeaseAtMs === null ? (
              `, first run ${grouped(firstRun)}`
            ) : (
              <>
                , leased <Instant atMs={lastLeaseAtMs} />
              </>
            )}
          </small>
        </dd>
      </div>
      <div>
        <dt>Runs used</dt>
        <dd>
          <b>{grouped(runsUsed)}</b>
          <small>{perCent(share)} of all</small>
        </dd>
      </div>
      <div>
        <dt>Runs left</dt>
        <dd>
          <b>{grouped(runsLeft)}</b>
          <small>{roughly(callNumbersLeft)} call numbers</small>
        </dd>
      </div>
      <div>
        <dt>Room under the clock line</dt>
        <dd>
          <b>{grouped(guard.roomRuns)}</b>
          <small>runs may be leased right now</small>
        </dd>
      </div>
      <Forecast rates={rates} />
      {guard.lastRecovery !== null && (
        <div class="wide">
          <dt>Last recovery</dt>
          <dd>
            <small>
              {guard.lastRecovery.explanation}, <Instant atMs={guard.lastRecovery.atMs} />
            </small>
          </dd>
        </div>
      )}
    </dl>
  );
}

/** By each rate that there is: the short one says what happens now, the long one what it comes to. */
function Forecast({ rates }: Pick<StatusAnswer, "rates">) {
  const nowMs = useNow();
  const used = rates.filter(({ runs }) => runs > 0);
  return (
    <div class="wide">
      <dt>At this rate they end</dt>
      <dd>
        {used.length === 0 ? (
          <small>Nothing was leased lately: there is no rate.</small>
        ) : (
          <ul>
            {used.map(({ windowMs, runsPerDay, exhaustedAtMs }) => (
              <li key={windowMs}>
                {farDate(exhaustedAtMs, nowMs)}{" "}
                <small>
                  by the last {span(windowMs)}: {counted(Math.round(runsPerDay), "run")} a day
                </small>
              </li>
            ))}
          </ul>
        )}
      </dd>
    </div>
  );
}

function Beginning({ namespace }: { namespace: string }) {
  const coordinator = new URL("../", location.href.split("#")[0]).href.replace(/\/$/, "");
  return (
    <section aria-labelledby="begin" class="beginning">
      <h2 id="begin">No run was leased yet</h2>
      <p>
        This namespace is new. It fills as soon as an importer asks for its first run, and this page shows it at once.
        To try it, make one call number:
      </p>
      <CommandLine
        text={`callnumber next --coordinator ${coordinator} --namespace ${namespace}${isSignedIn() ? " --token-file FILE" : ""}`}
      />
      {isSignedIn() && <p class="quiet">FILE holds a token of role lease.</p>}
      <p class="quiet">
        If an archive already holds call numbers of this name, stop here: this is the wrong store, or an emptied one.
      </p>
    </section>
  );
}
