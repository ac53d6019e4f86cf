/** Whether a namespace leases, and what to do when it does not. Nothing is done from here: the commands act on the store itself. */
import { type NamespaceDescription, STORE_URL } from "@callnumber/protocol/operator";
import { type GuardStatus, runName } from "@callnumber/protocol/wire";
import { commandsIn } from "../format.js";
import { isAboutGuard } from "../format-event.js";
import { CommandLine } from "../parts/command.js";
import { EventList } from "../parts/event-list.js";
import { GuardNotice, Loaded } from "../parts/notices.js";
import { type Loadable, useNamespaces, useStatus } from "../use-response.js";

type Known = Pick<NamespaceDescription, "guard"> & {
  readonly record: { readonly storeId: string; readonly version: number; readonly highWaterMark: number } | null;
};

export function RecoveryPage({ namespace }: { namespace: string }) {
  return (
    <>
      <h1 tabIndex={-1}>Recovery</h1>
      <Loaded from={useKnown(namespace)} what="state of the namespace">
        {(known) => <State known={known} />}
      </Loaded>
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

/** From the list of namespaces, which knows the guard also where the record can't be read; else from the status. */
function useKnown(namespace: string): Loadable<Known> {
  const list = useNamespaces(namespace);
  const status = useStatus(namespace);
  const described = list.data?.namespaces.find((one) => one.namespace === namespace);
  if (described !== undefined) return { ...list, data: described };
  return { ...status, data: status.data && { guard: status.data.guard, record: status.data } };
}

const WHAT_TO_DO: Readonly<Record<GuardStatus["state"], string>> = {
  active: "Nothing to do: the store did not roll back.",
  recovering:
    "Nothing to do as long as this takes seconds: the coordinator skips every run that may have been leased, and continues automatically. " +
    "If it takes longer, fix what the message names.",
  stopped: "Nothing is leased until this is fixed. Follow the message, in its order.",
};

function State({ known: { guard, record } }: { known: Known }) {
  const { state, code, explanation } = guard;
  const commands = state === "active" ? [] : commandsIn(explanation);
  return (
    <>
      <GuardNotice guard={guard}>
        <p class="quiet">
          <code>callnumber explain {code}</code> prints cause and fix.
        </p>
      </GuardNotice>
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
              {explanation.includes(STORE_URL) &&
                ` ${STORE_URL} is what the coordinator was started with (serve --store).`}
            </p>
          </>
        )}
      </section>
      <dl class="fields">
        <dt>Store id</dt>
        <dd>{record === null ? "can’t be read" : <code>{record.storeId}</code>}</dd>
        <dt>High-water mark</dt>
        <dd>{record === null ? "can’t be read" : `run ${runName(record.version, record.highWaterMark)}`}</dd>
      </dl>
    </>
  );
}
