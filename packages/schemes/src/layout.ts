/** Between the values of the fields and one number: put together, taken apart, checked. */
import { capacityOf, type Field } from "./field.js";
import type { Values } from "./scheme.js";

/** A field with what it weighs in the number: the product of the capacities of all fields below it. */
export interface Placed {
  readonly field: Field;
  readonly capacity: bigint;
  readonly weight: bigint;
}

/** Most significant first. */
export function placedFields(fields: readonly Field[]): readonly Placed[] {
  let weight = 1n;
  return fields
    .toReversed()
    .map((field) => {
      const placed = { field, capacity: capacityOf(field), weight };
      weight *= placed.capacity;
      return placed;
    })
    .toReversed();
}

/** The greatest number that the fields can write, those that are the same in every number at their value. */
export function greatestOf(placed: readonly Placed[]): bigint {
  return placed.reduce((sum, { field: { source }, capacity, weight }) => {
    const only = source.kind === "fixed" && source.others === "refused";
    return sum + (only ? BigInt(source.value) : capacity - 1n) * weight;
  }, 0n);
}

/**
 * The number of these values. A field that is the same in every number may be left out.
 * @throws RangeError where a value is missing, is no field of the scheme or does not fit its field.
 */
export function joined(placed: readonly Placed[], values: Values): bigint {
  for (const name of Object.keys(values)) {
    if (!placed.some(({ field }) => field.name === name)) throw new RangeError(`there is no field "${name}"`);
  }
  return placed.reduce((sum, { field, capacity, weight }) => sum + checked(field, capacity, values) * weight, 0n);
}

/** The values of a number below the product of all capacities. */
export function split(placed: readonly Placed[], number: bigint): Values {
  return Object.fromEntries(
    placed.map(({ field, capacity, weight }) => [field.name, valueOf(capacity, (number / weight) % capacity)]),
  );
}

/** As a number where every value of such a field is exact as one, else as a bigint. */
export function valueOf(capacity: bigint, value: bigint): number | bigint {
  return capacity <= EXACT_BELOW ? Number(value) : value;
}

/** The value, which must be a whole number from 0 to before `capacity`; as a bigint. */
export function mustFit(name: string, value: unknown, capacity: bigint): bigint {
  const whole = typeof value === "bigint" || (typeof value === "number" && Number.isSafeInteger(value));
  if (!whole || value < 0 || value >= capacity) {
    throw new RangeError(`${name} must be a whole number from 0 to ${capacity - 1n}, not ${shown(value)}`);
  }
  return BigInt(value);
}

const EXACT_BELOW = 1n << 53n;

function checked({ name, source }: Field, capacity: bigint, values: Values): bigint {
  const only = source.kind === "fixed" && source.others === "refused" ? source.value : undefined;
  if (!Object.hasOwn(values, name) && only !== undefined) return BigInt(only);
  const value = mustFit(name, Object.hasOwn(values, name) ? values[name] : undefined, capacity);
  if (only !== undefined && value !== BigInt(only)) throw new RangeError(`${name} must be ${only}, not ${value}`);
  return value;
}

function shown(value: unknown): string {
  return typeof value === "number" || typeof value === "bigint" || value === undefined
    ? String(value)
    : `a value of type ${typeof value}`;
}
