/** What is leased and asked of the ledger, as zod schemas with the types of the responses. `callNumberSchema` is for users. */
import * as z from "zod";
import {
  HOLDER_NAME_LENGTH_MAX,
  HOST_LENGTH_MAX,
  type Holder,
  LABEL_COUNT_MAX,
  LABEL_NAME_PATTERN,
  LABEL_VALUE_LENGTH_MAX,
  LEASE_RUN_COUNT_MAX,
  type Lease,
  type LeaseRequest,
  labelIn,
  NAMESPACE_PATTERN,
  NONCE_PATTERN,
  NUMBER_COUNT_MAX,
  type NumbersRequest,
  type NumbersResponse,
  PAGE_LIMIT_DEFAULT,
  PAGE_LIMIT_MAX,
  PID_MAX,
  PRINTABLE_PATTERN,
  PROOF_PATTERN,
  type Progress,
  type ReportRequest,
  type RunReport,
} from "./api.js";
import { type CallNumber, isCallNumber, NUMBER_MAX, RUN_MAX, SEQUENCE_MAX } from "./codec.js";
import {
  anyTimeMs,
  CURRENT_VERSION,
  describedObject,
  describedRequest,
  jsonKeywords,
  knownRunState,
  LAST_SEQUENCE,
  NAMESPACE,
  notedState,
  run,
  runState,
  SINCE_1970,
  STORE_ID_PATTERN,
  sequence,
  storeId,
  text,
  timeMs,
  version,
  whole,
  wholeText,
} from "./field-schemas.js";
import { LEDGER_ID_MAX, parseRunName, RUN_NAME_FORM } from "./runs.js";

/** A call number in a schema of a user: parses to the branded `CallNumber`, rejects every other text. */
export const callNumberSchema = z
  .string()
  .refine(isCallNumber, "not a call number: eight characters 0-9, A-Z, a-z, not above dxlGgaI3")
  .transform((text) => text as CallNumber);

/** A call number as a plain number, the compact form for a database. */
export const callNumberAsNumberSchema = z.int().min(0).max(NUMBER_MAX);

/** A run as people type it: `99`, `1/65556`. */
export const runNameSchema = z.string().transform((text, context) => {
  const named = parseRunName(text);
  if (named !== undefined) return named;
  context.addIssue(RUN_NAME_FORM);
  return z.NEVER;
});

/** Where a page of leases begins. */
export const cursorSchema = z
  .string()
  .refine((text) => parseRunName(text) !== undefined, "a cursor is what an earlier page gave as nextCursor");

/** A ledger id. */
export const ledgerIdSchema = whole("ledger id", 0, LEDGER_ID_MAX);

const runCount = whole("runs", 1, LEASE_RUN_COUNT_MAX);
const proof = z.string().regex(PROOF_PATTERN, "a lease proof has 43 characters A-Z, a-z, 0-9, dash, underscore");
/** Without its pattern in JSON Schema: Python, for one, has no `\p`. */
const printable = (lengthMax: number) => {
  const schema = z.string().min(1).max(lengthMax).regex(PRINTABLE_PATTERN, "holds an unprintable character");
  return schema.register(jsonKeywords, { pattern: undefined });
};

/** A namespace. */
export const namespaceSchema = z
  .string()
  .regex(
    NAMESPACE_PATTERN,
    "a namespace has 1 to 63 characters a-z, 0-9, dot, dash, underscore, and starts with a letter or digit",
  );

const labelName = z
  .string()
  .regex(LABEL_NAME_PATTERN, "a label's name has 1 to 32 characters a-z, 0-9, dot, dash, underscore");
const labelValue = printable(LABEL_VALUE_LENGTH_MAX);
const labels = z
  .record(labelName, labelValue)
  .refine((labels) => Object.keys(labels).length <= LABEL_COUNT_MAX, `at most ${LABEL_COUNT_MAX} labels`)
  .register(jsonKeywords, { maxProperties: LABEL_COUNT_MAX });

export const holderSchema = describedRequest("Holder", "The importer process that leases. Its texts are printable", {
  name: [printable(HOLDER_NAME_LENGTH_MAX), "The importer's name, for operators"],
  host: [printable(HOST_LENGTH_MAX), "Its host"],
  pid: [whole("process id", 0, PID_MAX), "Its process id"],
  labels: [labels, "Name: `[a-z][a-z0-9_.-]{0,31}`; value: 1 to 64 printable characters"],
}) satisfies z.ZodType<Holder>;

const nonce = z.string().regex(NONCE_PATTERN, "a nonce has 16 to 64 characters A-Z, a-z, 0-9, dash, underscore");

const reportFields = {
  nonce: [nonce, "The nonce of the lease"],
  lastSequence: [sequence.nullable(), "The last sequence used in the run; null if none"],
  state: [runState, "In use; used to sequence 16,383; no further number will be made"],
} as const;
const isFullIfExhausted = ({ state, lastSequence }: Pick<ReportRequest, "state" | "lastSequence">) =>
  state !== "exhausted" || lastSequence === SEQUENCE_MAX;
const NOT_FULL = { path: ["lastSequence"], message: `an exhausted run has lastSequence ${SEQUENCE_MAX}` };

export const reportRequestSchema = describedRequest(
  "ReportRequest",
  "How far a holder got in a lease",
  reportFields,
).refine(isFullIfExhausted, NOT_FULL) satisfies z.ZodType<ReportRequest>;

const runReportSchema = describedRequest("RunReport", "A report in a lease request", {
  ...reportFields,
  run: [ledgerIdSchema, "Ledger id of the run in use"],
}).refine(isFullIfExhausted, NOT_FULL) satisfies z.ZodType<RunReport>;

export const leaseRequestSchema = describedRequest("LeaseRequest", "The same request sent again is another lease", {
  runCount: [runCount, "Runs wanted; the lease may have fewer"],
  nonce: [nonce, "Random and new for each request; the response repeats it"],
  holder: [holderSchema, "The importer process that leases"],
  lastRun: [ledgerIdSchema.nullable(), "The last run that this holder leased"],
  proof: [proof.nullable(), "The `proof` of the lease of `lastRun`"],
  sentAtMs: [anyTimeMs, "The holder's clock at the request"],
  spareRunCount: [whole("runs", 0).optional(), "Leased runs that the client has buffered, for operators"],
  report: [runReportSchema.optional(), "Progress in an earlier lease, with `run`"],
}).refine(({ lastRun, proof }) => lastRun !== null || proof === null, {
  path: ["proof"],
  message: "a lease proof is about lastRun, which is missing",
}) satisfies z.ZodType<LeaseRequest>;

/** Query of the numbers route. */
export const numbersQuerySchema = describedRequest("NumbersQuery", "How many call numbers", {
  count: [wholeText("call numbers", 1, NUMBER_COUNT_MAX).default(1), "Call numbers to generate"],
});

const numbersHolderSchema = describedRequest(
  "NumbersHolder",
  "The program that gets the numbers. Its texts are printable",
  {
    name: [printable(HOLDER_NAME_LENGTH_MAX), "The program that gets the numbers"],
    host: [printable(HOST_LENGTH_MAX).optional(), "Its host"],
  },
);

const expectedStoreId = z.string().regex(STORE_ID_PATTERN, "a store id has 1 to 99 printable ASCII characters");

export const numbersRequestSchema = describedRequest(
  "NumbersRequest",
  "A request for call numbers: for which program they are",
  {
    holder: [numbersHolderSchema.optional(), "The program that gets the numbers"],
    expectedStoreId: [expectedStoreId.optional(), "Numbers of another store are rejected with this"],
  },
) satisfies z.ZodType<NumbersRequest>;

const callNumbers = z
  .array(z.string().refine(isCallNumber, "not a call number"))
  .min(1)
  .max(NUMBER_COUNT_MAX)
  .readonly();

export const numbersResponseSchema = describedObject("Numbers", "Call numbers made for one request", {
  namespace: [namespaceSchema, "The namespace of the request"],
  storeId: [storeId, "The store; pin it"],
  callNumbers: [callNumbers, "In the order they were made"],
}) satisfies z.ZodType<NumbersResponse>;

export const leaseSchema = describedObject("Lease", "Runs that belong to their holder permanently", {
  namespace: [namespaceSchema, "The namespace of the request"],
  storeId: [storeId, "The store; pin it"],
  version: [version, "Of all call numbers of these runs"],
  firstRun: [run, "The first run"],
  runCount: [runCount, "Consecutive runs from `firstRun`, one version"],
  leasedAtMs: [timeMs, "Time of the lease by the store's record"],
  nonce: [text, "The nonce of the request"],
  proof: [proof, "Send it with `lastRun` in the next lease request"],
}) satisfies z.ZodType<Lease>;

const progressSchema = describedObject("Progress", "The last report on a lease", {
  run: [run, "The runs of the lease before it are used up, those after it are unused"],
  lastSequence: [sequence.nullable(), "The last sequence used in the run; null if none"],
  state: [notedState, "As reported; `discarded`: never handed out; `skipped`: by a recovery, never leased"],
  reportedAtMs: [timeMs, "Time of the report by the store's record"],
}) satisfies z.ZodType<Progress>;

export const ledgerEntrySchema = describedObject("LedgerEntry", "One lease, or the runs that a recovery skipped", {
  version: [version, "Of all call numbers of these runs"],
  firstRun: [run, "The first run"],
  runCount: [whole("runs", 1, RUN_MAX), "Consecutive runs from `firstRun`"],
  leasedAtMs: [timeMs, "Time by the store's record; never before that of an earlier lease"],
  holder: [holderSchema, "Who requested it"],
  coordinator: [text, "The name of the coordinator that granted it"],
  tokenId: [text.optional(), "Of the token of the request: eight hex digits; absent without tokens"],
  nonce: [text, "Of the holder's request. With it, any client may report in the holder's name"],
  progress: [progressSchema.nullable(), "The last report of the holder; null if there is none"],
});
export type LedgerEntry = z.infer<typeof ledgerEntrySchema>;

export const runResponseSchema = describedObject("Run", "One run, as far as the coordinator knows it", {
  namespace: NAMESPACE,
  currentVersion: CURRENT_VERSION,
  version: [version, "The version of the run"],
  run: [run, "The run"],
  state: [knownRunState, "Of this run; `unreported`: leased, and not reported since"],
  lastSequence: LAST_SEQUENCE,
  lease: [ledgerEntrySchema, "The lease that holds the run"],
});
export type RunResponse = z.infer<typeof runResponseSchema>;

const labelText = z.string().refine((text) => {
  const [name, value] = labelIn(text);
  return labelName.safeParse(name).success && labelValue.safeParse(value).success;
}, "a label is asked for as name=value");
const labelTexts = z.preprocess(
  (given) => (typeof given === "string" ? [given] : given),
  z.array(labelText).max(LABEL_COUNT_MAX),
);
const timeText = wholeText(SINCE_1970, 0);

/** Filters of the leases in a ledger; a lease must pass all that are given. Numbers arrive as text. */
export const ledgerFilter = {
  holder: [printable(HOLDER_NAME_LENGTH_MAX).optional(), "The name of the holder"],
  host: [printable(HOST_LENGTH_MAX).optional(), "The host of the holder"],
  label: [labelTexts.optional(), "`name=value`, once or several times"],
  state: [knownRunState.optional(), "Of the lease as a whole"],
  leasedFromMs: [timeText.optional(), "Leased at this time or later"],
  leasedToMs: [timeText.optional(), "Leased before this time"],
  fromRun: [runNameSchema.optional(), "Leases that hold this run or a later one, such as `99` or `1/65556`"],
  toRun: [runNameSchema.optional(), "Leases that hold this run or an earlier one"],
} as const;

/** Query of the runs route. */
export const runsQuerySchema = describedRequest("RunsQuery", "Which leases", {
  ...ledgerFilter,
  cursor: [cursorSchema.optional(), "The `nextCursor` of the page before"],
  limit: [wholeText("leases", 1, PAGE_LIMIT_MAX).default(PAGE_LIMIT_DEFAULT), "The most leases of the page"],
});

export const trimmedSchema = describedObject("TrimmedLeases", "Leases that are in the files of `--ledger-dir`", {
  upToVersion: [version, "The version of `upToRun`"],
  upToRun: [run, "The run up to which the store holds no lease any more"],
  lastLeasedAtMs: [timeMs, "Time of the last of these leases"],
});
export type TrimmedLeases = z.infer<typeof trimmedSchema>;

export const runsResponseSchema = describedObject("Runs", "A page of the ledger", {
  namespace: NAMESPACE,
  currentVersion: CURRENT_VERSION,
  leases: [z.array(ledgerEntrySchema).readonly(), "Newest first. May be few, even none, although more follow"],
  nextCursor: [text.nullable(), "The `cursor` of the next page; null at the end"],
  trimmed: [trimmedSchema.nullable(), "At the end, what was trimmed of the requested leases; null if nothing was"],
});
export type RunsResponse = z.infer<typeof runsResponseSchema>;
