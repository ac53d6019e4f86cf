/**
 * Ledgers of any size within seconds, for benchmarks that only read them: written past the stores, as the stores write them,
 * each lease of one run, reported on, by twenty holders in turn, spread evenly over ninety days until now.
 */
import { encodeCallNumber } from "@callnumber/protocol/codec";
import { DatabaseSync } from "@photostructure/sqlite";
import type { Redis } from "ioredis";
import { type ObservedFields, readRecord, storedFields } from "../packages/coordinator/src/guard/record.js";
import { isRefusal } from "../packages/coordinator/src/guard/refusals.js";
import { keysOf } from "../packages/coordinator/src/stores/redis/scripts.js";
import { holderJsonOf } from "../packages/coordinator/src/stores/stored-shapes.js";

const HOLDER_COUNT = 20;
const DAY_MS = 24 * 3_600_000;
const SPAN_MS = 90 * DAY_MS;
/** One script; a longer one would be taken for a hang. */
const CHUNK_LEASES = 20_000;

export function holderOf(index: number) {
  const labels = { archive: "lists", step: "import" };
  return { name: `importer-${index}`, host: `mail-${index}.example.org`, pid: 4_000 + index, labels };
}

/** A call number out of a run that is leased in a ledger of so many leases. */
export function callNumberWithin(leaseCount: number): string {
  return encodeCallNumber({ version: 0, run: runWithin(leaseCount), sequence: Math.floor(Math.random() * 16_384) });
}

export function runWithin(leaseCount: number): number {
  return 1 + Math.floor(Math.random() * leaseCount);
}

/** Fills a namespace that was just made, from run 1 on. */
export async function fillRedis(redis: Redis, namespace: string, leaseCount: number): Promise<void> {
  const { record, ledger, holders, reports } = keysOf("callnumber:", namespace);
  for (const [number, json] of holderJsons()) await redis.hset(holders, { [json]: number, [number]: json });
  const { beginMs, stepMs } = timesOf(leaseCount);
  for (let first = 1; first <= leaseCount; first += CHUNK_LEASES) {
    const last = Math.min(first + CHUNK_LEASES - 1, leaseCount);
    await redis.eval(FILL_SCRIPT, 2, ledger, reports, first, last, beginMs, stepMs, HOLDER_COUNT);
  }
  await redis.hset(record, withMark(await redis.hgetall(record), namespace, leaseCount));
}

/** Fills a store that is closed, and whose namespace was just made, from run 1 on. */
export function fillSqlite(path: string, namespace: string, leaseCount: number): void {
  const database = new DatabaseSync(path);
  try {
    database.exec("PRAGMA synchronous = OFF; BEGIN");
    const row = database.prepare("SELECT * FROM namespaces WHERE name = ?").get(namespace) as Record<string, string>;
    const addHolder = database.prepare("INSERT INTO holders (id, json) VALUES (?, ?)");
    for (const [number, json] of holderJsons()) addHolder.run(number, json);
    const { beginMs, stepMs } = timesOf(leaseCount);
    database
      .prepare(
        `WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < ?)
         INSERT INTO leases SELECT ?, n, 1, ? + CAST(n * ? AS INTEGER), n % ${HOLDER_COUNT} + 1, printf('nonce%011d', n),
           n, 16383, 'exhausted', ? + CAST(n * ? AS INTEGER) FROM numbers`,
      )
      .run(leaseCount, row["id"], beginMs, stepMs, beginMs, stepMs);
    const fields = withMark(row, namespace, leaseCount);
    const names = Object.keys(fields);
    database
      .prepare(`UPDATE namespaces SET ${names.map((name) => `${name} = ?`).join(", ")} WHERE name = ?`)
      .run(...Object.values(fields), namespace);
    database.exec("COMMIT; PRAGMA wal_checkpoint(TRUNCATE)");
  } finally {
    database.close();
  }
}

/** As lua/lease.lua and lua/report.lua write. KEYS 1 ledger · 2 reports. ARGV 1 first run · 2 last run · 3 begin, ms · 4 step, ms · 5 holders */
const FILL_SCRIPT = `
  local first, last, begin, step = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
  local packed, bucket = '', math.floor(first / 128)
  if first > 1 then packed = redis.call('HGET', KEYS[2], bucket) or '' end
  for run = first, last do
    local time = begin + math.floor(run * step)
    redis.call('XADD', KEYS[1], string.format('%.0f-0', run), 'n', '1', 't', string.format('%.0f', time),
      'h', tostring(run % tonumber(ARGV[5]) + 1), 'x', string.format('nonce%011d', run))
    if math.floor(run / 128) ~= bucket then
      redis.call('HSET', KEYS[2], bucket, packed)
      packed, bucket = '', math.floor(run / 128)
    end
    packed = packed .. struct.pack('>BBHBI4H', run % 128, 0, 16384, 1, math.floor(time / 1000), time % 1000)
  end
  redis.call('HSET', KEYS[2], bucket, packed)
`;

function holderJsons(): [number: number, json: string][] {
  return Array.from({ length: HOLDER_COUNT }, (_, index) => [
    index + 1,
    holderJsonOf({ holder: holderOf(index), coordinator: "bench" }),
  ]);
}

function timesOf(leaseCount: number): { readonly beginMs: number; readonly stepMs: number } {
  return { beginMs: Date.now() - SPAN_MS, stepMs: SPAN_MS / leaseCount };
}

function withMark(found: ObservedFields, namespace: string, mark: number): Record<string, string> {
  const record = readRecord(found, namespace);
  if (isRefusal(record)) throw new Error(`the namespace was not made: ${record.detail}`);
  return { ...storedFields({ ...record, highWaterMark: mark }) };
}
