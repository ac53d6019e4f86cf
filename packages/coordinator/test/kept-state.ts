/** The keys of a namespace in Redis, written and read past every script: for states that no step of ours would leave. */
import type { Redis } from "ioredis";
import type { ObservedKeys } from "../src/guard/checks.js";
import { type NamespaceKeys } from "../src/stores/redis/scripts.js";

/** What stands under the keys of a namespace. */
export interface KeptState {
  readonly record: "none" | "string" | { readonly fields: Readonly<Record<string, string>>; readonly expires: boolean };
  /** Ledger ids of the entries, rising. */
  readonly ledger: "none" | "string" | readonly number[];
  readonly holders: "none" | "list" | "hash";
}

/** What was read, and when by the server's clock. */
export interface LeftState {
  readonly timeMs: number;
  readonly types: readonly unknown[];
  /** Whether the record has a time to live. */
  readonly expires: boolean;
  readonly fields: Readonly<Record<string, string>>;
  /** Newest first. */
  readonly ledger: readonly (readonly [id: string, fields: readonly string[]])[];
  readonly holders: Readonly<Record<string, string>>;
}

type Pipeline = ReturnType<Redis["pipeline"]>;

/** Puts the state in place of whatever stands there, and reads it back. */
export async function putState(redis: Redis, keys: NamespaceKeys, state: KeptState): Promise<LeftState> {
  const { record, ledger, holders } = state;
  const writes = redis.pipeline().del(keys.record, keys.ledger, keys.holders);
  if (record === "string") writes.set(keys.record, "x");
  else if (record !== "none") {
    if (Object.keys(record.fields).length > 0) writes.hset(keys.record, record.fields);
    if (record.expires) writes.expire(keys.record, 1000);
  }
  if (ledger === "string") writes.set(keys.ledger, "x");
  else if (ledger !== "none") {
    for (const id of ledger) writes.xadd(keys.ledger, `${id}-0`, "n", "1", "t", "1", "h", "1", "x", "x");
  }
  if (holders === "list") writes.lpush(keys.holders, "x");
  else if (holders === "hash") writes.hset(keys.holders, { "1": "{}", "{}": "1" });
  return await readAfter(writes, keys);
}

export async function readState(redis: Redis, keys: NamespaceKeys): Promise<LeftState> {
  return await readAfter(redis.pipeline(), keys);
}

/** The clock first: whatever was done before this was asked, was done before that time. */
async function readAfter(pipeline: Pipeline, { record, ledger, holders }: NamespaceKeys): Promise<LeftState> {
  const writeCount = pipeline.length;
  pipeline.time().ttl(record).type(record).type(ledger).type(holders);
  pipeline.hgetall(record).xrevrange(ledger, "+", "-").hgetall(holders);
  const results = (await pipeline.exec()) ?? [];
  for (const [error] of results.slice(0, writeCount)) if (error !== null) throw error;
  // A key of another type than ours has no fields and no entries.
  const answers = results.slice(writeCount).map(([error, answer]) => (error === null ? answer : undefined));
  const [time, ttl, typeOfRecord, typeOfLedger, typeOfHolders, fields, entries, numbers] = answers;
  return {
    timeMs: timeMsIn(time as string[]),
    types: [typeOfRecord, typeOfLedger, typeOfHolders],
    expires: (ttl as number) > 0,
    fields: (fields ?? {}) as Record<string, string>,
    ledger: (entries ?? []) as LeftState["ledger"],
    holders: (numbers ?? {}) as Record<string, string>,
  };
}

/** The same state as a decision looks at it. */
export function foundKeys({ record, ledger, holders }: KeptState): ObservedKeys {
  const fields = typeof record === "object" ? record.fields : {};
  // Redis keeps no hash without fields.
  const isHash = Object.keys(fields).length > 0;
  return {
    record: isHash ? "hash" : record === "string" ? "other" : "none",
    fields,
    expires: typeof record === "object" && record.expires,
    ledger: typeof ledger !== "string" ? "stream" : ledger === "string" ? "other" : "none",
    ledgerMark: typeof ledger === "string" ? 0 : (ledger.at(-1) ?? 0),
    holders: holders === "list" ? "other" : holders,
  };
}

function timeMsIn([seconds, microseconds]: readonly (string | number)[]): number {
  return Number(seconds) * 1000 + Math.floor(Number(microseconds) / 1000);
}
