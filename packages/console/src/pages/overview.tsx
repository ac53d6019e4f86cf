/** What an operator needs first: does it lease, what is alarming, how much is left, who takes it. */
import { pathOf, runName } from "@callnumber/protocol/api";
import type { Alarm, CapacityResponse, StatusResponse, UseRate } from "@callnumber/protocol/schemas";
import { coordinatorUrl, isSignedIn } from "../api.js";
import { formatCount, formatEnd, formatLargeNumber, formatNumber, formatShare, formatWindow } from "../format.js";
import { isAboutImporters } from "../format-event.js";
import { CommandLine } from "../parts/command.js";
import { EventList } from "../parts/event-list.js";
import { Headline } from "../parts/headline.js";
import { History } from "../parts/history.js";
import { HoldersTable } from "../parts/holders-table.js";
import { NamespacesTable } from "../parts/namespaces.js";
import { Loaded, Message, Notice } from "../parts/notices.js";
import { Instant, useNow } from "../parts/time.js";
import { REST_MS, useNamespaces, useResponse, useStatus } from "../use-response.js";

const HOUR_MS = 3_600_000;

export function OverviewPage({ namespace }: { namespace: string }) {
  const status = useStatus(namespace);
  const capacity = useResponse<CapacityResponse>(pathOf("capacity", { namespace }), namespace, REST_MS);
  const namespaces = useNamespaces(namespace, REST_MS);
  const isUnused = status.data !== undefined && status.data.lastLeaseAtMs === null;
  return (
    <>
      <h1 tabIndex={-1}>Overview</h1>
      {capacity.data && capacity.error === undefined && <Alarms alarms={capacity.data.alarms} />}
      <Headline namespace={namespace} isAlways />
      <Loaded from={status} what="status">
        {(data) => <Figures status={data} rates={capacity.data?.rates ?? data.rates} />}
      </Loaded>
      {isUnused ? (
        <Beginning namespace={namespace} />
      ) : (
        <>
          <History namespace={namespace} />
          <section aria-labelledby="holders">
            <h2 id="holders">Who takes the runs</h2>
            <Loaded from={capacity} what="figures of the holders">
              {(data) => <HoldersTable capacity={data} />}
            </Loaded>
          </section>
        </>
      )}
      <section aria-labelledby="recent">
        <h2 id="recent">As it happens</h2>
        <EventList
          namespace={namespace}
          isShown={isAboutImporters}
          countMax={8}
          whenEmpty="Nothing among the last events that the coordinator keeps."
        />
      </section>
      {namespaces.data && namespaces.data.namespaces.length > 1 && (
        <NamespacesTable namespaces={namespaces.data.namespaces} present={namespace} />
      )}
    </>
  );
}

const SEVERITIES: Readonly<Record<Alarm["severity"], string>> = {
  critical: "Act now",
  warning: "Warning",
  notice: "To know",
};

/** The worst first. */
function Alarms({ alarms }: { alarms: readonly Alarm[] }) {
  if (alarms.length === 0) return null;
  const order = Object.keys(SEVERITIES);
  const sorted = [...alarms].sort((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
  return (
    <section aria-label="Alarms" class="alarms">
      {sorted.map(({ name, severity, explanation }) => (
        <Notice key={name} kind={severity} title={`${SEVERITIES[severity]}: ${name.replaceAll("_", " ")}`}>
          <Message text={explanation} />
        </Notice>
      ))}
    </section>
  );
}

function Figures({ status, rates }: Pick<StatusResponse, "rates"> & { status: StatusResponse }) {
  const { version, highWaterMark, runsUsed, runsLeft, callNumbersLeft, lastLeaseAtMs, guard, firstRun } = status;
  const used = runsUsed / (runsUsed + runsLeft);
  const lastLease =
    lastLeaseAtMs === null ? (
      `, first run ${runName(version, firstRun)}`
    ) : (
      <>
        , leased <Instant atMs={lastLeaseAtMs} />
      </>
    );
  const figures = [
    ["High-water mark", runName(version, highWaterMark), [`version ${version}`, lastLease]],
    ["Runs used", runsUsed, `${formatShare(used)} of all`],
    ["Runs left", runsLeft, `${formatLargeNumber(callNumbersLeft)} call numbers`],
    ["Headroom", guard.headroomRuns, "runs may be leased right now"],
  ] as const;
  return (
    <dl class="figures">
      {figures.map(([name, value, detail]) => (
        <div key={name}>
          <dt class="quiet">{name}</dt>
          <dd>
            <b>{typeof value === "number" ? formatNumber(value) : value}</b>
            <small>{detail}</small>
          </dd>
        </div>
      ))}
      <Forecast rates={rates} />
      {guard.lastRecovery !== null && (
        <div class="wide">
          <dt class="quiet">Last recovery</dt>
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

/** By each rate there is: the short one for what happens now, the long one for what it comes to. */
function Forecast({ rates }: Pick<StatusResponse, "rates">) {
  const nowMs = useNow();
  const used = rates.filter(({ runs }) => runs > 0);
  return (
    <div class="wide">
      <dt class="quiet">At this rate they end</dt>
      <dd>
        {used.length === 0 ? (
          <small>Nothing was leased lately: there is no rate.</small>
        ) : (
          <ul>
            {used.map((rate, index) => (
              <li key={index}>
                {formatEnd(rate, nowMs)} <small>{formatRate(rate)}</small>
              </li>
            ))}
          </ul>
        )}
      </dd>
    </div>
  );
}

/** A rate of a day only for an hour or more, as a forecast. */
function formatRate({ windowMs, runs, runsPerDay, exhaustedAtMs }: UseRate): string {
  const window = formatWindow(windowMs);
  if (exhaustedAtMs === null && windowMs < HOUR_MS)
    return `${formatCount(runs, "run")} in the last ${window}, too short a time for a forecast`;
  return `by the last ${window}: ${formatCount(Math.round(runsPerDay), "run")} a day`;
}

function Beginning({ namespace }: { namespace: string }) {
  const coordinator = coordinatorUrl("/").replace(/\/$/, "");
  return (
    <section aria-labelledby="begin" class="beginning">
      <h2 id="begin">No run was leased yet</h2>
      <p>
        This namespace is new. It fills as soon as an importer requests its first run, and this page shows it at once.
        To try it, generate one call number:
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
