/** How many numbers there are, as people write it: `62^5`, `2^122`, `10^6`, `916,132,832`, `2 * 36^4`, `1e9`. */

/** Above, a double is no number any more. */
const BITS_MAX = 1_000;
const GREATEST = 1n << BigInt(BITS_MAX);
const FACTOR = /^(\d+)(?:e(\d{1,3}))?(?:\^(\d{1,9}))?$/;

/** At least 1. @throws RangeError */
export function numberExpression(text: string): bigint {
  const factors = text
    .replace(/\s/g, "")
    .replace(/(?<=\d)[_,](?=\d)/g, "")
    .split("*");
  const value = factors.reduce((product, factor) => smallEnough(product * factorIn(factor)), 1n);
  if (value < 1n) throw new RangeError("must be at least 1");
  return value;
}

/** The size is looked at before the power is taken: a long one could take for ever. */
function factorIn(factor: string): bigint {
  const [, digits, exponent = "0", power = "1"] = FACTOR.exec(factor) ?? [];
  if (digits === undefined || digits.length > BITS_MAX) {
    throw new RangeError("must be a whole number from 1 on, such as 62^5, 2^122, 10^6 or 916,132,832");
  }
  const base = BigInt(digits) * 10n ** BigInt(exponent);
  if (base > 1n && (base.toString(2).length - 1) * Number(power) > BITS_MAX) throw tooLarge();
  // To the power of more than it can be large only 0 and 1 come here: of them the first power is as good.
  return base > 1n || power === "0" ? base ** BigInt(power) : base;
}

function smallEnough(value: bigint): bigint {
  if (value > GREATEST) throw tooLarge();
  return value;
}

function tooLarge(): RangeError {
  return new RangeError(`is more than 2^${BITS_MAX}`);
}
