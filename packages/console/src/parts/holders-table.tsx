/** Who took the runs lately, who is alive, and what was wasted. */
import type { CapacityAnswer } from "@callnumber/protocol/operator";
import { counted, dateAndTime, grouped, perCent } from "../format.js";
import { addressOf } from "../route.js";
import { stepAmongRows } from "./arrow-keys.js";
import { Instant } from "./time.js";

const SHOWN_COUNT = 12;

export function HoldersTable({ capacity }: { capacity: CapacityAnswer }) {
  const { holders, lookedAt, namespace } = capacity;
  if (holders.length === 0) return <p class="quiet">Nobody asked for a run in the last week.</p>;
  const live = holders.filter(({ isLive }) => isLive).length;
  const shown = holders.slice(0, SHOWN_COUNT);
  return (
    <>
      <p class="quiet">
        {counted(holders.length, "holder")}, {live === 0 ? "none of them live" : `${grouped(live)} live`}; over the
        newest {counted(lookedAt.leaseCount, "lease")}
        {lookedAt.fromMs !== null && `, since ${dateAndTime(lookedAt.fromMs)}`}.
      </p>
      {/* biome-ignore lint: arrow keys are an extra; each link is reached by Tab as well */}
      <table class="holders" onKeyDown={stepAmongRows}>
        <thead>
          <tr>
            <th scope="col">Holder</th>
            <th scope="col">Share</th>
            <th scope="col" class="number">
              Runs
            </th>
            <th scope="col" class="number more">
              Wasted
            </th>
            <th scope="col" class="number more">
              Burnt
            </th>
            <th scope="col" class="more">
              Last lease
            </th>
          </tr>
        </thead>
        <tbody>
          {shown.map((holder) => (
            <tr key={holder.name}>
              <th scope="row">
                <a data-row href={addressOf(namespace, "runs", "", { holder: holder.name })}>
                  {holder.name}
                </a>{" "}
                {holder.isLive && <span class="badge live">live</span>}
                <small>
                  {counted(holder.processCount, "process", "processes")} on {holder.hosts.join(", ")}
                </small>
              </th>
              <td class="share">
                <span class="bar" aria-hidden="true">
                  <span style={{ width: `${holder.share * 100}%` }} />
                </span>
                {perCent(holder.share)}
              </td>
              <td class="number">{grouped(holder.runCount)}</td>
              <td class="number more">{grouped(holder.wastedRunCount)}</td>
              <td class="number more">{grouped(holder.burntRunCount)}</td>
              <td class="more">
                <Instant atMs={holder.lastLeaseAtMs} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {holders.length > shown.length && (
        <p class="quiet">{counted(holders.length - shown.length, "other holder")} took less.</p>
      )}
      <p class="quiet">Wasted: ended with fewer than 100 numbers. Burnt: leased, and never left the coordinator.</p>
    </>
  );
}
