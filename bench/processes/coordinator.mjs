/**
 * A coordinator as a process of its own, over HTTP, on a new store whose namespaces were made long ago: the load of a bench would reach
 * the clock line of fresh ones. Parameters: URL of the store, names of the namespaces. Tells its parent the address.
 */
import { randomBytes } from "node:crypto";
import process from "node:process";
import { Coordinator, createServer, openStore, parseStoreUrl } from "@callnumber/coordinator";
import { newStoreId, RATE_MAX } from "../../packages/coordinator/dist/store-id.js";

const AGE_MS = 100 * 24 * 3_600_000;

const [storeUrl, ...namespaces] = process.argv.slice(2);
process.once("disconnect", () => process.exit(0));

const { store } = await openStore(parseStoreUrl(storeUrl), { create: true });
for (const namespace of namespaces) {
  await store.step(namespace, {
    step: "init",
    storeId: newStoreId({ firstRun: 1, initialisedAtMs: Date.now() - AGE_MS, rate: RATE_MAX }),
    nonce: randomBytes(12).toString("base64url"),
    isSilenceAccepted: false,
    nodeCount: 1,
    receiptKey: randomBytes(32).toString("hex"),
  });
}
const coordinator = new Coordinator({ store, name: "bench" });
const server = await createServer({ coordinator, release: "bench" });
process.send({ url: await server.listen({ host: "127.0.0.1", port: 0 }) });
