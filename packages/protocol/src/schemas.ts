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
  ErrorAnswer,
  ErrorCode,
  GuardAnswer,
  Holder,
  InspectAnswer,
  Lease,
  LeaseRequest,
  LedgerEntry,
  Progress,
  ReportRequest,
  RunAnswer,
  RunsAnswer,
  StatusAnswer,
} from "./wire.js";
import {
  ERROR_RULES,
  HOLDER_NAME_LENGTH_MAX,
  HOST_LENGTH_MAX,
  LABEL_COUNT_MAX,
  LABEL_NAME_PATTERN,
  LABEL_VALUE_LENGTH_MAX,
  LEASE_RUN_COUNT_MAX,
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
const timeMs = z.int().min(0);
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

export const holderSchema = z.strictObject({
  name: printable(HOLDER_NAME_LENGTH_MAX),
  host: printable(HOST_LENGTH_MAX),
  pid: z.int().min(0).max(PID_MAX),
  labels: z
    .record(
      z.string().regex(LABEL_NAME_PATTERN, "a label's name has 1 to 32 characters a-z, 0-9, dot, dash, underscore"),
      printable(LABEL_VALUE_LENGTH_MAX),
    )
    .refine((labels) => Object.keys(labels).length <= LABEL_COUNT_MAX, `at most ${LABEL_COUNT_MAX} labels`),
}) satisfies z.ZodType<Holder>;

export const leaseRequestSchema = z.strictObject({
  runCount,
  nonce: z.string().regex(NONCE_PATTERN, "a nonce has 16 to 64 characters A-Z, a-z, 0-9, dash, underscore"),
  holder: holderSchema,
  lastRun: ledgerIdSchema.nullable(),
  receipt: receipt.nullable(),
  sentAtMs: timeMs,
  spareRunCount: z.int().min(0).optional(),
}) satisfies z.ZodType<LeaseRequest>;

const runState = z.enum(["open", "exhausted", "closed"]);
const knownRunState = z.enum(["open", "exhausted", "closed", "unreported"]);

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
  state: runState,
  reportedAtMs: timeMs,
}) satisfies z.ZodType<Progress>;

export const ledgerEntrySchema = z.object({
  version,
  firstRun: run,
  runCount,
  leasedAtMs: timeMs,
  holder: holderSchema,
  coordinator: z.string(),
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

/** Query of the runs route; numbers arrive as text. */
export const runsQuerySchema = z.strictObject({
  holder: printable(HOLDER_NAME_LENGTH_MAX).optional(),
  leasedFromMs: z.coerce.number().pipe(timeMs).optional(),
  leasedToMs: z.coerce.number().pipe(timeMs).optional(),
  cursor: z
    .string()
    .regex(/^\d{1,10}$/, "a cursor is what an earlier page gave as nextCursor")
    .optional(),
  limit: z.coerce.number().pipe(z.int().min(1).max(PAGE_LIMIT_MAX)).default(PAGE_LIMIT_DEFAULT),
});

export const runsAnswerSchema = z.object({
  namespace: z.string(),
  leases: z.array(ledgerEntrySchema).readonly(),
  nextCursor: z.string().nullable(),
}) satisfies z.ZodType<RunsAnswer>;

const callNumberFields = { version, run, sequence } satisfies Record<keyof CallNumberFields, z.ZodType>;
const inspected = { namespace: z.string(), callNumber: z.string(), explanation: z.string() };

export const inspectAnswerSchema = z.discriminatedUnion("verdict", [
  z.object({
    ...inspected,
    verdict: z.literal("malformed"),
    problem: z.enum(["wrong_length", "wrong_character", "beyond_greatest"]),
    position: z.int().min(0).nullable(),
  }),
  z.object({ ...inspected, verdict: z.literal("other_version"), ...callNumberFields }),
  z.object({
    ...inspected,
    verdict: z.literal("never_leased"),
    reason: z.enum(["above_mark", "below_first_run", "skipped"]),
    ...callNumberFields,
  }),
  z.object({
    ...inspected,
    verdict: z.enum(["reported", "unreported"]),
    ...callNumberFields,
    state: knownRunState,
    lastSequence: sequence.nullable(),
    lease: ledgerEntrySchema,
  }),
]) satisfies z.ZodType<InspectAnswer>;

const errorCode = z.enum(Object.keys(ERROR_RULES) as [ErrorCode, ...ErrorCode[]]);

const guardAnswerSchema = z.object({
  state: z.enum(["open", "in_doubt", "fenced"]),
  code: errorCode.nullable(),
  sinceMs: timeMs,
  explanation: z.string(),
  generation: z.int().min(0),
  roomRuns: z.int().min(0),
  nodeCount: z.int().min(1),
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
