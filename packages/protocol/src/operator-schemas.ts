/** The shapes of operator.ts as zod schemas: what the coordinator checks operators' requests against, and answers by. */
import { z } from "zod";
import { EXPORT_FORMATS, type ExportEnd } from "./operator.js";
import { ledgerFilterShape, ledgerIdSchema } from "./schemas.js";

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
