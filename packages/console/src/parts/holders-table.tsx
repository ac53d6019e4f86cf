/** The holders of the last week: how many runs each leased, and whether it is live. */
import type { CapacityResponse } from "@callnumber/protocol/schemas";
import { formatCount, formatDateTime, formatNumber, formatShare } from "../format.js";
import { urlOf } from "../route.js";
import { TableHead } from "./table.js";
import { Instant } from "./time.js";

const SHOWN_COUNT = 12;
const COLUMNS = [["Holder"], ["Share"], ["Runs", "number"], ["Leases", "number more"], ["Last lease", "more"]] as const;

export function HoldersTable({ capacity }: { capacity: CapacityResponse }) {
  const { holders, lookedAt, namespace } = capacity;
  if (holders.length === 0) return <p class="quiet">No holder leased a run in the last week.</p>;
  const live = holders.filter(({ isLive }) => isLive).length;
  const shown = holders.slice(0, SHOWN_COUNT);
  return (
    <>
      <p class="quiet">
        {formatCount(holders.length, "holder")}, {live === 0 ? "none of them live" : `${formatNumber(live)} live`}; over
        the newest {formatCount(lookedAt.leaseCount, "lease")}
        {lookedAt.fromMs !== null && `, since ${formatDateTime(lookedAt.fromMs)}`}.
      </p>
      <table class="holders">
        <TableHead columns={COLUMNS} />
        <tbody>
          {shown.map((holder) => (
            <tr key={holder.name}>
              <th scope="row">
                <a href={urlOf(namespace, "runs", "", { holder: holder.name })}>{holder.name}</a>{" "}
                {holder.isLive && <span class="badge live">live</span>}
              </th>
              <td class="share">
                <span class="bar" aria-hidden="true">
                  <span style={{ width: `${holder.share * 100}%` }} />
                </span>
                {formatShare(holder.share)}
              </td>
              <td class="number">{formatNumber(holder.runCount)}</td>
              <td class="number more">{formatNumber(holder.leaseCount)}</td>
              <td class="more">
                <Instant atMs={holder.lastLeaseAtMs} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {holders.length > shown.length && (
        <p class="quiet">{formatCount(holders.length - shown.length, "other holder")} took less.</p>
      )}
    </>
  );
}
