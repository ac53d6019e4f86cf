/** What is leased and asked of the ledger, as zod schemas with the types of the responses. `callNumberSchema` is for users. */
import * as z from "zod";
import {
  HOLDER_NAME_LENGTH_MAX,
  HOST_LENGTH_MAX,
  type Holder,
  INSTANT_MAX_MS,
  type KnownRunState,
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
} from "./api.js";
import {
  type CallNumber,
  type CallNumberParts,
  isCallNumber,
  NUMBER_MAX,
  RUN_MAX,
  SEQUENCE_MAX,
  VERSION_MAX,
} from "./codec.js";
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
export const ledgerIdSchema = z.int().min(0).max(LEDGER_ID_MAX);

const version = z.int().min(0).max(VERSION_MAX);
const run = z.int().min(0).max(RUN_MAX);
const sequence = z.int().min(0).max(SEQUENCE_MAX);
/** Of a request: a clock that may be wrong. */
const anyTimeMs = z.int().min(0);
/** Of a response: the reader makes a date of it. */
const timeMs = anyTimeMs.max(INSTANT_MAX_MS);
const runCount = z.int().min(1).max(LEASE_RUN_COUNT_MAX);
const proof = z.string().regex(PROOF_PATTERN, "a lease proof has 43 characters A-Z, a-z, 0-9, dash, underscore");
const printable = (lengthMax: number) =>
  z.string().min(1).max(lengthMax).regex(PRINTABLE_PATTERN, "holds an unprintable character");

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

/** The importer process that leases. */
export const holderSchema = z.strictObject({
  name: printable(HOLDER_NAME_LENGTH_MAX),
  host: printable(HOST_LENGTH_MAX),
  pid: z.int().min(0).max(PID_MAX),
  labels: z
    .record(labelName, labelValue)
    .refine((labels) => Object.keys(labels).length <= LABEL_COUNT_MAX, `at most ${LABEL_COUNT_MAX} labels`),
}) satisfies z.ZodType<Holder>;

const nonce = z.string().regex(NONCE_PATTERN, "a nonce has 16 to 64 characters A-Z, a-z, 0-9, dash, underscore");
const runState = z.enum(["open", "exhausted", "closed"]);

export const reportRequestSchema = z
  .strictObject({ nonce, lastSequence: sequence.nullable(), state: runState })
  .refine((report) => report.state !== "exhausted" || report.lastSequence === SEQUENCE_MAX, {
    path: ["lastSequence"],
    message: `an exhausted run has lastSequence ${SEQUENCE_MAX}`,
  }) satisfies z.ZodType<ReportRequest>;

export const leaseRequestSchema = z
  .strictObject({
    runCount,
    nonce,
    holder: holderSchema,
    lastRun: ledgerIdSchema.nullable(),
    proof: proof.nullable(),
    sentAtMs: anyTimeMs,
    spareRunCount: z.int().min(0).optional(),
    report: reportRequestSchema.safeExtend({ run: ledgerIdSchema }).optional(),
  })
  .refine(({ lastRun, proof }) => lastRun !== null || proof === null, {
    path: ["proof"],
    message: "a lease proof is about lastRun, which is missing",
  }) satisfies z.ZodType<LeaseRequest>;

/** Query of the numbers route. */
export const numbersQuerySchema = z.strictObject({
  count: z.coerce.number().pipe(z.int().min(1).max(NUMBER_COUNT_MAX)).default(1),
});

/** The body of a request for call numbers. */
export const numbersRequestSchema = z.strictObject({
  holder: z
    .strictObject({ name: printable(HOLDER_NAME_LENGTH_MAX), host: printable(HOST_LENGTH_MAX).optional() })
    .optional(),
  expectedStoreId: z
    .string()
    .regex(/^[!-~]{1,99}$/, "a store id has 1 to 99 printable ASCII characters")
    .optional(),
}) satisfies z.ZodType<NumbersRequest>;

/** The response to a request for call numbers. */
export const numbersResponseSchema = z.object({
  namespace: namespaceSchema,
  storeId: z.string(),
  callNumbers: z.array(z.string().refine(isCallNumber, "not a call number")).min(1).max(NUMBER_COUNT_MAX).readonly(),
}) satisfies z.ZodType<NumbersResponse>;

const notedState = z.enum([...runState.options, "discarded", "skipped"]);
const knownRunState = z.enum([...notedState.options, "unreported"]) satisfies z.ZodType<KnownRunState>;

export const leaseSchema = z.object({
  namespace: namespaceSchema,
  storeId: z.string(),
  version,
  firstRun: run,
  runCount,
  leasedAtMs: timeMs,
  nonce: z.string(),
  proof,
}) satisfies z.ZodType<Lease>;

const progressSchema = z.object({
  run,
  lastSequence: sequence.nullable(),
  state: notedState,
  reportedAtMs: timeMs,
}) satisfies z.ZodType<Progress>;

/** The ledger's record of one lease, or of the runs that a recovery skipped. */
export const ledgerEntrySchema = z.object({
  version,
  firstRun: run,
  runCount: run.min(1),
  leasedAtMs: timeMs,
  holder: holderSchema,
  /** Name of the coordinator that leased it. */
  coordinator: z.string(),
  /** Of the token in the holder's request: eight hex digits; missing where none was required. */
  tokenId: z.string().optional(),
  /** Of the holder's request, as in the coordinator's log. With it, any client may report in the holder's name. */
  nonce: z.string(),
  /** The last report of the holder; null when it has not reported. */
  progress: progressSchema.nullable(),
});
export type LedgerEntry = z.infer<typeof ledgerEntrySchema>;

/** The version that the namespace has come to: above 0, a run is named with its version. */
const currentVersion = version;

/** One run, as far as the coordinator knows it. */
export const runResponseSchema = z.object({
  namespace: z.string(),
  currentVersion,
  version,
  run,
  state: knownRunState,
  /** The last sequence that the holder reported for this run; null when none. */
  lastSequence: sequence.nullable(),
  lease: ledgerEntrySchema,
});
export type RunResponse = z.infer<typeof runResponseSchema>;

const labelText = z.string().refine((text) => {
  const [name, value] = labelIn(text);
  return labelName.safeParse(name).success && labelValue.safeParse(value).success;
}, "a label is asked for as name=value");
const timeText = z.coerce.number().pipe(anyTimeMs);

/** Filters of the leases in a ledger; a lease must pass all that are given. Numbers arrive as text. */
export const ledgerFilterShape = {
  holder: printable(HOLDER_NAME_LENGTH_MAX).optional(),
  host: printable(HOST_LENGTH_MAX).optional(),
  /** `name=value`, once or several times. */
  label: z
    .preprocess((given) => (typeof given === "string" ? [given] : given), z.array(labelText).max(LABEL_COUNT_MAX))
    .optional(),
  /** Of the lease as a whole. */
  state: knownRunState.optional(),
  leasedFromMs: timeText.optional(),
  leasedToMs: timeText.optional(),
  fromRun: runNameSchema.optional(),
  toRun: runNameSchema.optional(),
};

/** Query of the runs route. */
export const runsQuerySchema = z.strictObject({
  ...ledgerFilterShape,
  cursor: cursorSchema.optional(),
  limit: z.coerce.number().pipe(z.int().min(1).max(PAGE_LIMIT_MAX)).default(PAGE_LIMIT_DEFAULT),
});

/** Leases that a coordinator trimmed from the store: they are in the files of its `--ledger-dir`. */
const trimmedSchema = z.object({
  /** The run up to which the store holds no lease any more. */
  upToVersion: version,
  upToRun: run,
  lastLeasedAtMs: timeMs,
});
export type TrimmedLeases = z.infer<typeof trimmedSchema>;

/** A page of the ledger. */
export const runsResponseSchema = z.object({
  namespace: z.string(),
  currentVersion,
  /** Newest first. A page may be short, even empty, although more follow. */
  leases: z.array(ledgerEntrySchema).readonly(),
  /** The `cursor` of the next page; null at the end. */
  nextCursor: z.string().nullable(),
  /** At the end, what was trimmed of the requested leases; null before the end, and when nothing was. */
  trimmed: trimmedSchema.nullable(),
});
export type RunsResponse = z.infer<typeof runsResponseSchema>;

/** Query of the call number route. */
export const inspectQuerySchema = z.strictObject({
  /** Whether to include the leases of the same process before and after, which reads up to 2,000 entries of the ledger. */
  neighbors: z.enum(["yes", "no"]).default("no"),
});

/** `reported`: within what its holder reported · `unreported`: past it · `not_made`: past the end of a closed run, or of a discarded one. */
const leasedVerdict = z.enum(["reported", "unreported", "not_made"]);

/** What a mistyped text may have been: another number that can exist, of a run that is leased. Guesses, the likeliest first. */
const hintSchema = z.object({
  callNumber: z.string(),
  /** `surrounding`: characters around or between are too much · `look_alike`: similar characters · `case`: upper for lower, or the reverse. */
  slip: z.enum(["surrounding", "look_alike", "case"]),
  /** Indexes, in the text as typed, of the characters to change; empty for `surrounding`. */
  positions: z.array(z.int().min(0)).readonly(),
  holder: z.string(),
  verdict: leasedVerdict,
});
export type CallNumberHint = z.infer<typeof hintSchema>;
const hints = z.array(hintSchema).readonly();

const neighborsSchema = z.object({
  /** The nearest one of the same holder (name, host and pid); null when none was found. */
  previous: ledgerEntrySchema.nullable(),
  next: ledgerEntrySchema.nullable(),
  /** Which they are; where one is null, whether there is none or how far the search went: for people. */
  explanation: z.string(),
});
export type LeaseNeighbors = z.infer<typeof neighborsSchema>;

/** The request that a coordinator made a number for, as far as it remembers. */
const numberRequestSchema = z.object({
  atMs: timeMs,
  /** As the request names it; null when it names none. */
  holder: z.object({ name: z.string(), host: z.string().optional() }).nullable(),
  /** Of the token in the request; missing where none was required. */
  tokenId: z.string().optional(),
  /** Of the connection: a proxy, where there is one. */
  remoteAddress: z.string().optional(),
});
export type NumberRequest = z.infer<typeof numberRequestSchema>;

const callNumberFields = { version, run, sequence } satisfies Record<keyof CallNumberParts, z.ZodType>;
const inspected = { namespace: z.string(), callNumber: z.string(), explanation: z.string() };

/** The answers to "what is this call number?". */
export const inspectResponseSchema = z.discriminatedUnion("verdict", [
  z.object({
    ...inspected,
    verdict: z.literal("malformed"),
    problem: z.enum(["wrong_length", "wrong_character", "beyond_greatest"]),
    /** Index of the wrong character, where one is wrong. */
    position: z.int().min(0).nullable(),
    hints,
  }),
  /** `unknown`: no lease has its run. A recovery skipped it, or the store lost the lease. */
  z.object({ ...inspected, verdict: z.enum(["other_version", "unknown"]), ...callNumberFields, hints }),
  z.object({
    ...inspected,
    verdict: z.literal("never_leased"),
    reason: z.enum(["above_mark", "below_first_run", "skipped"]),
    hints,
    ...callNumberFields,
  }),
  /** Leased long ago or skipped: its lease, if it had one, is no longer in the store. */
  z.object({ ...inspected, verdict: z.literal("trimmed"), ...callNumberFields, trimmed: trimmedSchema }),
  z.object({
    ...inspected,
    verdict: leasedVerdict,
    currentVersion,
    ...callNumberFields,
    state: knownRunState,
    lastSequence: sequence.nullable(),
    lease: ledgerEntrySchema,
    /** Null when they were not requested. */
    neighbors: neighborsSchema.nullable(),
    /** Of a number that this coordinator made for a request, and remembers. */
    request: numberRequestSchema.optional(),
  }),
]);
export type InspectResponse = z.infer<typeof inspectResponseSchema>;
