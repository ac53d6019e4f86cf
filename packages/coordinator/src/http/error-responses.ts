/** How refusals look in OpenAPI: one shape for all. */
import { errorAnswerSchema } from "@callnumber/protocol/schemas";

export const errorResponses = { "4xx": errorAnswerSchema, "5xx": errorAnswerSchema } as const;
