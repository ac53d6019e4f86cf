/** A namespace's labels as the stores that outlive their process keep them: one text. Pure. */
import type { Holder } from "@callnumber/protocol/wire";
import { CoordinatorError } from "../errors.js";

type Labels = Holder["labels"];

/** In the order of their names, so that the same labels are the same text. */
export function labelsText(labels: Labels): string {
  return JSON.stringify(Object.fromEntries(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1))));
}

/** @throws CoordinatorError `store_corrupt` when another hand has written the text. */
export function labelsIn(text: string, namespace: string): Labels {
  const labels = parsed(text);
  const isOurs =
    typeof labels === "object" &&
    labels !== null &&
    !Array.isArray(labels) &&
    Object.values(labels).every((value) => typeof value === "string");
  if (isOurs) return labels as Labels;
  throw new CoordinatorError(
    "store_corrupt",
    `the labels of namespace "${namespace}" were changed by another program. Nothing else depends on them. Set new ones: ` +
      `POST {"labels":{}} to /v1/namespaces/${namespace}/labels`,
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
