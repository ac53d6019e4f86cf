/** PostgreSQL stores for the tests of PostgreSQL alone. What is opened here ends with its test. */
import { onTestFinished, type TestContext } from "vitest";
import {
  asCoordinator,
  ownPostgresUnavailable,
  type PostgresServer,
  shippedRights,
  storeUrlAt,
} from "../../../test/postgres/test-postgres.js";
import { PostgresStore, type PostgresStoreOptions } from "../src/stores/postgres/store.js";
import { type InHandOptions, type StoreInHand, withNamespace } from "./store-in-hand.js";
import { postgresAddressForTest } from "./stores-for-test.js";

/** For `beforeEach`: skips tests that start servers where none can be started. */
export function needsOwnPostgres({ skip }: TestContext): void {
  const reason = ownPostgresUnavailable();
  skip(reason !== undefined, reason);
}

export type StoreSettings = Partial<Pick<PostgresStoreOptions, "timeoutMs" | "create">>;

export async function postgresStoreAt(url: string, settings: StoreSettings = {}): Promise<PostgresStore> {
  const store = await PostgresStore.open({ ...postgresAddressForTest(url), create: false, ...settings });
  onTestFinished(() => store.close());
  return store;
}

/** The tables in a schema of their own, made by the owner, for the user that we ship. Resolves to the coordinator's URL. */
export async function newSchemaAt(server: PostgresServer): Promise<string> {
  const url = storeUrlAt(server.url);
  await postgresStoreAt(url, { create: true });
  for (const statement of shippedRights(postgresAddressForTest(url).schema)) await server.run(statement);
  return asCoordinator(url);
}

export async function newPostgresStoreAt(server: PostgresServer, options?: InHandOptions & StoreSettings) {
  const url = await newSchemaAt(server);
  const { schema } = postgresAddressForTest(url);
  const one: StoreInHand = await withNamespace(await postgresStoreAt(url, options), options);
  return { ...one, url, schema };
}
