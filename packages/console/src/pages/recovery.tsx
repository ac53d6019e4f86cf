/** What happened to the store, and what to type. Nothing is done from here: the verbs act on the store itself. */
import type { NamespaceDescription, NamespacesAnswer } from "@callnumber/protocol/operator";
import { OPERATOR_ROUTES, STORE_URL } from "@callnumber/protocol/operator";
import { pathOf, type StatusAnswer } from "@callnumber/protocol/wire";
import { useEffect } from "preact/hooks";
import { type Advice, adviceFor, advisedCodes } from "../advice.js";
import { circumstancesOf } from "../circumstances.js";
import { asSentence, grouped } from "../format.js";
import { AdviceSteps } from "../parts/advice-steps.js";
import { STATE_KINDS, STATE_WORDS } from "../parts/guard.js";
import { GuardEvents } from "../parts/guard-events.js";
import { Answered } from "../parts/loaded.js";
import { Notice } from "../parts/notice.js";
import { Lasting } from "../parts/time.js";
import { type Answer, useAnswer } from "../use-response.js";

type Known = Pick<NamespaceDescription, "namespace" | "guard"> & {
  readonly record: { readonly storeId: string; readonly highWaterMark: number } | null;
};

export function RecoveryPage({ namespace, code }: { namespace: string; code: string }) {
  const answer = useKnown(namespace);
  return (
    <>
      <h1 tabIndex={-1}>Doubt and recovery</h1>
      <Answered answer={answer} what="state of the guard">
        {(known) => <Present known={known} />}
      </Answered>
      <GuardEvents namespace={namespace} />
      <Reference namespace={namespace} known={answer.data} chosen={code} />
    </>
  );
}

/** By the list of namespaces, which knows the guard even where the record can't be read; else by the status. */
function useKnown(namespace: string): Answer<Known> {
  const list = useAnswer<NamespacesAnswer>(OPERATOR_ROUTES.namespaces, namespace);
  const status = useAnswer<StatusAnswer>(pathOf("status", { namespace }), namespace);
  const described = list.data?.namespaces.find((one) => one.namespace === namespace);
  if (described !== undefined) return { ...list, data: described };
  const { data } = status;
  return { ...status, data: data && { namespace, guard: data.guard, record: data } };
}

function Present({ known }: { known: Known }) {
  const { guard, record } = known;
  const circumstances = circumstancesOf(known);
  const advice = guard.code === null ? undefined : adviceFor(guard.code, circumstances);
  const storeId = circumstances.storeId ?? "not known here";
  return (
    <>
      <Notice
        kind={STATE_KINDS[guard.state]}
        title={
          <>
            {guard.state === "open" ? "Nothing to do. " : ""}
            {STATE_WORDS[guard.state]}, for <Lasting sinceMs={guard.sinceMs} /> now
          </>
        }
      >
        {guard.state === "open" ? (
          <p>The store is the one whose runs were leased, and no doubt about it is left.</p>
        ) : (
          <p>{asSentence(guard.explanation)}</p>
        )}
      </Notice>
      {advice !== undefined && (
        <section aria-labelledby="to-do">
          <h2 id="to-do">{TO_DO[advice.kind]}</h2>
          <AdviceSteps advice={advice} />
        </section>
      )}
      <dl class="fields">
        <dt>Store id</dt>
        <dd>
          <code>{storeId}</code>
        </dd>
        <dt>High-water mark</dt>
        <dd>{record === null ? "can’t be read" : `run ${grouped(record.highWaterMark)}`}</dd>
      </dl>
    </>
  );
}

const TO_DO: Readonly<Record<Advice["kind"], string>> = {
  waits: "It settles this by itself",
  mend: "What to put right",
  type: "What to do, in this order",
};

function Reference({ namespace, known, chosen }: { namespace: string; known: Known | undefined; chosen: string }) {
  useEffect(() => {
    if (chosen !== "") document.getElementById(`code-${chosen}`)?.scrollIntoView();
  }, [chosen]);
  const circumstances =
    known === undefined
      ? { namespace, storeId: undefined, floor: undefined, isClockToCheck: false }
      : circumstancesOf(known);
  return (
    <section aria-labelledby="reference">
      <h2 id="reference">Every code that ends leasing</h2>
      <p class="quiet">
        To read before it happens. <code>{STORE_URL}</code> stands for what the coordinator was started with (
        <code>serve --store</code>).
      </p>
      {advisedCodes().map((code) => {
        const advice = adviceFor(code, circumstances);
        return (
          advice && (
            <details key={code} id={`code-${code}`} class="code" open={code === chosen}>
              <summary>
                <code>{code}</code> <span>{advice.title}</span>
              </summary>
              <p>{advice.meaning}</p>
              <AdviceSteps advice={advice} />
            </details>
          )
        );
      })}
    </section>
  );
}
