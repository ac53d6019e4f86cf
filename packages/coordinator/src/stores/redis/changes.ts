/** Changes of the guard as parameters of lua/apply.lua, and what lua/observe.lua and lua/apply.lua answer. Pure. */

import { ledgerIdOf } from "@callnumber/protocol/api";
import { RUN_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import { KEY_NAMES, type ObservedKeys } from "../../guard/checks.js";
import { fieldsOf, type ObservedFields, RECORD_FIELDS } from "../../guard/record.js";
import type { Applied, Change, Expected, Observed } from "../../guard/step-store.js";
import { holderJsonOf, wholeIn } from "../stored-shapes.js";

/** The fields of a record, in the order of the scripts. */
export const FIELDS = [...RECORD_FIELDS, "k"] as const;
/** Those that a lease changes. */
const RISING_FIELDS: ReadonlySet<string> = new Set(["c", "t", "k"]);

export function parametersOf(nonce: string, expected: Expected, change: Change): readonly (string | number)[] {
  const { found, replicasMax, timeMinMs, timeMaxMs, rising } = expected;
  const { record, leases, movesAside, persists } = change;
  const { keys, server } = found;
  const same = [server.role, server.epoch, keys.record, keys.ledger, keys.holders, keys.expires ? 1 : 0].join(" ");
  const isKept = (name: string) => rising === undefined || !RISING_FIELDS.has(name);
  const written: Readonly<Record<string, string>> = fieldsOf(record);
  const before =
    rising === undefined
      ? (keys.fingerprint ?? "")
      : FIELDS.map((name) => (isKept(name) ? (keys.fields[name] ?? "") : "")).join("\n");
  const after = RECORD_FIELDS.map((name) => (isKept(name) ? written[name] : "")).join("\n");
  // A user that may not keep what expires may not recover.
  const byOperator = [...movesAside.map((name) => KEY_NAMES.indexOf(name) + 1), ...(persists ? ["p"] : [])].join(" ");
  const bounds =
    rising === undefined
      ? ["-", "-", "-", keys.ledgerMark, "-", "-"]
      : [
          rising.nowMs,
          rising.ageMinMs,
          rising.ageMaxMs,
          rising.markIdMin,
          rising.highWaterMarkMax,
          rising.isLedgerReached ? 1 : 0,
        ];
  return [
    nonce,
    same,
    replicasMax,
    timeMinMs,
    timeMaxMs,
    byOperator,
    before,
    after,
    ...bounds,
    ledgerIdOf(record.version, 0),
    // One parameter each, as many short ones cost the connection more than all the rest; only the holder may contain spaces.
    ...leases.map((lease) => `${lease.runCount} ${lease.leaseNonce} ${holderJsonOf(lease)}`),
  ];
}

/** Undefined for a reply that can't be the one to the script with this nonce. */
export function appliedIn(
  reply: unknown,
  nonce: string,
): Pick<Applied, "highWaterMark" | "changedAtMs"> | Observed | undefined {
  const [replied, word, highWaterMark, changedAtMs, ...others] = textsIn(reply);
  if (replied !== nonce || word !== "done" || others.length > 0) return observedIn(reply, nonce);
  return wholesIn({ highWaterMark, changedAtMs });
}

const HEAD_LENGTH = 15;

/** Undefined for a reply that can't be the one to the script with this nonce. */
export function observedIn(reply: unknown, nonce: string): Observed | undefined {
  const texts = textsIn(reply);
  const [replied, word, time, record, ledger, holders, expires, mark, role, runId, replId, full, partial, ...others] =
    texts;
  const [count, fingerprint] = others;
  const [timeMs, ledgerMark] = [wholeIn(time), wholeIn(mark)];
  const isReply = replied === nonce && word === "found" && texts.length === HEAD_LENGTH + FIELDS.length;
  if (!isReply || timeMs === undefined || ledgerMark === undefined) return undefined;
  const values = texts.slice(HEAD_LENGTH);
  const fields = fieldsIn(values);
  const replicaCount = wholeIn(count);
  const epochParts = [runId, replId, full, partial];
  const isKnown = role !== undefined && replicaCount !== undefined && epochParts.every((part) => part !== undefined);
  return {
    keys: {
      record: kindOf(record, "hash"),
      fields,
      fingerprint,
      expires: expires === "1",
      ledger: kindOf(ledger, "stream"),
      ledgerMark,
      holders: kindOf(holders, "hash"),
    },
    server: {
      timeMs,
      role: role ?? "-",
      epoch: isKnown ? epochParts.join(":") : undefined,
      connectedReplicas: replicaCount ?? 0,
    },
  };
}

/** The values of `FIELDS`, without those that are missing. */
export function fieldsIn(values: readonly (string | null | undefined)[]): ObservedFields {
  return Object.fromEntries(FIELDS.flatMap((name, at) => (typeof values[at] === "string" ? [[name, values[at]]] : [])));
}

function kindOf<Kind extends ObservedKeys["record" | "ledger"]>(
  type: string | undefined,
  ours: Kind,
): "none" | "other" | Kind {
  return type === "none" || type === ours ? (type as "none" | Kind) : "other";
}

const MAXIMA: Readonly<Record<string, number>> = { version: VERSION_MAX, highWaterMark: RUN_MAX };

/** Whole numbers by name, each from its text; undefined when one of the texts is not such a number. */
export function wholesIn<Name extends string>(
  texts: Readonly<Record<Name, string | undefined>>,
): Readonly<Record<Name, number>> | undefined {
  const numbers: Partial<Record<Name, number>> = {};
  for (const name in texts) {
    const number = wholeIn(texts[name], MAXIMA[name]);
    if (number === undefined) return undefined;
    numbers[name] = number;
  }
  return numbers as Record<Name, number>;
}

/** The parts of a reply, undefined for nil; empty for one that is no list of texts. */
function textsIn(reply: unknown): readonly (string | undefined)[] {
  const isList = Array.isArray(reply) && reply.every((part) => typeof part === "string" || part === null);
  return isList ? reply.map((part: string | null) => part ?? undefined) : [];
}
