/** What happened, newest first, one line each; what came several times in a row stands once. */
import type { OperatorEvent } from "@callnumber/protocol/operator";
import type { ComponentChildren } from "preact";
import { useConnection, useEvents } from "../event-stream.js";
import { grouped } from "../format.js";
import { type Happening, happenings } from "../format-event.js";

interface Properties {
  readonly namespace: string;
  readonly isWanted: (event: OperatorEvent) => boolean;
  readonly shownCount: number;
  /** What an empty list says, when all would have been told. */
  readonly nothing: string;
  readonly class: string;
  readonly timeOf: (event: Happening["event"]) => ComponentChildren;
}

export function HappeningList({ namespace, isWanted, shownCount, nothing, class: className, timeOf }: Properties) {
  const events = happenings(useEvents(namespace).filter(isWanted)).slice(0, shownCount);
  const isConnected = useConnection().state === "connected";
  if (events.length === 0)
    return <p class="quiet">{isConnected ? nothing : "Not known while the coordinator does not answer."}</p>;
  return (
    <ol class={className}>
      {events.map(({ event, sentence, count }) => (
        <li key={`${event.atMs} ${event.id}`} class={event.level}>
          {timeOf(event)}
          <span>
            {sentence}
            {count > 1 && <small>{grouped(count)} times in a row</small>}
          </span>
        </li>
      ))}
    </ol>
  );
}
