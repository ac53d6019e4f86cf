/** The settings of a process that imports, and the client that it makes of them. */
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import type { ClientOptions } from "@callnumber/client";
import type { SamePolicy } from "../archive/archive.js";
import type { NumbersState } from "../numbers/numbers-file.js";
import { printable } from "../terminal.js";

export interface WorkerSettings extends SamePolicy {
  /** Absolute. */
  readonly archive: string;
  /** Which file it was when the import began. */
  readonly archiveFile: string | undefined;
  /** The list that the messages belong to; undefined: each says itself. */
  readonly list: string | undefined;
  /** The file of numbers that each stored number is appended to. */
  readonly numbersFile: string | undefined;
  /** What it was when the import began. */
  readonly numbersState: NumbersState | undefined;
  readonly coordinator: string;
  readonly namespace: string;
  readonly token: string | undefined;
  /** Has precedence over `token`. Read before each request, so that a token can be rotated during an import. */
  readonly tokenFile: string | undefined;
  /** How long to wait for an unreachable coordinator. */
  readonly waitTimeoutMs: number;
  /** Waits for it again, however long it is away. */
  readonly waitsForever: boolean;
  /** One message, on standard input. */
  readonly isDelivered: boolean;
}

/** `processNumber`: 0 for the parent. Numbers of any other store than `storeId` are rejected before the first one. */
export function clientOptions(
  settings: Omit<WorkerSettings, "archiveFile" | "numbersState">,
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
