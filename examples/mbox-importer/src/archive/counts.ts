/** What the whole archive holds, counted by the database. */
import type { Database } from "./archive-file.js";

export interface ArchiveCounts {
  readonly messages: number;
  readonly withoutMessageId: number;
  /** Message-IDs that stand in more than one message, and how many messages that are. */
  readonly repeatedMessageIds: { readonly ids: number; readonly messages: number };
  /** Contents that stand more than once byte for byte, separator lines aside, and how many messages that are. */
  readonly repeatedContents: { readonly contents: number; readonly messages: number };
}

export function countsOf(database: Database): ArchiveCounts {
  const row = (query: string) => database.prepare(query).get() as Record<string, number>;
  const { messages = 0, withMessageId = 0 } = row(
    "select count(*) as messages, count(message_id) as withMessageId from messages",
  );
  const ids = row(repeats("message_id", "where message_id is not null"));
  const contents = row(repeats("content_hash", ""));
  return {
    messages,
    withoutMessageId: messages - withMessageId,
    repeatedMessageIds: { ids: ids["values"] ?? 0, messages: ids["messages"] ?? 0 },
    repeatedContents: { contents: contents["values"] ?? 0, messages: contents["messages"] ?? 0 },
  };
}

function repeats(column: string, where: string): string {
  return `select count(*) as "values", coalesce(sum(n), 0) as messages
    from (select count(*) as n from messages ${where} group by ${column} having n > 1)`;
}
