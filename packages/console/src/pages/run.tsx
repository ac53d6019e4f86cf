/** One run: the fields of its lease, how far each run of the lease got, and the leases next to it. */

import { parseRunName, pathOf, pathOfRun, runName, runStateIn } from "@callnumber/protocol/api";
import { RUN_MAX, SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import type { RunResponse } from "@callnumber/protocol/schemas";
import { formatCount, formatMessage, formatNumber } from "../format.js";
import { Headline } from "../parts/headline.js";
import { LeaseFields, RunBar } from "../parts/lease.js";
import { Loaded } from "../parts/notices.js";
import { Instant } from "../parts/time.js";
import { urlOf } from "../route.js";
import { useResponse } from "../use-response.js";

export function RunPage({ namespace, run: typed }: { namespace: string; run: string }) {
  const named = parseRunName(typed);
  // The coordinator explains what is wrong with a name.
  const path = named === undefined ? pathOf("run", { namespace, run: typed }) : pathOfRun(namespace, named);
  const response = useResponse<RunResponse>(path, namespace);
  return (
    <>
      <p class="way">
        <a href={urlOf(namespace, "runs")}>Runs</a>
      </p>
      <h1 tabIndex={-1}>Run {response.data ? nameIn(response.data, response.data.run) : typed}</h1>
      <Headline namespace={namespace} />
      {response.error?.code === "run_not_leased" ? (
        <p>
          No lease has this run: it was never leased, a recovery skipped it, or the store lost the lease.{" "}
          <a href={urlOf(namespace, "runs")}>All runs</a>
        </p>
      ) : response.error?.code === "lease_trimmed" ? (
        <p>{formatMessage(response.error.message)}</p>
      ) : (
        <Loaded from={response} what="run">
          {(data) => <Details response={data} />}
        </Loaded>
      )}
    </>
  );
}

/** What a run of the same version is called. */
function nameIn({ version, currentVersion }: RunResponse, run: number): string {
  return runName(version, run, currentVersion);
}

function Details({ response }: { response: RunResponse }) {
  const { state, lastSequence, lease } = response;
  return (
    <>
      <RunBar state={state} lastSequence={lastSequence} />
      <section aria-labelledby="lease">
        <h2 id="lease">Its lease</h2>
        <LeaseFields lease={lease} currentVersion={response.currentVersion} />
        {lease.progress !== null && (
          <p class="quiet">
            Reported last on run {nameIn(response, lease.progress.run)}, <Instant atMs={lease.progress.reportedAtMs} />.
          </p>
        )}
      </section>
      {lease.runCount > 1 && <RunsOfLease response={response} />}
      <Neighbors response={response} />
    </>
  );
}

function RunsOfLease({ response }: { response: RunResponse }) {
  const { namespace, lease, run: present } = response;
  const all = Array.from({ length: lease.runCount }, (_, index) => lease.firstRun + index);
  return (
    <section aria-labelledby="runs-of-lease">
      <h2 id="runs-of-lease">All {formatCount(lease.runCount, "run")} of the lease</h2>
      <ol class="run-bars">
        {all.map((run) => (
          <li key={run}>
            <a
              href={urlOf(namespace, "runs", nameIn(response, run))}
              aria-current={run === present ? "true" : undefined}
            >
              {nameIn(response, run)}
            </a>
            <RunBar isSmall {...runStateIn(lease, run)} />
          </li>
        ))}
      </ol>
      <p class="quiet">
        Each bar is {formatNumber(SEQUENCE_COUNT)} numbers. A holder uses the runs of a lease in their order.
      </p>
    </section>
  );
}

/** The leases before and after this one, of any holder. */
function Neighbors({ response }: { response: RunResponse }) {
  const { namespace, lease } = response;
  const before = lease.firstRun - 1;
  const after = lease.firstRun + lease.runCount;
  return (
    <nav class="pager" aria-label="The leases next to this one">
      {before > 0 && (
        <a href={urlOf(namespace, "runs", nameIn(response, before))}>Before: run {nameIn(response, before)}</a>
      )}
      {after <= RUN_MAX && (
        <a href={urlOf(namespace, "runs", nameIn(response, after))}>After: run {nameIn(response, after)}</a>
      )}
    </nav>
  );
}
