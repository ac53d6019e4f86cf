/** The ledger: every lease, newest first, filtered, a page at a time. Filters and page are in the URL. */
import { PAGE_LIMIT_DEFAULT, pathOf, runName, runsName } from "@callnumber/protocol/api";
import type { LedgerEntry, RunsResponse } from "@callnumber/protocol/schemas";
import { useState } from "preact/hooks";
import { coordinatorUrl, download, isSignedIn, type RequestError } from "../api.js";
import { formatDateTime, formatLabels } from "../format.js";
import { Headline } from "../parts/headline.js";
import { LeaseBar } from "../parts/lease.js";
import { Loaded } from "../parts/notices.js";
import { filtersIn, RunFilterForm } from "../parts/run-filters.js";
import { TableHead } from "../parts/table.js";
import { Instant } from "../parts/time.js";
import { type Route, urlOf } from "../route.js";
import { useResponse } from "../use-response.js";

export function RunsPage({ route }: { route: Route }) {
  const { namespace, query } = route;
  const filters = filtersIn(query);
  const cursor = query.get("cursor") ?? "";
  const search = { ...filters, ...(cursor === "" ? {} : { cursor }), limit: String(PAGE_LIMIT_DEFAULT) };
  const path = `${pathOf("runs", { namespace })}?${new URLSearchParams(search)}`;
  // Later pages stay as they are: new leases are on the first one.
  const response = useResponse<RunsResponse>(path, cursor === "" ? namespace : undefined);
  const isFiltered = Object.keys(filters).length > 0;
  return (
    <>
      <h1 tabIndex={-1}>Runs</h1>
      <Headline namespace={namespace} />
      <RunFilterForm key={query.toString()} namespace={namespace} filters={filters} />
      <Loaded from={response} what="list of leases">
        {({ leases, nextCursor, trimmed, currentVersion }) => (
          <>
            {leases.length === 0 && trimmed === null ? (
              <Nothing isFiltered={isFiltered} hasMore={nextCursor !== null} namespace={namespace} />
            ) : (
              <LeasesTable namespace={namespace} leases={leases} currentVersion={currentVersion} />
            )}
            {trimmed !== null && (
              <p class="quiet">
                Older leases, the last of {formatDateTime(trimmed.lastLeasedAtMs)}, were trimmed from the store: they
                are in the files of <code>--ledger-dir</code>.
              </p>
            )}
            {(cursor !== "" || nextCursor !== null) && (
              <nav class="pager" aria-label="Pages of the list">
                {cursor !== "" && <a href={urlOf(namespace, "runs", "", filters)}>Newest</a>}
                {nextCursor !== null && (
                  <a href={urlOf(namespace, "runs", "", { ...filters, cursor: nextCursor })}>Older</a>
                )}
              </nav>
            )}
          </>
        )}
      </Loaded>
      <Export namespace={namespace} filters={filters} isFiltered={isFiltered} />
    </>
  );
}

interface LeasesProperties {
  readonly namespace: string;
  readonly leases: readonly LedgerEntry[];
  readonly currentVersion: number;
}

function LeasesTable({ namespace, leases, currentVersion }: LeasesProperties) {
  return (
    <table class="leases">
      <TableHead columns={[["Runs"], ["Holder"], ["Leased"], ["How far", "more"], ["By", "more"]]} />
      <tbody>
        {leases.map((lease) => {
          const { version, firstRun, leasedAtMs, holder, coordinator, progress } = lease;
          const name = runName(version, firstRun, currentVersion);
          const state = progress?.state ?? "unreported";
          return (
            <tr key={name}>
              <th scope="row">
                <a href={urlOf(namespace, "runs", name)}>{runsName(lease, currentVersion)}</a>
              </th>
              <td>
                {holder.name}
                <small>
                  {holder.host}, pid {holder.pid}
                </small>
                <small>{formatLabels(holder.labels)}</small>
              </td>
              <td>
                <Instant atMs={leasedAtMs} />
                <small class="more">{formatDateTime(leasedAtMs)}</small>
                <small class="less">{state}</small>
              </td>
              <td class="more">
                <span class={`badge ${state}`}>{state}</span>
                <LeaseBar lease={lease} />
              </td>
              <td class="more">{coordinator}</td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}

function Nothing({ isFiltered, hasMore, namespace }: { isFiltered: boolean; hasMore: boolean; namespace: string }) {
  if (hasMore) return <p>None of the leases read so far matches. Older ones may.</p>;
  if (isFiltered) {
    return (
      <p>
        No lease matches. <a href={urlOf(namespace, "runs")}>Show all</a>
      </p>
    );
  }
  return (
    <p>
      No run was leased yet. <a href={urlOf(namespace)}>How to begin</a>
    </p>
  );
}

interface ExportProperties {
  readonly namespace: string;
  readonly filters: Readonly<Record<string, string>>;
  readonly isFiltered: boolean;
}

function Export({ namespace, filters, isFiltered }: ExportProperties) {
  const [reason, setReason] = useState("");
  const path = `${pathOf("export", { namespace })}?${new URLSearchParams(filters)}`;
  const fileName = `${namespace}.ndjson`;
  const save = (event: MouseEvent) => {
    if (!isSignedIn()) return;
    event.preventDefault();
    setReason("");
    download(path, fileName).catch(({ message }: RequestError) => setReason(`Not exported: ${message}`));
  };
  return (
    <p class="quiet">
      Export {isFiltered ? "all leases that match" : "the whole ledger"}:{" "}
      <a href={coordinatorUrl(path)} download={fileName} onClick={save}>
        NDJSON
      </a>{" "}
      <span role="alert">{reason}</span>
    </p>
  );
}
