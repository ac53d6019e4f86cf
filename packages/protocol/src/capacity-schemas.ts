/** Capacity and history of operator.ts as zod schemas; part of operator-schemas.ts. */
import { z } from "zod";
import {
  ALARM_NAMES,
  ALARM_SEVERITIES,
  type Alarm,
  type CapacityAnswer,
  HISTORY_STEP_COUNT,
  HISTORY_WINDOWS_MS,
  type HistoryAnswer,
  type HolderUse,
} from "./operator.js";
import { statusAnswerSchema } from "./schemas.js";

const count = z.int().min(0);
const { version, highWaterMark, rates } = statusAnswerSchema.shape;
const timeMs = statusAnswerSchema.shape.lastLeaseAtMs.unwrap();

const alarmSchema = z.object({
  name: z.enum(ALARM_NAMES),
  severity: z.enum(ALARM_SEVERITIES),
  explanation: z.string(),
}) satisfies z.ZodType<Alarm>;

const holderUseSchema = z.object({
  name: z.string(),
  hosts: z.array(z.string()).readonly(),
  processCount: count,
  leaseCount: count,
  runCount: count,
  share: z.number().min(0).max(1),
  wastedRunCount: count,
  burntRunCount: count,
  lastLeaseAtMs: timeMs,
  isLive: z.boolean(),
}) satisfies z.ZodType<HolderUse>;

export const capacityAnswerSchema = z.object({
  namespace: z.string(),
  version,
  highWaterMark,
  runsUsed: count,
  runsLeft: count,
  usedShare: z.number().min(0).max(1),
  callNumbersLeft: count,
  roomRuns: count,
  lineRunsPerSecond: z.int().min(1),
  lineEndsAtMs: timeMs,
  rates,
  lookedAt: z.object({ leaseCount: count, fromMs: timeMs.nullable() }),
  holders: z.array(holderUseSchema).readonly(),
  alarms: z.array(alarmSchema).readonly(),
}) satisfies z.ZodType<CapacityAnswer>;

/** Query of the history route; numbers arrive as text. */
export const historyQuerySchema = z.strictObject({
  windowMs: z.coerce.number().pipe(z.literal(HISTORY_WINDOWS_MS)).default(HISTORY_WINDOWS_MS[0]),
});

export const historyAnswerSchema = z.object({
  namespace: z.string(),
  fromMs: timeMs,
  stepMs: z.int().min(1),
  runs: z.array(count).length(HISTORY_STEP_COUNT).readonly(),
}) satisfies z.ZodType<HistoryAnswer>;
