/** The last things that happened, as they happen. */
import { happenings, isOfImporters } from "../event-words.js";
import { useEvents, useNothingIn } from "../live.js";
import { grouped } from "../words.js";
import { Instant } from "./instant.js";

const SHOWN_COUNT = 8;

export function RecentEventList({ namespace }: { namespace: string }) {
  const events = happenings(useEvents(namespace).filter(isOfImporters)).slice(0, SHOWN_COUNT);
  const nothing = useNothingIn("Nothing among the last events that the coordinator keeps.");
  return (
    <section aria-labelledby="recent">
      <h2 id="recent">As it happens</h2>
      {events.length === 0 ? (
        <p class="quiet">{nothing}</p>
      ) : (
        <ol class="events">
          {events.map(({ event, sentence, count }) => (
            <li key={`${event.atMs} ${event.id}`} class={event.level}>
              <Instant atMs={event.atMs} />
              <span>
                {sentence}
                {count > 1 && <small>{grouped(count)} times in a row</small>}
              </span>
            </li>
          ))}
        </ol>
      )}
    </section>
  );
}
