/** What became of the guard, newest first, as the event stream still knows it. */

import { dateAndTime } from "../format.js";
import { isOfGuard } from "../format-event.js";
import { HappeningList } from "./event-list.js";

export function GuardEvents({ namespace }: { namespace: string }) {
  return (
    <section aria-labelledby="happened">
      <h2 id="happened">What happened</h2>
      <HappeningList
        namespace={namespace}
        isWanted={isOfGuard}
        shownCount={60}
        nothing="No doubt, no jump and no refusal among the last events that the coordinator keeps."
        class="events dated"
        timeOf={({ atMs }) => <time dateTime={new Date(atMs).toISOString()}>{dateAndTime(atMs)}</time>}
      />
      <p class="quiet">Of the time since the coordinator started; its log has the rest.</p>
    </section>
  );
}
