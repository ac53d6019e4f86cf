/** A coordinator on a Redis store of any kind, with short bounds, ended with its test. */
import { onTestFinished } from "vitest";
import { asStoreUser } from "../../../test/redis/shipped-users.js";
import { Coordinator, type CoordinatorOptions } from "../src/coordinator.js";
import { RedisStore } from "../src/stores/redis/store.js";
import { parseStoreUrl } from "../src/stores/store-url.js";
import { keptLog, SHORT_BOUNDS } from "./leasing-crowd.js";

/** A tester's URL will do: the store logs in as the user that we ship for it. */
export async function redisStoreAt(url: string): Promise<RedisStore> {
  const address = parseStoreUrl(asStoreUser(url));
  if (address.kind === "memory" || address.kind === "sqlite") throw new Error(`${url} is no Redis`);
  const store = await RedisStore.open({ ...address, bounds: SHORT_BOUNDS });
  onTestFinished(() => store.close());
  return store;
}

/** It touches from the start. */
export async function redisCoordinatorAt(url: string, options: Partial<CoordinatorOptions> = {}) {
  const store = await redisStoreAt(url);
  const { log, events } = keptLog();
  const coordinator = new Coordinator({ store, name: "test", bounds: SHORT_BOUNDS, log, ...options });
  onTestFinished(() => coordinator.stopHeartbeat());
  coordinator.startHeartbeat();
  /** Why the mark of a namespace jumped, each time. */
  const jumpsOf = (namespace: string) =>
    events
      .filter(({ event, fields }) => event === "jump" && fields["namespace"] === namespace)
      .map(({ fields }) => fields["reason"]);
  return { store, coordinator, events, jumpsOf };
}
