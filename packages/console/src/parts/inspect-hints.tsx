/** What a text may have been before a slip: guesses, each with the characters that would change. */
import type { CallNumberHint } from "@callnumber/protocol/wire";
import { addressOf } from "../route.js";

const SLIPS: Readonly<Record<CallNumberHint["slip"], string>> = {
  surrounding: "without what stands around it",
  look_alike: "with a look-alike in its place",
  case: "in another case",
};

export function InspectHints({ namespace, hints }: { namespace: string; hints: readonly CallNumberHint[] }) {
  if (hints.length === 0) return null;
  return (
    <div class="hints">
      <h2>Perhaps this was meant</h2>
      <ul>
        {hints.map(({ callNumber, slip, positions, holder, verdict }) => (
          <li key={callNumber}>
            <a href={addressOf(namespace, "inspect", callNumber)} aria-label={callNumber}>
              {[...callNumber].map((character, index) => (
                <span key={index} class={positions.includes(index) && slip !== "surrounding" ? "changed" : undefined}>
                  {character}
                </span>
              ))}
            </a>
            <small>
              {SLIPS[slip]}; leased to {holder}, {verdict}
            </small>
          </li>
        ))}
      </ul>
    </div>
  );
}
