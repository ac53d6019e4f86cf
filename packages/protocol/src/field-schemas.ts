/**
 * How the objects of the HTTP API are described, and the fields that several have. Their texts are in registries: `.describe()` would copy each
 * schema, in each process that loads them.
 */
import * as z from "zod";
import { INSTANT_MAX_MS, type KnownRunState } from "./api.js";
import { RUN_MAX, SEQUENCE_MAX, VERSION_MAX } from "./codec.js";
import { shownOf } from "./faults-of-schemas.js";

type Fields<Schema = z.ZodType> = Readonly<Record<string, readonly [schema: Schema, text: string]>>;
type ShapeOf<Of extends Fields> = { -readonly [Name in keyof Of]: Of[Name][0] };

/** Every object of the API: its name in OpenAPI, what it is, and its fields with a text for each. */
export const describedObjects: z.core.$ZodRegistry<{ id: string; description: string; fields: Fields<unknown> }> =
  z.registry();
/** What JSON Schema can't know of a field: the unit of a number, or what it numbers, as `x-unit`; and what zod checks by code. */
export const jsonKeywords: z.core.$ZodRegistry<Readonly<Record<string, unknown>>> = z.registry();

/** Describes an object of a response: unknown keys are dropped. */
export function describedObject<const Of extends Fields>(id: string, description: string, fields: Of) {
  return z.object(shapeOf(fields)).register(describedObjects, { id, description, fields });
}

/** Describes an object of a request: unknown keys are rejected. */
export function describedRequest<const Of extends Fields>(id: string, description: string, fields: Of) {
  return z.strictObject(shapeOf(fields)).register(describedObjects, { id, description, fields });
}

function shapeOf<Of extends Fields>(fields: Of): ShapeOf<Of> {
  return Object.fromEntries(Object.entries(fields).map(([name, [schema]]) => [name, schema])) as ShapeOf<Of>;
}

/** A whole number with its unit, or what it numbers. */
export function whole(unit: string, min: number, max = Number.MAX_SAFE_INTEGER) {
  return z.int().min(min).max(max).register(jsonKeywords, { "x-unit": unit });
}

/** Of the greatest safe integer. A longer text stays one, so that messages have it as it was. */
const DIGITS = /^\d{1,16}$/;

/** The same in a query, where it arrives as text: in decimal digits, and in no other form. */
export function wholeText(unit: string, min: number, max = Number.MAX_SAFE_INTEGER) {
  const error = ({ input }: { readonly input?: unknown }) =>
    `must be a whole number from ${min} to ${max}, not ${shownOf(input)}`;
  const number = z.int({ error }).min(min, { error }).max(max, { error });
  const numbered = (given: unknown) => (typeof given === "string" && DIGITS.test(given) ? Number(given) : given);
  return z.preprocess(numbered, number).register(jsonKeywords, { "x-unit": unit });
}

export const text = z.string();
export const STORE_ID_PATTERN = /^[!-~]{1,99}$/;
/** Of a response. */
export const storeId = z.string().register(jsonKeywords, { pattern: STORE_ID_PATTERN.source });
export const version = whole("version", 0, VERSION_MAX);
export const run = whole("run", 0, RUN_MAX);
export const sequence = whole("sequence", 0, SEQUENCE_MAX);
export const runs = whole("runs", 0);
export const SINCE_1970 = "milliseconds since 1970-01-01T00:00:00Z";
/** Of a request: a clock that may be wrong. */
export const anyTimeMs = whole(SINCE_1970, 0);
/** Of a response: the reader makes a date of it. */
export const timeMs = whole(SINCE_1970, 0, INSTANT_MAX_MS);

export const runState = z.enum(["open", "exhausted", "closed"]);
export const notedState = z.enum([...runState.options, "discarded", "skipped"]);
export const knownRunState = z.enum([...notedState.options, "unreported"]) satisfies z.ZodType<KnownRunState>;

export const NAMESPACE = [text, "The namespace of the request"] as const;
export const CURRENT_VERSION = [version, "The version that the namespace has come to"] as const;
export const LAST_SEQUENCE = [
  sequence.nullable(),
  "The last sequence that the holder reported for this run; null if none",
] as const;
