/** The last things that happened, as they happen. */
import { isOfImporters } from "../format-event.js";
import { HappeningList } from "./event-list.js";
import { Instant } from "./time.js";

export function RecentEventList({ namespace }: { namespace: string }) {
  return (
    <section aria-labelledby="recent">
      <h2 id="recent">As it happens</h2>
      <HappeningList
        namespace={namespace}
        isWanted={isOfImporters}
        shownCount={8}
        nothing="Nothing among the last events that the coordinator keeps."
        class="events"
        timeOf={({ atMs }) => <Instant atMs={atMs} />}
      />
    </section>
  );
}
