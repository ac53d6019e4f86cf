/**
 * The HTTP API as zod schemas, with the types of its responses: the coordinator derives its OpenAPI description from them, and commands
 * check responses with them. Needs zod, an optional peer dependency.
 */
import * as z from "zod";
import {
  ALARM_NAMES,
  ALARM_SEVERITIES,
  ERROR_RULES,
  type ErrorCode,
  type ErrorResponse,
  HISTORY_STEP_COUNT,
  HISTORY_WINDOWS_MS,
  RECOVERY_REASONS,
  SETTING_ORIGINS,
} from "./api.js";
import { leaseSchema, ledgerFilterShape } from "./lease-schemas.js";

export * from "./lease-schemas.js";

const { version, firstRun: run, leasedAtMs: timeMs } = leaseSchema.shape;
const errorCode = z.enum(Object.keys(ERROR_RULES) as [ErrorCode, ...ErrorCode[]]);
const recoveryReason = z.enum(RECOVERY_REASONS);
const recoverySchema = z.object({
  atMs: timeMs,
  /** Why the store may have rolled back. */
  reason: recoveryReason,
  /** Runs that are never leased because of it. */
  skippedRunCount: z.int().min(0),
  /** Cause and skipped runs in one line: for people. */
  explanation: z.string(),
});
export type LastRecovery = z.infer<typeof recoverySchema>;

/** Whether a namespace leases; if it does not, why and what to do. */
export const guardStatusSchema = z.object({
  /** `active`: it leases · `recovering`: automatic recovery is in progress · `stopped`: not until an operator has followed `explanation`. */
  state: z.enum(["active", "recovering", "stopped"]),
  /** The code that leases fail with; null when active. */
  code: errorCode.nullable(),
  /** Of `store_recovering`; null with every other code. */
  reason: recoveryReason.nullable(),
  sinceMs: timeMs,
  /** Why, what it waits for, or which command to run: for people. */
  explanation: z.string(),
  /** Rises with each recovery of this store, by one or more: it orders recoveries, and does not count them. */
  generation: z.int().min(0),
  /** How many runs may be leased right now before the run ceiling is reached. */
  headroomRuns: z.int().min(0),
  /** Data nodes that could be promoted, each of which may hold an older state: as the store records them. */
  nodeCount: z.int().min(1),
  /** The last recovery by the coordinator that responds; null when it has done none since its start. */
  lastRecovery: recoverySchema.nullable(),
});
export type GuardStatus = z.infer<typeof guardStatusSchema>;

const useRateSchema = z.object({
  /** The time that was measured, up to now: an hour, a day, a week; less than an hour while there is no more to measure. */
  windowMs: z.int().min(1),
  runs: z.int().min(0),
  runsPerDay: z.number().min(0),
  /** When the namespace would end at this rate; null when nothing was leased, too little was measured, or the end is beyond any calendar. */
  exhaustedAtMs: timeMs.nullable(),
});
export type UseRate = z.infer<typeof useRateSchema>;

/** The state of a namespace. */
export const statusResponseSchema = z.object({
  namespace: z.string(),
  storeId: z.string(),
  store: z.string(),
  coordinator: z.string(),
  version,
  firstRun: run,
  /** The greatest run ever leased or skipped; `firstRun - 1` when none was. */
  highWaterMark: run,
  /** Leased, or skipped by a recovery: none of them is ever leased again. */
  runsUsed: z.int().min(0),
  runsLeft: z.int().min(0),
  callNumbersLeft: z.int().min(0),
  lastLeaseAtMs: timeMs.nullable(),
  guard: guardStatusSchema,
  rates: z.array(useRateSchema).readonly(),
});
export type StatusResponse = z.infer<typeof statusResponseSchema>;

/** The body of every error. */
export const errorResponseSchema = z.object({
  code: z.string(),
  reason: z.string().optional(),
  message: z.string(),
  retryAfterMs: z.int().min(0).optional(),
}) satisfies z.ZodType<ErrorResponse>;

const count = z.int().min(0);
const { state, code, reason, sinceMs, explanation, headroomRuns } = guardStatusSchema.shape;
const { storeId, firstRun, highWaterMark, runsUsed, runsLeft, callNumbersLeft, rates } = statusResponseSchema.shape;
/** By how many runs a second the run ceiling rises. */
const ceilingRunsPerSecond = z.int().min(1);

/** One namespace in the list of all: enough to see which one needs an operator. */
export const namespaceDescriptionSchema = z.object({
  namespace: z.string(),
  /** Null when its record can't be read: `guard` has the reason. */
  record: z.object({ storeId, version, firstRun, highWaterMark, runsUsed, runsLeft, ceilingRunsPerSecond }).nullable(),
  guard: z.object({ state, code, reason, sinceMs, explanation }),
});
export type NamespaceDescription = z.infer<typeof namespaceDescriptionSchema>;

/** The namespaces of the store. */
export const namespacesResponseSchema = z.object({
  store: z.string(),
  coordinator: z.string(),
  release: z.string(),
  /** By name. */
  namespaces: z.array(namespaceDescriptionSchema).readonly(),
});
export type NamespacesResponse = z.infer<typeof namespacesResponseSchema>;

/** What an archive's page for missing messages may know about a call number. */
export const publicCallNumberResponseSchema = z.object({
  callNumber: z.string(),
  /** False only when no message can have it. */
  canExist: z.boolean(),
});

/** Something that an operator should do before it causes an outage. */
const alarmSchema = z.object({
  name: z.enum(ALARM_NAMES),
  severity: z.enum(ALARM_SEVERITIES),
  /** The state with its figures, and what to do: for people. */
  explanation: z.string(),
});
export type Alarm = z.infer<typeof alarmSchema>;

/** What one holder leased, over the newest leases. Processes of one name count together. */
const holderUseSchema = z.object({
  name: z.string(),
  leaseCount: count,
  runCount: count,
  /** 0 to 1: of all runs in these leases. */
  share: z.number().min(0).max(1),
  lastLeaseAtMs: timeMs,
  /** Leased or reported within the last ten minutes, and has not closed its leases since. */
  isLive: z.boolean(),
});
export type HolderUse = z.infer<typeof holderUseSchema>;

/** Who uses the runs of a namespace, and for how long they suffice. */
export const capacityResponseSchema = z.object({
  namespace: z.string(),
  version,
  highWaterMark,
  runsUsed,
  runsLeft,
  /** 0 to 1. */
  usedShare: z.number().min(0).max(1),
  callNumbersLeft,
  headroomRuns,
  ceilingRunsPerSecond,
  /** When the run ceiling reaches the end of the namespace: nothing can use it up before. */
  ceilingEndsAtMs: timeMs,
  rates,
  /** The leases that `holders` is computed from: the newest, at most 10,000 and at most a week. */
  lookedAt: z.object({ leaseCount: count, fromMs: timeMs.nullable() }),
  /** Those with the most runs first. */
  holders: z.array(holderUseSchema).readonly(),
  alarms: z.array(alarmSchema).readonly(),
});
export type CapacityResponse = z.infer<typeof capacityResponseSchema>;

/** Query of the history route; numbers arrive as text. */
export const historyQuerySchema = z.strictObject({
  windowMs: z.coerce.number().pipe(z.literal(HISTORY_WINDOWS_MS)).default(HISTORY_WINDOWS_MS[0]),
});

/** Runs leased over time, counted by lease for the newest 10,000 leases; before those, skipped runs count too. */
export const historyResponseSchema = z.object({
  namespace: z.string(),
  fromMs: timeMs,
  stepMs: z.int().min(1),
  /** `runs[i]` between `fromMs + i · stepMs` and `fromMs + (i + 1) · stepMs`; the last step is not over yet. */
  runs: z.array(count).length(HISTORY_STEP_COUNT).readonly(),
});
export type HistoryResponse = z.infer<typeof historyResponseSchema>;

/** Query of the export route. */
export const exportQuerySchema = z.strictObject(ledgerFilterShape);

/** The last line of an export: without it the export is incomplete. */
export const exportEndSchema = z.strictObject({
  end: z.literal(true),
  leaseCount: count,
  /** The run up to which the ledger was read; null when it was empty. Go on with `fromRun` above it. */
  upToVersion: version.nullable(),
  upToRun: highWaterMark.nullable(),
});
export type ExportEnd = z.infer<typeof exportEndSchema>;

/** One option of `serve`, as it is in effect. */
const settingSchema = z.object({
  /** As on the command line, without its dashes. */
  name: z.string(),
  /** As text, without secrets; null when it is not set. */
  value: z.string().nullable(),
  from: z.enum(SETTING_ORIGINS),
});
export type Setting = z.infer<typeof settingSchema>;

const commandContextSchema = z.object({ storeOption: z.string(), checkpointOption: z.string() });

/** A property of the servers of a store that stops leasing, or is unwise. */
const findingSchema = z.object({
  /** The code that leases fail with; undefined for a warning. */
  code: code.unwrap().optional(),
  /** The same text as long as it is the same finding. */
  what: z.string(),
  /** The line of configuration that fixes it, or the command to run. */
  remedy: z.string(),
  /** The name by which an operator accepts it; undefined where the store steps refuse in any case. */
  override: z.string().optional(),
  /** The namespaces that it concerns; undefined for all. */
  namespaces: z.array(z.string()).readonly().optional(),
});
export type Finding = z.infer<typeof findingSchema>;

/** How a coordinator was started, without secrets: the store by its place and user. */
export const settingsResponseSchema = z.object({
  release: z.string(),
  store: z.string(),
  startedAtMs: timeMs,
  settings: z.array(settingSchema).readonly(),
  /** What its commands are filled in with. */
  commands: commandContextSchema,
  /** When the TLS certificate in use expires; null for plain HTTP. */
  certificateEndsAtMs: timeMs.nullable(),
  /** About the store's servers, as far as the coordinator's user may read them. */
  findings: z.array(findingSchema).readonly(),
});
export type SettingsResponse = z.infer<typeof settingsResponseSchema>;
