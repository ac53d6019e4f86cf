/** Converts between the values of the fields and one number, and checks the values. */
import { capacityOf, type Field } from "./field.js";
import type { Values } from "./scheme.js";

/** A field with its weight in the number: the product of the capacities of all fields below it. */
export interface PlacedField {
  readonly field: Field;
  readonly capacity: bigint;
  readonly weight: bigint;
}

/** Most significant first. */
export function placeFields(fields: readonly Field[]): readonly PlacedField[] {
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

/** The greatest number that the fields can write, fixed fields at their value. */
export function greatestOf(placed: readonly PlacedField[]): bigint {
  return placed.reduce((sum, { field, capacity, weight }) => {
    const only = onlyValueOf(field);
    return sum + (only === undefined ? capacity - 1n : BigInt(only)) * weight;
  }, 0n);
}

/**
 * Returns the number of these values. A field that is the same in every number may be left out.
 * @throws RangeError where a value is missing, is no field of the scheme or does not fit its field.
 */
export function joinValues(placed: readonly PlacedField[], values: Values): bigint {
  for (const name of Object.keys(values)) {
    if (!placed.some(({ field }) => field.name === name)) throw new RangeError(`there is no field "${name}"`);
  }
  return placed.reduce((sum, { field, capacity, weight }) => {
    const value = Object.hasOwn(values, field.name) ? values[field.name] : onlyValueOf(field);
    return sum + checkedValue(field, capacity, value) * weight;
  }, 0n);
}

/** Returns the values of a number below the product of all capacities. */
export function splitNumber(placed: readonly PlacedField[], number: bigint): Values {
  return Object.fromEntries(
    placed.map(({ field, capacity, weight }) => [field.name, exactValue(capacity, (number / weight) % capacity)]),
  );
}

/** As a number where every value below `capacity` is exact as one, else as a bigint. */
export function exactValue(capacity: bigint, value: bigint): number | bigint {
  return capacity <= EXACT_BELOW ? Number(value) : value;
}

/**
 * Returns the value as a bigint.
 * @throws RangeError unless it is a whole number from 0 to `capacity - 1`.
 */
export function assertFits(name: string, value: unknown, capacity: bigint): bigint {
  const isWhole = typeof value === "bigint" || (typeof value === "number" && Number.isSafeInteger(value));
  if (!isWhole || value < 0 || value >= capacity) {
    throw new RangeError(`${name} must be a whole number from 0 to ${capacity - 1n}, not ${String(value)}`);
  }
  return BigInt(value);
}

const EXACT_BELOW = 1n << 53n;

function checkedValue(field: Field, capacity: bigint, given: unknown): bigint {
  const value = assertFits(field.name, given, capacity);
  const only = onlyValueOf(field);
  if (only !== undefined && value !== BigInt(only)) throw new RangeError(`${field.name} must be ${only}, not ${value}`);
  return value;
}

/** The value of a field that is the same in every number. */
function onlyValueOf({ source }: Field): number | undefined {
  return source.kind === "fixed" && source.others === "refused" ? source.value : undefined;
}
