/** The order of measured values: what a table shows instead of a mean, which one stop of the machine would move. */

/** The value that `share`, 0 to 1, of all values do not pass. NaN of none. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)] ?? Number.NaN;
}

/** `3.1 (2.9 to 3.3)`: the median and the quartiles, with three digits that count. */
export function spreadInWords(values: readonly number[]): string {
  const [lower, median, upper] = [0.25, 0.5, 0.75].map((share) => figure(quantile(values, share)));
  return `${median} (${lower} to ${upper})`;
}

/** A measured value as people read it: three digits that count, thousands grouped. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return "-";
  const rounded = Number(value.toPrecision(3));
  const fractionDigits = rounded === 0 ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.abs(rounded))));
  return rounded.toLocaleString("en-US", {
    minimumFractionDigits: fractionDigits,
    maximumFractionDigits: fractionDigits,
  });
}
