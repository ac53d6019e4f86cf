/**
 * What a state of the model stands for in the guard: the same record in the guard's fields, the same server, the same step.
 * A tick is a second, a run is so many runs below the line as in the model, and generations of a recovery are milliseconds.
 */

import { RUN_MAX } from "@callnumber/protocol/codec";
import { BURST_RUNS, RELEASED_AT_MS } from "../../packages/coordinator/src/guard/bounds.js";
import type { ObservedServer, StepContext } from "../../packages/coordinator/src/guard/checks.js";
import {
  type NamespaceState,
  NO_SEAL,
  type StoredFields,
  storedFields,
} from "../../packages/coordinator/src/guard/record.js";
import { parseStoreId, type StoreIdFields } from "../../packages/coordinator/src/store-id.js";
import { firstOf, type Numbers, versionOf } from "./design.js";
import { GENERATIONS_A_TICK } from "./scripts.js";
import { type DataNode, isMaster, type StoreRecord } from "./world.js";

const NAMESPACE = "main";
const TICK_MS = 1_000;
/** The model's store is made at tick 0, and every clock of the model is later than the release. */
const INITIALISED_AT_MS = RELEASED_AT_MS + 24 * 3_600_000;
export const RECEIPT_KEY = "5a".repeat(32);
export const NODE_COUNT = 3;

/** Where the model's version ends, the guard's does. */
const firstRunOf = ({ space, burst }: Numbers): number =>
  space === Number.POSITIVE_INFINITY ? 1 : RUN_MAX - BURST_RUNS + burst - (space - 1);

export const storeIdOf = (numbers: Numbers): string =>
  `0189c0de-0000-4000-8000-000000000000.${firstRunOf(numbers)}.${INITIALISED_AT_MS}.${numbers.rate}`;

/** The model's line begins `burst` above its run 0, the guard's 65,536 above the first run. */
export const runOf = (numbers: Numbers, run: number): number => run + firstRunOf(numbers) + BURST_RUNS - numbers.burst;
export const timeOf = (tick: number): number => INITIALISED_AT_MS + tick * TICK_MS;
const epochOf = (epoch: number): string => `run${epoch}:replication:2:0`;

/** Claims count from 1; a recovery takes the clock in milliseconds, and claims after it count on from there. */
export const generationOf = (g: number): number =>
  g < GENERATIONS_A_TICK ? g : timeOf(Math.floor(g / GENERATIONS_A_TICK) - 1) + (g % GENERATIONS_A_TICK);

export function guardRecordOf(numbers: Numbers, { c, t, ep, g, p }: StoreRecord): NamespaceState {
  const storeId = storeIdOf(numbers);
  const version = versionOf(numbers, c);
  return {
    namespace: NAMESPACE,
    storeId,
    id: parseStoreId(storeId) as StoreIdFields,
    version,
    highWaterMark: version === 0 ? runOf(numbers, c) : c - firstOf(numbers, version),
    changedAtMs: timeOf(t),
    epoch: epochOf(ep),
    generation: generationOf(g),
    phase: p,
    nodeCount: NODE_COUNT,
    receiptKey: RECEIPT_KEY,
    seal: NO_SEAL,
  };
}

export function situationOf(numbers: Numbers, node: DataNode, clock: number, callersClock: number): StepContext {
  const server: ObservedServer = {
    timeMs: timeOf(clock),
    role: isMaster(node) ? "master" : "slave",
    epoch: epochOf(node.epoch),
    connectedReplicas: NODE_COUNT - 1,
  };
  return {
    namespace: NAMESPACE,
    keys: {
      record: node.record ? "hash" : "none",
      fields: node.record ? fieldsOf(numbers, node.record) : {},
      expires: false,
      ledger: "none",
      ledgerMark: 0,
      holders: "none",
    },
    server,
    nowMs: timeOf(callersClock),
    bounds: { epsMs: numbers.eps * TICK_MS, gapMs: numbers.gap * TICK_MS },
  };
}

function fieldsOf(numbers: Numbers, record: StoreRecord): StoredFields {
  const fields = storedFields(guardRecordOf(numbers, record));
  return record.sound ? fields : { ...fields, k: "0".repeat(40) };
}
