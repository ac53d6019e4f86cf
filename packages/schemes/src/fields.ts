/**
 * The fields of a number, most significant first, each with its width and its source.
 * Generating, encoding, parsing and every figure of the comparison follow from these: a scheme declares, and computes nothing.
 */

/** In bits; in decimal digits where people were to read the number; in base62 characters where these are drawn. */
export type Width = { readonly bits: number } | { readonly digits: number } | { readonly base62: number };

/** What fills a field when a number is generated. Several fields of one node or counter share its digits, most significant first. */
export type Source =
  /** The same in every generated number: a version, a sign bit. Numbers with another value are `rejected`, or `read` where they can exist. */
  | { readonly kind: "fixed"; readonly value: number; readonly others: "rejected" | "read" }
  /** Whole units of time since the epoch. `unitMs` is 1,000 for seconds. `isChosen`: each user of the scheme may choose another epoch. */
  | { readonly kind: "clock"; readonly unitMs: number; readonly epochMs: number; readonly isChosen?: true }
  /** Distinguishes this process from all others: assigned from a list, or derived from the machine, which may repeat. */
  | { readonly kind: "node"; readonly from: NodeSource }
  /** Drawn for each number, each value from `from` to `to` with the same chance; without `to`, up to the greatest of the field. */
  /**
   * `rises`: drawn for the first number of a process in a unit of the clock, and rises by one for the others, so that they are in order. Fields
   * that rise share the digits of one number, and have all values from 0 on.
   */
  | { readonly kind: "random"; readonly from: number; readonly to?: number; readonly rises?: true }
  /** The first bits of a digest of the content: as good as drawn, but the same for the same content. Simulated content is never the same. */
  | { readonly kind: "digest" }
  /** The last digits of a number drawn from 0 to `drawnBelow - 1`, which is no multiple of the field's capacity: small values come more often. */
  | { readonly kind: "remainder"; readonly drawnBelow: number }
  /** Rises by one with each number. */
  | { readonly kind: "sequence"; readonly within: SequenceScope; readonly first: number | "random" }
  /** Requested from one central counter. */
  | { readonly kind: "counter"; readonly asked: "for each number" | "for each run" };

/** What distinguishes a node. `mac hash` takes the number of the node where the machine has no MAC address. */
export const NODE_SOURCES = {
  given: "the number of the node, from a list that an operator keeps",
  server: "the number of the server, from a list that an operator keeps",
  pid: "the process id",
  "mac hash": "a hash of the machine's MAC addresses",
} as const;
export type NodeSource = keyof typeof NODE_SOURCES;

/** Where a sequence restarts, and so what follows its last value. */
export const SEQUENCE_SCOPES = {
  "clock unit": "within one unit of the clock, then waits for the next",
  process: "within one process and wraps around; waits before a value comes twice in a unit of the clock",
  run: "within one run, then requests another",
  kept: "and is kept when the process ends; rejects after its last value",
} as const;
export type SequenceScope = keyof typeof SEQUENCE_SCOPES;

/** One part of a number. */
export interface Field {
  /** One word, unique within the scheme: the key of its value. */
  readonly name: string;
  readonly width: Width;
  readonly source: Source;
}

export type FieldOf<Kind extends Source["kind"]> = Field & { readonly source: Extract<Source, { kind: Kind }> };

/** The value of each field, by its name: a number where every value of the field is exact as one (up to 53 bits), else a bigint. */
export type Values = Readonly<Record<string, number | bigint>>;

/** Returns how many values these fields can have together. */
export function capacityOf(...fields: readonly Field[]): bigint {
  return fields.reduce((product, { width }) => {
    if ("bits" in width) return product << BigInt(width.bits);
    return product * ("digits" in width ? 10n ** BigInt(width.digits) : 62n ** BigInt(width.base62));
  }, 1n);
}

export function fieldsOfKind<Kind extends Source["kind"]>(fields: readonly Field[], kind: Kind): FieldOf<Kind>[] {
  return fields.filter((field): field is FieldOf<Kind> => field.source.kind === kind);
}

/** Returns what the nodes are distinguished by, each source once, in the order of the fields. */
export function nodeSourcesOf(fields: readonly Field[]): readonly NodeSource[] {
  return [...new Set(fieldsOfKind(fields, "node").map(({ source }) => source.from))];
}

/** Returns the fields that share the digits of a node's number. */
export function nodeFields(fields: readonly Field[], from: NodeSource): readonly Field[] {
  return fieldsOfKind(fields, "node").filter(({ source }) => source.from === from);
}

/** Returns the fields that are drawn once in a unit of the clock, and rise together. */
export function risingFields(fields: readonly Field[]): readonly Field[] {
  return fieldsOfKind(fields, "random").filter(({ source }) => source.rises);
}

/** Returns the fields that share the digits of one number with `field`: those of its node, its counter or what rises, else it alone. */
export function fieldsSharing(fields: readonly Field[], field: Field): readonly Field[] {
  const { source } = field;
  if (source.kind === "node") return nodeFields(fields, source.from);
  if (source.kind === "random" && source.rises) return risingFields(fields);
  return source.kind === "counter" ? fieldsOfKind(fields, "counter") : [field];
}

/** Returns the greatest number that the fields can write, fixed fields at their value. */
export function greatestOf(fields: readonly Field[]): bigint {
  return fields.reduce((number, field) => {
    return number * capacityOf(field) + BigInt(onlyValueOf(field) ?? capacityOf(field) - 1n);
  }, 0n);
}

/**
 * Returns the number of these values. A field that is the same in every number may be left out.
 * @throws RangeError where a value is missing, is no field of the scheme or does not fit its field.
 */
export function joinValues(fields: readonly Field[], values: Values): bigint {
  const unknown = Object.keys(values).find((name) => !fields.some((field) => field.name === name));
  if (unknown !== undefined) throw new RangeError(`there is no field "${unknown}"`);
  return fields.reduce((number, field) => {
    const { name } = field;
    const only = onlyValueOf(field);
    const value = assertFits(name, Object.hasOwn(values, name) ? values[name] : only, capacityOf(field));
    if (only !== undefined && value !== BigInt(only)) throw new RangeError(`${name} must be ${only}, not ${value}`);
    return number * capacityOf(field) + value;
  }, 0n);
}

const EXACT_BELOW = 1n << 53n;

/**
 * Returns the values of a number.
 * @throws RangeError where the fields can't hold it: it would change the field above.
 */
export function splitNumber(fields: readonly Field[], number: bigint): Values {
  let rest = number;
  const values = fields.toReversed().map((field) => {
    const capacity = capacityOf(field);
    const value = rest % capacity;
    rest /= capacity;
    return [field.name, capacity <= EXACT_BELOW ? Number(value) : value] as const;
  });
  if (number < 0n || rest > 0n) throw new RangeError(`${number} does not fit ${namesOf(fields)}`);
  return Object.fromEntries(values.reverse());
}

export function namesOf(fields: readonly Field[]): string {
  return fields.map(({ name }) => name).join(" and ");
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

/** Returns how many values are drawn for this field. */
export function drawnCount(field: FieldOf<"random">): bigint {
  const { from, to } = field.source;
  return (to === undefined ? capacityOf(field) : BigInt(to) + 1n) - BigInt(from);
}

/** The value of a field that is the same in every number. */
function onlyValueOf({ source }: Field): number | undefined {
  return source.kind === "fixed" && source.others === "rejected" ? source.value : undefined;
}
