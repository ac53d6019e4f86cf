/** An export as it comes from a coordinator, piece by piece, told apart from a part of one. */

import type { ExportEnd, ExportFormat } from "@callnumber/protocol/operator";
import { OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import { exportEndSchema } from "@callnumber/protocol/operator-schemas";
import { ledgerEntrySchema } from "@callnumber/protocol/schemas";
import { filledPath, type LedgerEntry } from "@callnumber/protocol/wire";
import { streamFromCoordinator } from "./ask-coordinator.js";
import { AskError } from "./ask-error.js";

export interface ExportQuestion {
  readonly coordinator: string;
  readonly tokenFile?: string | undefined;
  readonly namespace: string;
  /** As `filterQuery` makes it. */
  readonly filter: URLSearchParams;
  readonly signal?: AbortSignal;
}

/** @throws AskError with the coordinator's own code; `export_broken_off` when it ends before its end. */
export async function* exportedBytes(question: ExportQuestion, format: ExportFormat): AsyncGenerator<Uint8Array, void> {
  const { namespace, filter, signal } = question;
  const query = new URLSearchParams(filter);
  query.set("format", format);
  const path = `${filledPath(OPERATOR_ROUTES.export, { namespace })}?${query}`;
  const body = await streamFromCoordinator(question, path, signal);
  try {
    yield* body;
  } catch (error) {
    throw brokenOff(error);
  }
}

/** The leases, and behind them the end. @throws AskError as `exportedBytes`. */
export async function* exportedLeases(question: ExportQuestion): AsyncGenerator<LedgerEntry | ExportEnd, void> {
  let isWhole = false;
  for await (const line of linesOf(exportedBytes(question, "ndjson"))) {
    if (isWhole) throw brokenOff("something stands behind its end");
    const told: unknown = JSON.parse(line);
    const end = exportEndSchema.safeParse(told);
    isWhole = end.success;
    yield end.success ? end.data : ledgerEntrySchema.parse(told);
  }
  if (!isWhole) throw brokenOff("its last line is missing");
}

async function* linesOf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  let begun = "";
  for await (const piece of pieces) {
    const lines = (begun + decoder.decode(piece, { stream: true })).split("\n");
    begun = lines.pop() ?? "";
    yield* lines;
  }
  if (begun !== "") throw brokenOff("its last line is cut");
}

export function brokenOff(cause: unknown): AskError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new AskError("export_broken_off", `the export was broken off: ${reason}. What came is a part of it only`, {
    cause,
  });
}
