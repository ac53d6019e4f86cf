/** What is asked about a call number, and what it turns out to be, as zod schemas. */
import * as z from "zod";
import type { CallNumberParts } from "./codec.js";
import {
  CURRENT_VERSION,
  describedObject,
  describedObjects,
  describedRequest,
  knownRunState,
  LAST_SEQUENCE,
  NAMESPACE,
  run,
  sequence,
  text,
  timeMs,
  version,
  whole,
} from "./field-schemas.js";
import { ledgerEntrySchema, trimmedSchema } from "./lease-schemas.js";

/** Query of the call number route. */
export const inspectQuerySchema = describedRequest("InspectQuery", "What to include", {
  neighbors: [
    z.enum(["yes", "no"]).default("no"),
    "Whether to include the leases of the same process around it: reads up to 2,000 entries of the ledger",
  ],
});

const leasedVerdict = [
  z.enum(["reported", "unreported", "not_made"]),
  "Within what its holder reported; past it; past the end of a closed run, or of a discarded one",
] as const;

const hintSchema = describedObject("Hint", "A number that can exist, of a run that is leased", {
  callNumber: [text, "What a mistyped text may have been"],
  slip: [
    z.enum(["surrounding", "look_alike", "case"]),
    "Characters around or between are too much; are similar ones; have the wrong case",
  ],
  positions: [
    z.array(whole("characters from the start of the text", 0)).readonly(),
    "Of the characters to change, in the text as typed; empty for `surrounding`",
  ],
  holder: [text, "The name of the holder of its run"],
  verdict: leasedVerdict,
});
export type CallNumberHint = z.infer<typeof hintSchema>;
const hints = [
  z.array(hintSchema).readonly(),
  "What it may have been meant for: guesses, the likeliest first",
] as const;

const neighborsSchema = describedObject("Neighbors", "The nearest leases of the same holder: name, host and pid", {
  previous: [ledgerEntrySchema.nullable(), "The one before; null if none was found"],
  next: [ledgerEntrySchema.nullable(), "The one after; null if none was found"],
  explanation: [text, "Which they are; if one is null, whether there is none or how far the search went: for people"],
});
export type LeaseNeighbors = z.infer<typeof neighborsSchema>;

const numberRequestSchema = describedObject("NumberRequest", "The request that a number was made for", {
  atMs: [timeMs, "Time of the request"],
  holder: [
    describedObject("NumberRequestHolder", "As the request names it", {
      name: [text, "The program that got the numbers"],
      host: [text.optional(), "Its host"],
    }).nullable(),
    "Null if the request named none",
  ],
  tokenId: [text.optional(), "Of the token of the request; absent without tokens"],
  remoteAddress: [text.optional(), "Of the connection: a proxy, if there is one"],
});
export type NumberRequest = z.infer<typeof numberRequestSchema>;

const callNumberFields = {
  version: [version, "The version in the call number"],
  run: [run, "The run in the call number"],
  sequence: [sequence, "The sequence in the call number"],
} as const satisfies Record<keyof CallNumberParts, unknown>;
const inspected = {
  namespace: NAMESPACE,
  callNumber: [text, "The text of the request"],
  explanation: [text, "What it is: for people"],
} as const;

/** The answers to "what is this call number?". */
export const inspectResponseSchema = z
  .discriminatedUnion("verdict", [
    describedObject("MalformedNumber", "The text is not a call number", {
      ...inspected,
      verdict: [z.literal("malformed"), "It is not a call number"],
      problem: [z.enum(["wrong_length", "wrong_character", "beyond_greatest"]), "What is wrong with it"],
      position: [
        whole("characters from the start of the text", 0).nullable(),
        "Of the wrong character; null if none is wrong",
      ],
      hints,
    }),
    describedObject("UnknownNumber", "No lease has the run", {
      ...inspected,
      verdict: [
        z.enum(["other_version", "unknown"]),
        "The namespace has not come to this version; a recovery skipped the run, or the store lost the lease",
      ],
      ...callNumberFields,
      hints,
    }),
    describedObject("UnleasedNumber", "The run was never leased", {
      ...inspected,
      verdict: [z.literal("never_leased"), "Its run was never leased"],
      reason: [z.enum(["above_mark", "below_first_run", "skipped"]), "Where its run is, or what skipped it"],
      hints,
      ...callNumberFields,
    }),
    describedObject("TrimmedNumber", "Leased long ago or skipped", {
      ...inspected,
      verdict: [z.literal("trimmed"), "Its lease, if it had one, is no longer in the store"],
      ...callNumberFields,
      trimmed: [trimmedSchema, "Which leases are no longer in the store"],
    }),
    describedObject("LeasedNumber", "The run is leased", {
      ...inspected,
      verdict: leasedVerdict,
      currentVersion: CURRENT_VERSION,
      ...callNumberFields,
      state: [knownRunState, "Of its run"],
      lastSequence: LAST_SEQUENCE,
      lease: [ledgerEntrySchema, "The lease that holds its run"],
      neighbors: [neighborsSchema.nullable(), "Null if they were not requested"],
      request: [numberRequestSchema.optional(), "Of a number that this coordinator made, as long as it remembers"],
    }),
  ])
  .register(describedObjects, { id: "InspectedNumber", description: "What a text is, by its `verdict`", fields: {} });
export type InspectResponse = z.infer<typeof inspectResponseSchema>;
