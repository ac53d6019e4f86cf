/** The call number: version, run, sequence, shuffled. The codec is in the protocol package. */
import {
  CALL_NUMBER_BITS,
  CALL_NUMBER_LENGTH,
  decodeCallNumber,
  encodeCallNumber,
  fromNumber,
  NUMBER_MAX,
  RUN_BITS,
  RUN_COUNT,
  SEQUENCE_BITS,
  SEQUENCE_COUNT,
  toNumber,
  VERSION_BITS,
} from "@callnumber/protocol/codec";
import { defineScheme } from "../define-scheme.js";
import { base62, decimal, type EncodingRule, fixedWidth, former } from "../encodings.js";

const eightCharacters = base62("call number", CALL_NUMBER_LENGTH);

export const callNumber = defineScheme({
  name: "call-number",
  title: "The call number: version, leased run, sequence, shuffled",
  fields: [
    // When the runs of a version are used up, numbering goes on in the next: one counter above both.
    { name: "version", width: { bits: VERSION_BITS }, source: { kind: "counter", asked: "for each run" } },
    { name: "run", width: { bits: RUN_BITS }, source: { kind: "counter", asked: "for each run" } },
    { name: "sequence", width: { bits: SEQUENCE_BITS }, source: { kind: "sequence", within: "run", first: 0 } },
  ],
  shuffle: { shuffled, unshuffled },
  encodings: [
    eightCharacters,
    decimal("number", String(NUMBER_MAX).length),
    beforeTableChange(),
    bits("bits", ""),
    bits("bits with 0b", "0b"),
  ],
});

function shuffled(bits: bigint): bigint {
  const sequence = Number(bits % BigInt(SEQUENCE_COUNT));
  const versionAndRun = Number(bits / BigInt(SEQUENCE_COUNT));
  const version = Math.floor(versionAndRun / RUN_COUNT);
  return BigInt(toNumber(encodeCallNumber({ version, run: versionAndRun % RUN_COUNT, sequence })));
}

function unshuffled(number: bigint): bigint {
  const { version, run, sequence } = decodeCallNumber(fromNumber(Number(number)));
  return BigInt(version * RUN_COUNT + run) * BigInt(SEQUENCE_COUNT) + BigInt(sequence);
}

/** Version, run and sequence before the shuffle: the form in which the numbering was published. */
function bits(name: string, prefix: string): EncodingRule {
  const digits = fixedWidth(name, "01", CALL_NUMBER_BITS, prefix, `${CALL_NUMBER_BITS} binary digits`);
  return {
    ...digits,
    write: (number) => digits.write(unshuffled(number)),
    read: (text) => digits.read(text).map(shuffled),
  };
}

/** The table of before 2014-10-20 had the entries 0 and 9 swapped, so these two bits of the number change places. */
function beforeTableChange(): EncodingRule {
  return {
    ...former(eightCharacters),
    name: "before 2014-10-20",
    write: (number) => eightCharacters.write(swapped(number)),
    read: (text) => eightCharacters.read(text).flatMap((number) => (number <= NUMBER_MAX ? [swapped(number)] : [])),
  };
}

const BIT_0 = 1n << BigInt(CALL_NUMBER_BITS - 1);
const BIT_9 = BIT_0 >> 9n;

function swapped(number: bigint): bigint {
  const differ = ((number & BIT_0) === 0n) !== ((number & BIT_9) === 0n);
  return differ ? number ^ (BIT_0 | BIT_9) : number;
}
