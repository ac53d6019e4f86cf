/** The client of a process that imports. */
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import type { ClientOptions } from "@callnumber/client";
import { printable } from "../terminal.js";
import type { WorkerSettings } from "./worker-pool.js";

/** `processNumber`: 0 for the parent. Numbers of any other store than `storeId` are rejected before the first one. */
export function clientOptions(
  settings: WorkerSettings,
  storeId: string | undefined,
  processNumber: number,
): ClientOptions {
  const { archive, coordinator, namespace, token, tokenFile, waitTimeoutMs } = settings;
  const labels = { archive: printable(basename(archive), 64), process: String(processNumber) };
  return {
    coordinator,
    namespace,
    holder: { name: "callnumber-archive", labels },
    waitTimeoutMs,
    token: tokenFile === undefined ? token : () => readFileSync(tokenFile, "utf8"),
    expectedStoreId: storeId,
  };
}
