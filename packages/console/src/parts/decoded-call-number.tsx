/** A call number taken apart: its fields, its bits on their way through the shuffle, its spelling. */
import { CALL_NUMBER_LENGTH, DIGITS } from "@callnumber/protocol/codec";
import { type Decoded, FIELDS } from "../call-number.js";
import { grouped } from "../format.js";
import { BitMap } from "./bit-map.js";

const WIDTH_WORDS = { version: "3 bits", run: "30 bits", sequence: "14 bits" } as const;

export function DecodedCallNumber({ parts }: { parts: Decoded }) {
  return (
    <section aria-labelledby="decoded">
      <h2 id="decoded">What it is made of</h2>
      <dl class="parts">
        {FIELDS.map((field) => (
          <div key={field} class={field}>
            <dt>
              {field} <small>{WIDTH_WORDS[field]}</small>
            </dt>
            <dd>{grouped(parts[field])}</dd>
          </div>
        ))}
      </dl>
      <BitMap bits={parts.bits} />
      <h3>Its spelling</h3>
      <p class="quiet">
        The bits after the shuffle, read as one number, are {grouped(parts.number)}. In base {DIGITS.length} that is:
      </p>
      <ol class="digits">
        {parts.digits.map(({ character, value, power }) => (
          <li key={power}>
            <b>{character}</b>
            <small>{value}</small>
            <small class="power">
              × {DIGITS.length}
              <sup>{power}</sup>
            </small>
          </li>
        ))}
      </ol>
      <p class="quiet">
        Always {CALL_NUMBER_LENGTH} characters. The shuffle hides the order from the eye; it is no secret, and was done
        here without asking anybody.
      </p>
    </section>
  );
}
