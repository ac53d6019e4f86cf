/**
 * What operators ask, as zod schemas: for the coordinator's answers and its OpenAPI, and for the commands that read them.
 * Needs zod, an optional peer dependency.
 */
import { z } from "zod";
import { RUN_MAX, VERSION_MAX } from "./codec.js";
import type {
  ExportEnd,
  Finding,
  LabelsRequest,
  NamespaceDescription,
  NamespacesAnswer,
  PublicCallNumberAnswer,
  Setting,
  SettingsAnswer,
} from "./operator.js";
import { EXPORT_FORMATS, SETTING_ORIGINS } from "./operator.js";
import { guardAnswerSchema, labelsSchema, ledgerFilterShape, ledgerIdSchema } from "./schemas.js";

const { state, code, sinceMs, explanation } = guardAnswerSchema.shape;

export const namespaceDescriptionSchema = z.object({
  namespace: z.string(),
  labels: labelsSchema,
  record: z
    .object({
      storeId: z.string(),
      version: z.int().min(0).max(VERSION_MAX),
      firstRun: z.int().min(0).max(RUN_MAX),
      highWaterMark: z.int().min(0).max(RUN_MAX),
      runsUsed: z.int().min(0),
      runsLeft: z.int().min(0),
      lineRunsPerSecond: z.int().min(1),
    })
    .nullable(),
  guard: z.object({ state, code, sinceMs, explanation }),
}) satisfies z.ZodType<NamespaceDescription>;

export const namespacesAnswerSchema = z.object({
  store: z.string(),
  coordinator: z.string(),
  release: z.string(),
  namespaces: z.array(namespaceDescriptionSchema).readonly(),
}) satisfies z.ZodType<NamespacesAnswer>;

export const labelsRequestSchema = z.strictObject({ labels: labelsSchema }) satisfies z.ZodType<LabelsRequest>;

export const publicCallNumberAnswerSchema = z.object({
  callNumber: z.string(),
  canExist: z.boolean(),
}) satisfies z.ZodType<PublicCallNumberAnswer>;

/** Query of the export route. */
export const exportQuerySchema = z.strictObject({
  ...ledgerFilterShape,
  format: z.enum(EXPORT_FORMATS).default("ndjson"),
});

export const exportEndSchema = z.strictObject({
  end: z.literal(true),
  leaseCount: z.int().min(0),
  upToRun: ledgerIdSchema.nullable(),
}) satisfies z.ZodType<ExportEnd>;

export const settingSchema = z.object({
  name: z.string(),
  value: z.string().nullable(),
  from: z.enum(SETTING_ORIGINS),
}) satisfies z.ZodType<Setting>;

const commandContextSchema = z.object({ storeOption: z.string(), witnessOption: z.string() });
const findingSchema = z.object({
  code: code.unwrap().optional(),
  what: z.string(),
  remedy: z.string(),
  override: z.string().optional(),
  namespaces: z.array(z.string()).readonly().optional(),
}) satisfies z.ZodType<Finding>;

export const settingsAnswerSchema = z.object({
  release: z.string(),
  store: z.string(),
  startedAtMs: sinceMs,
  settings: z.array(settingSchema).readonly(),
  commands: commandContextSchema,
  certificateEndsAtMs: sinceMs.nullable(),
  findings: z.array(findingSchema).readonly(),
}) satisfies z.ZodType<SettingsAnswer>;

export { capacityAnswerSchema, historyAnswerSchema, historyQuerySchema } from "./capacity-schemas.js";
