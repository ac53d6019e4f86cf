/**
 * The options that several commands share. Each is checked by zod, and a bad one is rejected with its name and value. A setting may
 * also be in the environment.
 */

import { NODE_COUNT_MAX } from "@callnumber/coordinator/operator";
import { holderSchema, namespaceSchema } from "@callnumber/protocol/schemas";
import { DEFAULT_NAMESPACE } from "@callnumber/protocol/wire";
import { InvalidArgumentError, Option } from "commander";
import { z } from "zod";
import { defaultStoreUrl } from "./default-store.js";

export const DEFAULT_PORT = 7300;

const YES_OR_NO: Readonly<Record<string, boolean>> = {
  yes: true,
  true: true,
  1: true,
  no: false,
  false: false,
  0: false,
};

const yesOrNo = z
  .string()
  .refine((text) => Object.hasOwn(YES_OR_NO, text), "must be yes or no")
  .transform((text) => YES_OR_NO[text] === true);

/** An option whose value is checked by a schema. */
export function checkedOption(flags: string, description: string, schema: z.ZodType): Option {
  return new Option(flags, description).argParser((text) => checked(schema, text));
}

/**
 * Makes an option readable from the environment: `--tls-key` as CALLNUMBER_TLS_KEY. For what selects a store, a coordinator, a
 * namespace or a token, and for the settings of `serve`. Never for an argument or a confirmation: a variable set for one command
 * would confirm another.
 */
export function setting(option: Option): Option {
  return option.env(`CALLNUMBER_${option.name().toUpperCase().replaceAll("-", "_")}`);
}

/** A flag that is on when it is there; as a setting it must have a value, so that `CALLNUMBER_PUBLIC_INSPECT=no` is no. */
export function switchOption(name: string, description: string): Option {
  return checkedOption(`--${name} [yes|no]`, description, yesOrNo).preset("yes");
}

/** @throws InvalidArgumentError with the schema's own words. */
export function checked<T>(schema: z.ZodType<T>, given: unknown): T {
  const result = schema.safeParse(given);
  if (result.success) return result.data;
  throw new InvalidArgumentError(result.error.issues.map(({ message }) => message).join("; "));
}

export function wholeNumber(min: number, max: number): z.ZodType<number> {
  const message = `must be a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,15}$/, message)
    .transform(Number)
    .pipe(z.number().min(min, message).max(max, message));
}

export function storeOption(): Option {
  const description = "where the state is kept: sqlite:PATH, redis://HOST:PORT/DB, rediss://…, memory:";
  return setting(checkedOption("--store <url>", description, z.string().min(1))).default(defaultStoreUrl());
}

export function namespaceOption(): Option {
  return setting(checkedOption("--namespace <name>", "which space of runs", namespaceSchema)).default(
    DEFAULT_NAMESPACE,
  );
}

/** As many as the record can hold. */
export function nodesOption(description: string): Option {
  return checkedOption("--nodes <n>", description, wholeNumber(1, NODE_COUNT_MAX));
}

/** Each finding of the preflight has a name of its own; accepting one accepts no other. */
export function acceptOption(): Option {
  const names = z
    .string()
    .regex(/^[a-z-]+(,[a-z-]+)*$/, "must be names of findings, with commas between them")
    .transform((text) => text.split(","));
  return checkedOption(
    "--accept <names>",
    "findings of callnumber doctor that are known and accepted, by their names",
    names,
  ).default([], "none");
}

export function coordinatorOption(): Option {
  const schema = z.url({ protocol: /^https?$/, error: "must be an address such as http://127.0.0.1:7300" });
  return setting(checkedOption("--coordinator <url>", "address of the coordinator", schema)).default(
    `http://127.0.0.1:${DEFAULT_PORT}`,
  );
}

/** How often something that goes on is asked for. Kept in milliseconds. */
export function everyOption(): Option {
  const seconds = wholeNumber(1, 3_600).transform((number) => number * 1_000);
  return checkedOption("--every <seconds>", "how often it is looked at, 1 to 3600", seconds).default(2_000, "2");
}

export function holderOption(): Option {
  return checkedOption("--holder <name>", "only leases of the holder with this name", holderSchema.shape.name);
}
