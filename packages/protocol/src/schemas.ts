/**
 * The wire as zod schemas: what the coordinator checks requests against and describes itself by in OpenAPI,
 * and `callNumberSchema` for users' own schemas. Needs zod, an optional peer dependency.
 */
import { z } from "zod";
import {
  type CallNumber,
  isCallNumber,
  NUMBER_MAX,
  RUN_COUNT,
  RUN_MAX,
  SEQUENCE_MAX,
  VERSION_COUNT,
  VERSION_MAX,
} from "./codec.js";
import type {
  CallNumberFields,
  CallNumberHint,
  ErrorAnswer,
  ErrorCode,
  GuardAnswer,
  Holder,
  InspectAnswer,
  Lease,
  LeaseNeighbours,
  LeaseRequest,
  LedgerEntry,
  Progress,
  ReportRequest,
  RunAnswer,
  RunsAnswer,
  StatusAnswer,
  TrimmedLeases,
} from "./wire.js";
import {
  ERROR_RULES,
  HOLDER_NAME_LENGTH_MAX,
  HOST_LENGTH_MAX,
  INSTANT_MAX_MS,
  LABEL_COUNT_MAX,
  LABEL_NAME_PATTERN,
  LABEL_VALUE_LENGTH_MAX,
  LEASE_RUN_COUNT_MAX,
  labelIn,
  NAMESPACE_PATTERN,
  NONCE_PATTERN,
  PAGE_LIMIT_DEFAULT,
  PAGE_LIMIT_MAX,
  PID_MAX,
  PRINTABLE_PATTERN,
  RECEIPT_PATTERN,
} from "./wire.js";

/** A call number in a user's own schema: parses to the branded `CallNumber`, refuses every other spelling. */
export const callNumberSchema = z
  .string()
  .refine(isCallNumber, "not a call number: eight characters 0-9, A-Z, a-z, not above dxlGgaI3")
  .transform((text) => text as CallNumber);

/** The same as a number, for those who store the compact form. */
export const callNumberAsNumberSchema = z.int().min(0).max(NUMBER_MAX);

const version = z.int().min(0).max(VERSION_MAX);
const run = z.int().min(0).max(RUN_MAX);
const sequence = z.int().min(0).max(SEQUENCE_MAX);
/** As somebody else's clock, or a question, has it. */
const anyTimeMs = z.int().min(0);
/** Of an answer: whoever reads it makes a date of it. */
const timeMs = anyTimeMs.max(INSTANT_MAX_MS);
const runCount = z.int().min(1).max(LEASE_RUN_COUNT_MAX);
const receipt = z.string().regex(RECEIPT_PATTERN, "a receipt has 43 characters A-Z, a-z, 0-9, dash, underscore");
const printable = (lengthMax: number) =>
  z.string().min(1).max(lengthMax).regex(PRINTABLE_PATTERN, "holds an unprintable character");

export const namespaceSchema = z
  .string()
  .regex(
    NAMESPACE_PATTERN,
    "a namespace has 1 to 63 characters a-z, 0-9, dot, dash, underscore, and starts with a letter or digit",
  );

export const ledgerIdSchema = z
  .int()
  .min(0)
  .max(VERSION_COUNT * RUN_COUNT - 1);

const labelName = z
  .string()
  .regex(LABEL_NAME_PATTERN, "a label's name has 1 to 32 characters a-z, 0-9, dot, dash, underscore");
const labelValue = printable(LABEL_VALUE_LENGTH_MAX);

/** Of a holder or of a namespace. */
export const labelsSchema = z
  .record(labelName, labelValue)
  .refine((labels) => Object.keys(labels).length <= LABEL_COUNT_MAX, `at most ${LABEL_COUNT_MAX} labels`);

export const holderSchema = z.strictObject({
  name: printable(HOLDER_NAME_LENGTH_MAX),
  host: printable(HOST_LENGTH_MAX),
  pid: z.int().min(0).max(PID_MAX),
  labels: labelsSchema,
}) satisfies z.ZodType<Holder>;

export const leaseRequestSchema = z.strictObject({
  runCount,
  nonce: z.string().regex(NONCE_PATTERN, "a nonce has 16 to 64 characters A-Z, a-z, 0-9, dash, underscore"),
  holder: holderSchema,
  lastRun: ledgerIdSchema.nullable(),
  receipt: receipt.nullable(),
  sentAtMs: anyTimeMs,
  spareRunCount: z.int().min(0).optional(),
}) satisfies z.ZodType<LeaseRequest>;

const runState = z.enum(["open", "exhausted", "closed"]);
const notedState = z.enum([...runState.options, "burnt"]);
const knownRunState = z.enum([...notedState.options, "unreported"]);

export const reportRequestSchema = z
  .strictObject({
    nonce: leaseRequestSchema.shape.nonce,
    lastSequence: sequence.nullable(),
    state: runState,
  })
  .refine((report) => report.state !== "exhausted" || report.lastSequence === SEQUENCE_MAX, {
    path: ["lastSequence"],
    message: `an exhausted run has lastSequence ${SEQUENCE_MAX}`,
  }) satisfies z.ZodType<ReportRequest>;

export const leaseSchema = z.object({
  namespace: namespaceSchema,
  storeId: z.string(),
  version,
  firstRun: run,
  runCount,
  leasedAtMs: timeMs,
  nonce: z.string(),
  receipt,
}) satisfies z.ZodType<Lease>;

const progressSchema = z.object({
  run,
  lastSequence: sequence.nullable(),
  state: notedState,
  reportedAtMs: timeMs,
}) satisfies z.ZodType<Progress>;

export const ledgerEntrySchema = z.object({
  version,
  firstRun: run,
  runCount,
  leasedAtMs: timeMs,
  holder: holderSchema,
  coordinator: z.string(),
  tokenId: z.string().optional(),
  nonce: z.string(),
  progress: progressSchema.nullable(),
}) satisfies z.ZodType<LedgerEntry>;

export const runAnswerSchema = z.object({
  namespace: z.string(),
  version,
  run,
  state: knownRunState,
  lastSequence: sequence.nullable(),
  lease: ledgerEntrySchema,
}) satisfies z.ZodType<RunAnswer>;

const labelText = z.string().refine((text) => {
  const [name, value] = labelIn(text);
  return labelName.safeParse(name).success && labelValue.safeParse(value).success;
}, "a label is asked for as name=value");
const ledgerIdText = z.coerce.number().pipe(ledgerIdSchema);
const timeText = z.coerce.number().pipe(anyTimeMs);

/** Which leases of a ledger are asked for; a lease must pass all that are given. Numbers arrive as text. */
export const ledgerFilterShape = {
  holder: printable(HOLDER_NAME_LENGTH_MAX).optional(),
  host: printable(HOST_LENGTH_MAX).optional(),
  /** `name=value`, once or several times. */
  label: z
    .preprocess((given) => (typeof given === "string" ? [given] : given), z.array(labelText).max(LABEL_COUNT_MAX))
    .optional(),
  /** What the ledger says of the lease as a whole. */
  state: knownRunState.optional(),
  leasedFromMs: timeText.optional(),
  leasedToMs: timeText.optional(),
  fromRun: ledgerIdText.optional(),
  toRun: ledgerIdText.optional(),
};

/** Query of the runs route. */
export const runsQuerySchema = z.strictObject({
  ...ledgerFilterShape,
  cursor: z
    .string()
    .regex(/^\d{1,10}$/, "a cursor is what an earlier page gave as nextCursor")
    .optional(),
  limit: z.coerce.number().pipe(z.int().min(1).max(PAGE_LIMIT_MAX)).default(PAGE_LIMIT_DEFAULT),
});

const trimmedSchema = z.object({ upToRun: ledgerIdSchema, lastLeasedAtMs: timeMs }) satisfies z.ZodType<TrimmedLeases>;

export const runsAnswerSchema = z.object({
  namespace: z.string(),
  leases: z.array(ledgerEntrySchema).readonly(),
  nextCursor: z.string().nullable(),
  trimmed: trimmedSchema.nullable(),
}) satisfies z.ZodType<RunsAnswer>;

const callNumberFields = { version, run, sequence } satisfies Record<keyof CallNumberFields, z.ZodType>;
/** Query of the call number route. */
export const inspectQuerySchema = z.strictObject({
  /** Whether to search for the leases of the same process before and after, which reads up to 2,000 entries of the ledger. */
  neighbours: z.enum(["yes", "no"]).default("no"),
});

const hints = z
  .array(
    z.object({
      callNumber: z.string(),
      slip: z.enum(["surrounding", "look_alike", "case"]),
      positions: z.array(z.int().min(0)).readonly(),
      holder: z.string(),
      verdict: z.enum(["reported", "unreported"]),
    }) satisfies z.ZodType<CallNumberHint>,
  )
  .readonly();

const neighboursSchema = z.object({
  previous: ledgerEntrySchema.nullable(),
  next: ledgerEntrySchema.nullable(),
  explanation: z.string(),
}) satisfies z.ZodType<LeaseNeighbours>;

const inspected = { namespace: z.string(), callNumber: z.string(), explanation: z.string() };

export const inspectAnswerSchema = z.discriminatedUnion("verdict", [
  z.object({
    ...inspected,
    verdict: z.literal("malformed"),
    problem: z.enum(["wrong_length", "wrong_character", "beyond_greatest"]),
    position: z.int().min(0).nullable(),
    hints,
  }),
  z.object({ ...inspected, verdict: z.literal("other_version"), ...callNumberFields, hints }),
  z.object({
    ...inspected,
    verdict: z.literal("never_leased"),
    reason: z.enum(["above_mark", "below_first_run", "skipped"]),
    hints,
    ...callNumberFields,
  }),
  z.object({ ...inspected, verdict: z.literal("trimmed"), ...callNumberFields, trimmed: trimmedSchema }),
  z.object({
    ...inspected,
    verdict: z.enum(["reported", "unreported"]),
    ...callNumberFields,
    state: knownRunState,
    lastSequence: sequence.nullable(),
    lease: ledgerEntrySchema,
    neighbours: neighboursSchema.nullable(),
  }),
]) satisfies z.ZodType<InspectAnswer>;

const errorCode = z.enum(Object.keys(ERROR_RULES) as [ErrorCode, ...ErrorCode[]]);

export const guardAnswerSchema = z.object({
  state: z.enum(["open", "in_doubt", "fenced"]),
  code: errorCode.nullable(),
  sinceMs: timeMs,
  explanation: z.string(),
  generation: z.int().min(0),
  roomRuns: z.int().min(0),
  nodeCount: z.int().min(1),
  lastRecovery: z
    .object({ atMs: timeMs, code: errorCode, skippedRunCount: z.int().min(0), explanation: z.string() })
    .nullable(),
}) satisfies z.ZodType<GuardAnswer>;

export const statusAnswerSchema = z.object({
  namespace: z.string(),
  storeId: z.string(),
  store: z.string(),
  coordinator: z.string(),
  version,
  firstRun: run,
  highWaterMark: run,
  runsUsed: z.int().min(0),
  runsLeft: z.int().min(0),
  callNumbersLeft: z.int().min(0),
  lastLeaseAtMs: timeMs.nullable(),
  guard: guardAnswerSchema,
  rates: z
    .array(
      z.object({
        windowMs: z.int().min(1),
        runs: z.int().min(0),
        runsPerDay: z.number().min(0),
        exhaustedAtMs: timeMs.nullable(),
      }),
    )
    .readonly(),
}) satisfies z.ZodType<StatusAnswer>;

export const errorAnswerSchema = z.object({
  code: z.string(),
  message: z.string(),
  retryAfterMs: z.int().min(0).optional(),
}) satisfies z.ZodType<ErrorAnswer>;
