/** What a call number is: its bits, worked out in the browser, and what the coordinator knows of it. */
import { CallNumberError } from "@callnumber/protocol/codec";
import { type InspectAnswer, pathOf } from "@callnumber/protocol/wire";
import { useEffect, useState } from "preact/hooks";
import { callNumberIn, decoded } from "../call-number-text.js";
import { Answered } from "../parts/answered.js";
import { DecodedCallNumber } from "../parts/decoded-call-number.js";
import { InspectVerdict } from "../parts/inspect-verdict.js";
import { Notice } from "../parts/notice.js";
import { addressOf, go } from "../route.js";
import { useAnswer } from "../use-answer.js";
import { readable } from "../words.js";

/** Asked when the typing pauses. */
const PAUSE_MS = 250;
/** A real one, of run 99: what the page shows to whoever only looks around. */
const EXAMPLE = "2VznWE2i";

export function InspectPage({ namespace, text }: { namespace: string; text: string }) {
  const [typed, setTyped] = useState(text);
  // A link or the browser's back brought another one.
  useEffect(() => {
    if (text !== callNumberIn(typed).callNumber) setTyped(text);
  }, [text]);
  const { callNumber, others } = callNumberIn(typed);

  useEffect(() => {
    if (callNumber === text) return undefined;
    const timer = setTimeout(() => go(addressOf(namespace, "inspect", callNumber), true), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [callNumber, text, namespace]);

  const parts = callNumber === "" ? undefined : decoded(callNumber);
  return (
    <>
      <h1 tabIndex={-1}>Inspect</h1>
      <form
        class="inspect-form"
        onSubmit={(event) => {
          event.preventDefault();
          go(addressOf(namespace, "inspect", callNumber));
        }}
      >
        <label for="call-number">A call number, or an address that holds one</label>
        <input
          id="call-number"
          type="text"
          value={typed}
          onInput={({ currentTarget }) => setTyped(currentTarget.value)}
          placeholder="https://lists.example.org/message/2VznWE2i"
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
        />
      </form>
      {others.length > 0 && (
        <p class="quiet">
          Taken from the address: <code>{callNumber}</code>. Spelt like one, too:{" "}
          {others.map((other) => (
            <a key={other} href={addressOf(namespace, "inspect", other)}>
              {other}{" "}
            </a>
          ))}
        </p>
      )}
      {parts === undefined && (
        <p class="quiet">
          Capital and small letters are different digits. To look around:{" "}
          <a href={addressOf(namespace, "inspect", EXAMPLE)}>{EXAMPLE}</a>
        </p>
      )}
      {parts instanceof CallNumberError && <Malformed text={callNumber} error={parts} />}
      {text !== "" && <Known namespace={namespace} callNumber={text} />}
      {parts !== undefined && !(parts instanceof CallNumberError) && (
        <DecodedCallNumber key={callNumber} parts={parts} />
      )}
    </>
  );
}

function Malformed({ text, error }: { text: string; error: CallNumberError }) {
  const characters = [...text];
  return (
    <Notice kind="warning" title="No call number is spelt like this">
      <p class="spelling">
        {characters.slice(0, 40).map((character, index) => (
          // biome-ignore lint: a character has no other name than its place
          <span key={index} class={index === error.position ? "wrong" : undefined}>
            {readable(character)}
          </span>
        ))}
        {characters.length > 40 && "…"}
      </p>
      <p>{error.message}</p>
    </Notice>
  );
}

/** A malformed text is asked for, too: the coordinator knows which leased number it may have been meant for. */
function Known({ namespace, callNumber }: { namespace: string; callNumber: string }) {
  const answer = useAnswer<InspectAnswer>(
    `${pathOf("callNumber", { namespace, callNumber })}?neighbours=yes`,
    namespace,
  );
  return (
    <section aria-label="What the coordinator knows" class="known">
      <Answered answer={answer} what="answer of the coordinator">
        {(data) => <InspectVerdict answer={data} />}
      </Answered>
    </section>
  );
}
