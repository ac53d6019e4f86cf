/** What is known for the commands of an advice, also when the record can't be read: then the refusal itself says what is remembered. */
import type { NamespaceDescription } from "@callnumber/protocol/operator";
import type { Circumstances } from "./advice.js";

/** Seen while the record could still be read; kept as long as the page is open. */
const seenStoreIds = new Map<string, string>();

export function circumstancesOf({
  namespace,
  record,
  guard,
}: Pick<NamespaceDescription, "namespace" | "guard"> & {
  readonly record: { readonly storeId: string } | null;
}): Circumstances {
  if (record !== null) seenStoreIds.set(namespace, record.storeId);
  const told = /(?:--store-id|store id) ([\w.:-]*[\w])/.exec(guard.explanation)?.[1];
  const floor = /(?:--floor|\brun) ([\d,]+)/.exec(guard.explanation)?.[1];
  return {
    namespace,
    storeId: record?.storeId ?? told ?? seenStoreIds.get(namespace),
    floor: record === null ? floor?.replaceAll(",", "") : undefined,
    isClockToCheck: guard.explanation.includes("--clock-is-right"),
  };
}
