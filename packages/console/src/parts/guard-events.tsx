/** What became of the guard, newest first, as the event stream still knows it. */
import { happenings, isOfGuard } from "../event-words.js";
import { useEvents, useNothingIn } from "../live.js";
import { dateAndTime, grouped } from "../words.js";

const SHOWN_COUNT = 60;

export function GuardEvents({ namespace }: { namespace: string }) {
  const events = happenings(useEvents(namespace).filter(isOfGuard)).slice(0, SHOWN_COUNT);
  const nothing = useNothingIn("No doubt, no jump and no refusal among the last events that the coordinator keeps.");
  return (
    <section aria-labelledby="happened">
      <h2 id="happened">What happened</h2>
      {events.length === 0 ? (
        <p class="quiet">{nothing}</p>
      ) : (
        <ol class="events dated">
          {events.map(({ event, sentence, count }) => (
            <li key={`${event.atMs} ${event.id}`} class={event.level}>
              <time dateTime={new Date(event.atMs).toISOString()}>{dateAndTime(event.atMs)}</time>
              <span>
                {sentence}
                {count > 1 && <small>{grouped(count)} times in a row</small>}
              </span>
            </li>
          ))}
        </ol>
      )}
      <p class="quiet">Of the time since the coordinator started; its log has the rest.</p>
    </section>
  );
}
