/**
 * A pause in the memory of the process that paused: it goes on only with the store that it saw all the while.
 * Guarantees: G3 (docs/guarantees.md).
 */
import { expect, test } from "vitest";
import { NO_WITNESS } from "../src/guard/witness.js";
import { pauseNamespace } from "../src/operator/pause.js";
import { NAMESPACE } from "./commands-for-test.js";
import { clientAt, newStoreAt, ownServer, storeAt } from "./redis-for-test.js";

const RECORD = `{${NAMESPACE}}:record`;

async function paused(skip: Parameters<typeof ownServer>[1]) {
  const { url } = await ownServer({}, skip);
  const { lease, read } = await newStoreAt(url);
  await lease();
  const redis = clientAt(url);
  const [key = ""] = await redis.keys(`*${RECORD}`);
  const open = await redis.hgetall(key);
  const pause = await pauseNamespace({ store: await storeAt(url), namespace: NAMESPACE, witness: NO_WITNESS });
  const sealed = await redis.hgetall(key);
  return { pause, read, put: (record: Record<string, string>) => redis.hset(key, record), open, sealed };
}

test("goes on where it was, however often the store was looked at", async ({ skip }) => {
  const { pause, read } = await paused(skip);
  await pause.look();
  await pause.look();
  await pause.resume({ nodeCount: undefined });
  // What was lifted by this very process was not lost.
  await pause.look();
  expect(await read()).toMatchObject({ phase: 0, highWaterMark: 1 });
});

test("is over for good once the store was seen without it, though the sealed state comes back", async ({ skip }) => {
  const { pause, put, open, sealed } = await paused(skip);
  await put(open);
  await expect(pause.look()).rejects.toMatchObject({
    code: "claim_raced",
    message: expect.stringContaining("recover"),
  });
  await put(sealed);
  await pause.look();
  await expect(pause.resume({ nodeCount: undefined })).rejects.toMatchObject({ code: "claim_raced" });
});
