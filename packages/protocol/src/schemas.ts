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
  type OperatorEvent,
  RECOVERY_REASONS,
  SETTING_ORIGINS,
} from "./api.js";
import {
  CURRENT_VERSION,
  describedObject,
  describedRequest,
  jsonKeywords,
  NAMESPACE,
  run,
  runs,
  storeId,
  text,
  timeMs,
  version,
  whole,
} from "./field-schemas.js";
import { ledgerFilter } from "./lease-schemas.js";

export { faultOf, faultsOf, SCHEMA_WORDS, SECRET_SCHEMA_WORDS } from "./faults-of-schemas.js";
export { describedObject, describedObjects, describedRequest, jsonKeywords } from "./field-schemas.js";
export * from "./inspect-schemas.js";
export * from "./lease-schemas.js";

const errorCode = z.enum(Object.keys(ERROR_RULES) as [ErrorCode, ...ErrorCode[]]);
const recoveryReason = z.enum(RECOVERY_REASONS);
const leases = whole("leases", 0);
const durationMs = whole("milliseconds", 1);
const share = z.number().min(0).max(1).register(jsonKeywords, { "x-unit": "share of 1" });

const recoverySchema = describedObject("Recovery", "A recovery of a namespace", {
  atMs: [timeMs, "Time of the recovery"],
  reason: [recoveryReason, "Why the store may have rolled back"],
  skippedRunCount: [runs, "Runs that are never leased because of it"],
  explanation: [text, "Cause and skipped runs in one line: for people"],
});
export type LastRecovery = z.infer<typeof recoverySchema>;

const guardFields = {
  state: [
    z.enum(["active", "recovering", "stopped"]),
    "It leases; automatic recovery is in progress; it leases when an operator has followed `explanation`",
  ],
  code: [errorCode.nullable(), "The code that leases fail with; null when active"],
  reason: [recoveryReason.nullable(), "Of `store_recovering`; null with every other code"],
  sinceMs: [timeMs, "Since when it has this state"],
  explanation: [text, "Why, what it waits for, or which command to run: for people"],
} as const;
const headroomRuns = [runs, "How many may be leased right now before the run ceiling is reached"] as const;

export const guardStatusSchema = describedObject("Guard", "Whether a namespace leases; if not, why and what to do", {
  ...guardFields,
  generation: [whole("generation", 0), "Rises with each recovery of this store, by one or more: it orders, not counts"],
  headroomRuns,
  nodeCount: [whole("nodes", 1), "Data nodes that could be promoted, as the store records them"],
  lastRecovery: [recoverySchema.nullable(), "By the coordinator that responds; null if none since its start"],
});
export type GuardStatus = z.infer<typeof guardStatusSchema>;

const useRateSchema = describedObject("UseRate", "How fast runs were leased in a window", {
  windowMs: [durationMs, "An hour, a day or a week up to now; less than an hour while there is no more to measure"],
  runs: [runs, "Leased in the window"],
  runsPerDay: [z.number().min(0).register(jsonKeywords, { "x-unit": "runs per day" }), "At the same rate"],
  exhaustedAtMs: [
    timeMs.nullable(),
    "When the namespace would end at this rate; null if nothing was leased, or too little was measured",
  ],
});
export type UseRate = z.infer<typeof useRateSchema>;

const use = {
  highWaterMark: [run, "The greatest run ever leased or skipped; `firstRun - 1` when none was"],
  runsUsed: [runs, "Leased, or skipped by a recovery: none of them is ever leased again"],
  runsLeft: [runs, "Not leased or skipped yet"],
} as const;
const ofStore = { storeId: [storeId, "The store"] } as const;
const firstRun = [run, "The first run of the namespace in this store"] as const;
const callNumbersLeft = [whole("call numbers", 0), "Of the runs that are left"] as const;
const rates = [
  z.array(useRateSchema).readonly(),
  "Over an hour, a day and a week, as far as they were measured",
] as const;
const storeKind = [text, "The kind of store"] as const;
const coordinator = [text, "The name of the coordinator that responds"] as const;
const release = [text, "The release of the coordinator that responds"] as const;

export const statusResponseSchema = describedObject("Status", "The state of a namespace", {
  namespace: NAMESPACE,
  ...ofStore,
  store: storeKind,
  coordinator,
  version: CURRENT_VERSION,
  firstRun,
  ...use,
  callNumbersLeft,
  lastLeaseAtMs: [timeMs.nullable(), "Time of the last lease; null before the first"],
  guard: [guardStatusSchema, "Whether it leases, and why not"],
  rates,
});
export type StatusResponse = z.infer<typeof statusResponseSchema>;

export const errorResponseSchema = describedObject("Error", "The body of every error", {
  code: [z.string().register(jsonKeywords, { enum: errorCode.options }), "Stable: programs decide by it"],
  reason: [z.string().register(jsonKeywords, { enum: RECOVERY_REASONS }).optional(), "Of `store_recovering`"],
  message: [text, "What failed, why, and what to do: for people. It may change"],
  retryAfterMs: [
    whole("milliseconds", 0).optional(),
    "How long to wait at least before the same request is sent again",
  ],
}) satisfies z.ZodType<ErrorResponse>;

const ceilingRunsPerSecond = [whole("runs per second", 1), "By how much the run ceiling rises"] as const;
const recordSchema = describedObject("NamespaceRecord", "What the store records of a namespace", {
  ...ofStore,
  version: CURRENT_VERSION,
  firstRun,
  ...use,
  ceilingRunsPerSecond,
});
const guardStateSchema = describedObject("GuardState", "Whether a namespace leases, and why not", guardFields);

/** One namespace in the list of all: enough to see which one needs an operator. */
export const namespaceDescriptionSchema = describedObject("Namespace", "One namespace in the list of all", {
  namespace: [text, "Its name"],
  record: [recordSchema.nullable(), "Null when it can't be read: `guard` has the reason"],
  guard: [guardStateSchema, "Whether it leases, and why not"],
});
export type NamespaceDescription = z.infer<typeof namespaceDescriptionSchema>;

export const namespacesResponseSchema = describedObject("Namespaces", "The namespaces of the store", {
  store: storeKind,
  coordinator,
  release,
  namespaces: [z.array(namespaceDescriptionSchema).readonly(), "Those of the token, by name"],
});
export type NamespacesResponse = z.infer<typeof namespacesResponseSchema>;

export const publicCallNumberResponseSchema = describedObject(
  "PublicNumber",
  "What every client may know of a number",
  {
    callNumber: [text, "The text of the request"],
    canExist: [z.boolean(), "False only when no message can have it"],
  },
);

const alarmSchema = describedObject("Alarm", "Something that an operator should do before it causes an outage", {
  name: [z.enum(ALARM_NAMES), "Which alarm"],
  severity: [z.enum(ALARM_SEVERITIES), "A notice is for a reader of the console; the others should reach an operator"],
  explanation: [text, "The state with its figures, and what to do: for people"],
});
export type Alarm = z.infer<typeof alarmSchema>;

const holderUseSchema = describedObject("HolderUse", "What one holder leased: processes of one name count together", {
  name: [text, "The name of the holder"],
  leaseCount: [leases, "In the leases looked at"],
  runCount: [runs, "In these leases"],
  share: [share, "Of all runs in the leases looked at"],
  lastLeaseAtMs: [timeMs, "Time of its last lease"],
  isLive: [z.boolean(), "Leased or reported within the last ten minutes, and has not closed its leases since"],
});
export type HolderUse = z.infer<typeof holderUseSchema>;

const lookedAtSchema = describedObject("LeasesLookedAt", "The newest leases: at most 10,000, at most a week", {
  leaseCount: [leases, "How many they are"],
  fromMs: [timeMs.nullable(), "Time of the first; null if there is none"],
});

export const capacityResponseSchema = describedObject("Capacity", "Who uses the runs, and for how long they suffice", {
  namespace: NAMESPACE,
  version: CURRENT_VERSION,
  ...use,
  usedShare: [share, "`runsUsed`, of all runs of the version"],
  callNumbersLeft,
  headroomRuns,
  ceilingRunsPerSecond,
  ceilingEndsAtMs: [timeMs, "When the run ceiling reaches the last run: nothing can use up the version before"],
  rates,
  lookedAt: [lookedAtSchema, "What `holders` is computed from"],
  holders: [z.array(holderUseSchema).readonly(), "Those with the most runs first"],
  alarms: [z.array(alarmSchema).readonly(), "What an operator should do"],
});
export type CapacityResponse = z.infer<typeof capacityResponseSchema>;

const windowText = z.coerce.number().pipe(z.literal(HISTORY_WINDOWS_MS));

/** Query of the history route; numbers arrive as text. */
export const historyQuerySchema = describedRequest("HistoryQuery", "Which history", {
  windowMs: [
    windowText
      .register(jsonKeywords, { enum: HISTORY_WINDOWS_MS, "x-unit": "milliseconds" })
      .default(HISTORY_WINDOWS_MS[0]),
    "An hour, a day or a week, up to now",
  ],
});

const runsOfSteps = z.array(runs).length(HISTORY_STEP_COUNT).readonly();

/** Runs leased over time, counted by lease for the newest 10,000 leases; before those, skipped runs count too. */
export const historyResponseSchema = describedObject("History", "Runs leased over time", {
  namespace: NAMESPACE,
  fromMs: [timeMs, "When the first step begins"],
  stepMs: [durationMs, "How long a step is; the last is not over yet"],
  runs: [runsOfSteps, "By step. Before the newest 10,000 leases, skipped runs count too"],
});
export type HistoryResponse = z.infer<typeof historyResponseSchema>;

/** Query of the export route. */
export const exportQuerySchema = describedRequest("ExportQuery", "Which leases", ledgerFilter);

export const exportEndSchema = describedRequest("ExportEnd", "The last line: without it the export is incomplete", {
  end: [z.literal(true), "Marks the last line"],
  leaseCount: [leases, "In the lines before"],
  upToVersion: [version.nullable(), "The version of `upToRun`"],
  upToRun: [run.nullable(), "Up to where the ledger was read; null if it was empty. Go on with `fromRun` above it"],
});
export type ExportEnd = z.infer<typeof exportEndSchema>;

const settingSchema = describedObject("Setting", "One option of `serve`, as it is in effect", {
  name: [text, "As on the command line, without its dashes"],
  value: [text.nullable(), "As text, without secrets; null if it is not set"],
  from: [z.enum(SETTING_ORIGINS), "Where the value is from"],
});
export type Setting = z.infer<typeof settingSchema>;

const commandContextSchema = describedObject("CommandContext", "What commands in messages are filled in with", {
  storeOption: [text, "The option that names the store, without a password"],
  checkpointOption: [text, "The option that names the checkpoint directory; empty for the default"],
});

const findingSchema = describedObject("Finding", "A property of the store's servers that stops leasing, or is unwise", {
  code: [errorCode.optional(), "The code that leases fail with; absent for a warning"],
  what: [text, "The same text as long as it is the same finding"],
  remedy: [text, "The line of configuration that fixes it, or the command to run"],
  override: [text.optional(), "The name by which an operator accepts it; absent where the store steps reject anyway"],
  namespaces: [z.array(text).readonly().optional(), "The namespaces that it concerns; absent for all"],
});
export type Finding = z.infer<typeof findingSchema>;

export const settingsResponseSchema = describedObject("Settings", "How a coordinator was started, without secrets", {
  release,
  store: [text, "The store by its place and user"],
  startedAtMs: [timeMs, "Time of its start"],
  settings: [z.array(settingSchema).readonly(), "The options of `serve`"],
  commands: [commandContextSchema, "What its commands are filled in with"],
  certificateEndsAtMs: [timeMs.nullable(), "When the TLS certificate in use expires; null for plain HTTP"],
  findings: [z.array(findingSchema).readonly(), "About the store's servers, as far as its user may read them"],
});
export type SettingsResponse = z.infer<typeof settingsResponseSchema>;

export const operatorEventSchema = describedObject("OperatorEvent", "One event: name and fields are as in the log", {
  id: [whole("event", 1), "Rises by one with each event of this coordinator process"],
  atMs: [timeMs, "Time of the event"],
  level: [z.enum(["debug", "info", "warn", "error"]), "As in the log"],
  event: [text, "Its name, such as `lease` or `request_rejected`"],
  namespace: [text.nullable(), "Null when it concerns all"],
  code: [errorCode.nullable(), "The code of an error; null if it is none"],
  fields: [z.record(z.string(), z.unknown()), "Its further fields"],
}) satisfies z.ZodType<OperatorEvent>;
