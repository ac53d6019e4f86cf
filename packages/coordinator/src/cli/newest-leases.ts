/** The newest leases that pass a filter, as many as are asked for, however many pages that takes. */
import { runsAnswerSchema } from "@callnumber/protocol/schemas";
import {
  type LedgerEntry,
  PAGE_LIMIT_MAX,
  pathOf,
  type RunsAnswer,
  type TrimmedLeases,
} from "@callnumber/protocol/wire";
import { askCoordinator } from "./ask-coordinator.js";
import { AskError } from "./ask-error.js";

export interface NewestQuestion {
  readonly coordinator: string;
  readonly tokenFile?: string | undefined;
  readonly namespace: string;
  /** As `filterQuery` makes it. */
  readonly filter: URLSearchParams;
  readonly limit: number;
}

export interface NewestLeases {
  readonly leases: readonly LedgerEntry[];
  /** What was trimmed of older ones, where fewer were there than asked for. */
  readonly trimmed: TrimmedLeases | null;
}

/** Newest first. Follows the cursor until there are enough: a filtered page may be short although more follow. */
export async function newestLeases(question: NewestQuestion): Promise<NewestLeases> {
  const { namespace, filter, limit } = question;
  const leases: LedgerEntry[] = [];
  let cursor: string | null = null;
  let trimmed: TrimmedLeases | null = null;
  do {
    const query = new URLSearchParams(filter);
    query.set("limit", String(Math.min(limit - leases.length, PAGE_LIMIT_MAX)));
    if (cursor !== null) query.set("cursor", cursor);
    const path = `${pathOf("runs", { namespace })}?${query}`;
    const page: RunsAnswer = await askCoordinator(question, path, runsAnswerSchema);
    leases.push(...page.leases);
    if (cursor !== null && page.nextCursor !== null && !(Number(page.nextCursor) < Number(cursor))) {
      // Without the address, which may hold a password.
      throw new AskError(
        "answer_not_understood",
        "a page was answered that leads no further back than the one before; is --coordinator a coordinator's address?",
      );
    }
    ({ nextCursor: cursor, trimmed } = page);
  } while (cursor !== null && leases.length < limit);
  return { leases, trimmed };
}
