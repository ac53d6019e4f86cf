/** A call number: its bits, computed in the browser, and what the coordinator knows of it. */
import { pathOf, runName, UnclearTextError } from "@callnumber/protocol/api";
import { CALL_NUMBER_LENGTH, CallNumberError, DIGITS } from "@callnumber/protocol/codec";
import type { CallNumberHint, InspectResponse, LedgerEntry } from "@callnumber/protocol/schemas";
import { useEffect, useState } from "preact/hooks";
import { type Bit, callNumberIn, type Decoded, decoded, FIELDS, WIDTHS } from "../call-number.js";
import { escapeText, formatMessage, formatNumber } from "../format.js";
import { Headline } from "../parts/headline.js";
import { LeaseFields, RunBar } from "../parts/lease.js";
import { Loaded, Notice, type NoticeKind } from "../parts/notices.js";
import { go, urlOf } from "../route.js";
import { useResponse } from "../use-response.js";

/** Requested when the typing pauses. */
const PAUSE_MS = 250;
/** Of run 99. */
const EXAMPLE = "2VznWE2i";
const SHOWN_LENGTH_MAX = 40;
/** Of a text with several call numbers. */
const CANDIDATES_MAX = 10;

export function InspectPage({ namespace, text }: { namespace: string; text: string }) {
  const [typed, setTyped] = useState(text);
  const callNumber = callNumberIn(typed);
  // A link or the browser's back button brought another one.
  useEffect(() => {
    if (text !== callNumber) setTyped(text);
  }, [text]);
  useEffect(() => {
    if (callNumber === text) return undefined;
    const timer = setTimeout(() => go(urlOf(namespace, "inspect", callNumber), true), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [callNumber, text, namespace]);

  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    go(urlOf(namespace, "inspect", callNumber));
  };
  const parts = callNumber === "" ? undefined : decoded(callNumber);
  return (
    <>
      <h1 tabIndex={-1}>Inspect</h1>
      <Headline namespace={namespace} />
      <form class="inspect-form" onSubmit={submit}>
        <label for="call-number">A call number, or a link or sentence that contains one</label>
        <input
          id="call-number"
          value={typed}
          onInput={({ currentTarget }) => setTyped(currentTarget.value)}
          placeholder={`https://lists.example.org/message/${EXAMPLE}`}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
        />
      </form>
      {parts === undefined && (
        <p class="quiet">
          Capital and small letters are different digits. An example:{" "}
          <a href={urlOf(namespace, "inspect", EXAMPLE)}>{EXAMPLE}</a>
        </p>
      )}
      {parts instanceof UnclearTextError && <Unclear namespace={namespace} error={parts} />}
      {parts instanceof CallNumberError && !(parts instanceof UnclearTextError) && (
        <Malformed text={callNumber} error={parts} />
      )}
      {text !== "" && <Known namespace={namespace} callNumber={text} />}
      {parts !== undefined && !(parts instanceof CallNumberError) && <Parts parts={parts} />}
    </>
  );
}

function Malformed({ text, error }: { text: string; error: CallNumberError }) {
  const characters = [...text];
  return (
    <Notice kind="warning" title="This is not a call number">
      <p class="spelling">
        {characters.slice(0, SHOWN_LENGTH_MAX).map((character, index) => (
          // biome-ignore lint: a character has no other name than its place
          <span key={index} class={index === error.position ? "wrong" : undefined}>
            {escapeText(character)}
          </span>
        ))}
        {characters.length > SHOWN_LENGTH_MAX && "…"}
      </p>
      <p>{error.message}</p>
    </Notice>
  );
}

/** The page takes none of the candidates: the reader must choose one. */
function Unclear({ namespace, error }: { namespace: string; error: UnclearTextError }) {
  return (
    <Notice kind="warning" title="Choose a call number">
      <p>{error.message}</p>
      <ul>
        {error.candidates.slice(0, CANDIDATES_MAX).map((candidate) => (
          <li key={candidate}>
            <a href={urlOf(namespace, "inspect", candidate)}>{candidate}</a>
          </li>
        ))}
      </ul>
    </Notice>
  );
}

/** Also for a malformed text: the coordinator knows which leased number may have been meant. */
function Known({ namespace, callNumber }: { namespace: string; callNumber: string }) {
  const response = useResponse<InspectResponse>(pathOf("callNumber", { namespace, callNumber }), namespace);
  return (
    <section aria-label="What the coordinator knows">
      <Loaded from={response} what="response of the coordinator">
        {(data) => <Verdict response={data} />}
      </Loaded>
    </section>
  );
}

const VERDICTS: Readonly<Record<InspectResponse["verdict"], readonly [NoticeKind, string]>> = {
  malformed: ["warning", "Malformed"],
  other_version: ["warning", "Of another version"],
  never_leased: ["warning", "Never leased"],
  unknown: ["notice", "Unknown"],
  trimmed: ["notice", "Leased long ago"],
  reported: ["good", "Leased, and reported as made"],
  unreported: ["notice", "Leased, but not reported"],
  not_made: ["warning", "Leased, but not made"],
};

function nameOf({ version, run, currentVersion }: Extract<InspectResponse, { readonly lease: LedgerEntry }>): string {
  return runName(version, run, currentVersion);
}

function Verdict({ response }: { response: InspectResponse }) {
  const { namespace, verdict, explanation } = response;
  const [kind, title] = VERDICTS[verdict];
  return (
    <>
      {/* The page itself already shows what is malformed. */}
      <div role="status" hidden={verdict === "malformed"}>
        <Notice kind={kind} title={title}>
          <p>{formatMessage(explanation)}</p>
        </Notice>
      </div>
      {"hints" in response && <Hints namespace={namespace} hints={response.hints} />}
      {"lease" in response && (
        <>
          <RunBar state={response.state} lastSequence={response.lastSequence} marked={response.sequence} />
          <LeaseFields lease={response.lease} currentVersion={response.currentVersion} />
          <p>
            <a href={urlOf(namespace, "runs", nameOf(response))}>All about run {nameOf(response)}</a>
          </p>
        </>
      )}
    </>
  );
}

const TYPOS: Readonly<Record<CallNumberHint["slip"], string>> = {
  surrounding: "without the characters around it",
  look_alike: "with a similar character",
  case: "in another case",
};

/** Leased numbers that may have been meant, with the characters that differ. */
function Hints({ namespace, hints }: { namespace: string; hints: readonly CallNumberHint[] }) {
  if (hints.length === 0) return null;
  return (
    <div class="hints">
      <h2>Perhaps this was meant</h2>
      <ul>
        {hints.map(({ callNumber, slip, positions, holder, verdict }) => (
          <li key={callNumber}>
            <a href={urlOf(namespace, "inspect", callNumber)} aria-label={callNumber}>
              {[...callNumber].map((character, index) => (
                <span key={index} class={positions.includes(index) && slip !== "surrounding" ? "changed" : undefined}>
                  {character}
                </span>
              ))}
            </a>
            <small>
              {TYPOS[slip]}; leased to {holder}, {verdict}
            </small>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** A call number taken apart: its fields, its bits before and after the shuffle, and the number that they are. */
function Parts({ parts }: { parts: Decoded }) {
  return (
    <section aria-labelledby="parts">
      <h2 id="parts">What it is made of</h2>
      <dl class="parts">
        {FIELDS.map((field) => (
          <div key={field} class={field}>
            <dt>
              {field} <small>{WIDTHS[field]} bits</small>
            </dt>
            <dd>{formatNumber(parts[field])}</dd>
          </div>
        ))}
      </dl>
      <h3>Its bits</h3>
      <Bits bits={parts.bitsBefore} />
      <h3>After the shuffle</h3>
      <Bits bits={parts.bitsAfter} />
      <p class="quiet">
        Read as one number they are {formatNumber(parts.number)}, which has {CALL_NUMBER_LENGTH} characters in base{" "}
        {DIGITS.length}. The shuffle hides the order from the eye, and is no secret. All of this was computed in the
        browser.
      </p>
    </section>
  );
}

function Bits({ bits }: { bits: readonly Bit[] }) {
  return (
    <p class="bits">
      {bits.map(({ field, value }, index) => (
        <span key={index} class={field}>
          {value}
        </span>
      ))}
    </p>
  );
}
