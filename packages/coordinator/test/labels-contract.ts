/** The part of a store's contract that is about a namespace's labels: text for people, which no step reads. */
import { describe, expect, test } from "vitest";
import type { Store } from "../src/stores/store.js";
import { NAMESPACE, storeIdFrom } from "./commands-for-test.js";
import type { OpenOptions, StoreTraits } from "./store-contract.js";
import { withNamespace } from "./store-in-hand.js";

type Opened = (options?: OpenOptions) => Promise<{ readonly store: Store; readonly reopen: () => Promise<Store> }>;

export function describeLabels(opened: Opened, { remembers }: StoreTraits): void {
  describe("labels", () => {
    test("are none before any are set, and afterwards those that were set last", async () => {
      const { store } = await opened();
      await withNamespace(store);
      expect((await store.readSettings(NAMESPACE)).labels).toEqual({});
      const labels = { team: "mail", archive: 'Ä "quoted" {brace} 書, a=b' };
      await store.changeSettings(NAMESPACE, { labels });
      expect((await store.readSettings(NAMESPACE)).labels).toEqual(labels);
      await store.changeSettings(NAMESPACE, { labels: { archive: "lists" } });
      expect((await store.readSettings(NAMESPACE)).labels).toEqual({ archive: "lists" });
      await store.changeSettings(NAMESPACE, { labels: {} });
      expect((await store.readSettings(NAMESPACE)).labels).toEqual({});
    });

    test("belong to one namespace, and make none", async () => {
      const { store } = await opened();
      await withNamespace(store);
      await withNamespace(store, { namespace: "other", storeId: storeIdFrom(1) });
      await store.changeSettings("other", { labels: { archive: "lists" } });
      expect((await store.readSettings(NAMESPACE)).labels).toEqual({});
      await store.changeSettings("unmade", { labels: { archive: "lists" } });
      expect(await store.listNamespaces()).toEqual([NAMESPACE, "other"]);
    });

    test("change nothing that a step reads, and no step changes them", async () => {
      const { store } = await opened();
      const { lease, read, jump } = await withNamespace(store);
      await lease({ runCount: 3 });
      const before = await read();
      await store.changeSettings(NAMESPACE, { labels: { archive: "lists" } });
      expect(await read()).toEqual(before);
      expect((await lease()).firstRun).toBe(4);
      await jump();
      expect((await store.readSettings(NAMESPACE)).labels).toEqual({ archive: "lists" });
    });

    test.runIf(remembers)("outlive the process", async () => {
      const { store, reopen } = await opened();
      await withNamespace(store);
      await store.changeSettings(NAMESPACE, { labels: { archive: "lists" } });
      expect((await (await reopen()).readSettings(NAMESPACE)).labels).toEqual({ archive: "lists" });
    });
  });
}
