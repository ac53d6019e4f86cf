/** Whether a namespace leases, and what to do when it does not. Nothing is done from here: the commands act on the store itself. */
import { runName } from "@callnumber/protocol/api";
import { commandsIn } from "../format.js";
import { isAboutGuard } from "../format-event.js";
import { type Guard, useShownGuard } from "../guard.js";
import { CommandLine } from "../parts/command.js";
import { EventList } from "../parts/event-list.js";
import { Headline } from "../parts/headline.js";
import { useNamespaces } from "../use-response.js";

export function RecoveryPage({ namespace }: { namespace: string }) {
  const guard = useShownGuard();
  return (
    <>
      <h1 tabIndex={-1}>Recovery</h1>
      <Headline namespace={namespace} isAlways>
        <p class="quiet">
          <code>callnumber explain {guard.data?.code}</code> shows cause and fix.
        </p>
      </Headline>
      {guard.data && guard.error === undefined && <WhatToDo guard={guard.data} />}
      <Position namespace={namespace} />
      <section aria-labelledby="events">
        <h2 id="events">What happened</h2>
        <EventList
          namespace={namespace}
          isShown={isAboutGuard}
          countMax={60}
          whenEmpty="No recovery and no rejected request among the last events that the coordinator keeps."
          isDated
        />
        <p class="quiet">Since the coordinator started; its log has the rest.</p>
      </section>
    </>
  );
}

const WHAT_TO_DO: Readonly<Record<Guard["state"], string>> = {
  active: "Nothing to do: the store did not roll back.",
  recovering:
    "Nothing to do as long as this takes seconds: the coordinator skips every run that may have been leased, and continues automatically. " +
    "If it takes longer, fix what the message names.",
  stopped: "Nothing is leased until this is fixed. Follow the message, in its order.",
};

function WhatToDo({ guard: { state, explanation } }: { guard: Guard }) {
  const commands = state === "active" ? [] : commandsIn(explanation);
  return (
    <section aria-labelledby="to-do">
      <h2 id="to-do">What to do</h2>
      <p>{WHAT_TO_DO[state]}</p>
      {commands.length > 0 && (
        <>
          <div class="steps">
            {commands.map((command) => (
              <CommandLine key={command} text={command} />
            ))}
          </div>
          <p class="quiet">
            <code>recover</code> and <code>advance-version</code> first show what they would do, and how to do it.
          </p>
        </>
      )}
    </section>
  );
}

/** From the list of namespaces, where it can be read. */
function Position({ namespace }: { namespace: string }) {
  const { data } = useNamespaces(namespace);
  const record = data?.namespaces.find((one) => one.namespace === namespace)?.record;
  if (!record) return null;
  return (
    <dl class="fields">
      <dt>Store id</dt>
      <dd>
        <code>{record.storeId}</code>
      </dd>
      <dt>High-water mark</dt>
      <dd>run {runName(record.version, record.highWaterMark)}</dd>
    </dl>
  );
}
