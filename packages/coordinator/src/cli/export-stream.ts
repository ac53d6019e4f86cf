/** An export as it comes from a coordinator, piece by piece, told apart from a part of one. */

import type { ExportEnd, ExportFormat } from "@callnumber/protocol/operator";
import { OPERATOR_ROUTES } from "@callnumber/protocol/operator";
import { exportEndSchema } from "@callnumber/protocol/operator-schemas";
import { ledgerEntrySchema } from "@callnumber/protocol/schemas";
import { filledPath, type LedgerEntry } from "@callnumber/protocol/wire";
import { z } from "zod";
import { streamFromCoordinator } from "./ask-coordinator.js";
import { AskError } from "./ask-error.js";

/** A lease has 3,400 bytes at most, all that its holder may say as long as it may be. */
const LINE_LENGTH_MAX = 65_536;

const exportLineSchema = z.union([exportEndSchema, ledgerEntrySchema]);

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
    const told = toldIn(line);
    isWhole = "end" in told;
    yield told;
  }
  if (!isWhole) throw brokenOff("its last line is missing");
}

function toldIn(line: string): LedgerEntry | ExportEnd {
  try {
    return exportLineSchema.parse(JSON.parse(line));
  } catch {
    throw brokenOff("a line is neither a lease nor its end");
  }
}

/** Each piece is looked through once, however many a line has. */
async function* linesOf(pieces: AsyncIterable<Uint8Array>): AsyncGenerator<string, void> {
  const decoder = new TextDecoder();
  let line = "";
  for await (const piece of pieces) {
    const [rest = "", ...next] = decoder.decode(piece, { stream: true }).split("\n");
    line = withinLine(line + rest);
    for (const begun of next) {
      yield line;
      line = withinLine(begun);
    }
  }
  if (line !== "") throw brokenOff("its last line is cut");
}

function withinLine(line: string): string {
  if (line.length <= LINE_LENGTH_MAX) return line;
  throw brokenOff(`a line is longer than any lease: more than ${LINE_LENGTH_MAX} characters`);
}

export function brokenOff(cause: unknown): AskError {
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new AskError("export_broken_off", `the export was broken off: ${reason}. What came is a part of it only`, {
    cause,
  });
}
