/** Which namespace is looked at: each with its colour and labels. One alone is only named. */
import type { NamespacesAnswer } from "@callnumber/protocol/operator";
import { labelsInWords } from "../format.js";
import { addressOf, go, type Route } from "../route.js";
import type { Answer } from "../use-response.js";

interface Properties {
  readonly present: Route;
  readonly answer: Answer<NamespacesAnswer>;
}

export function NamespaceSwitch({ present, answer }: Properties) {
  const { namespace, page } = present;
  const known = answer.data?.namespaces ?? [];
  const names = [...new Set([...known.map(({ namespace }) => namespace), namespace])];
  const labels = labelsInWords(known.find((described) => described.namespace === namespace)?.labels ?? {});
  return (
    <div class="namespace-switch">
      <span class="swatch" aria-hidden="true" />
      {names.length === 1 ? (
        <strong>{namespace}</strong>
      ) : (
        <label>
          <span class="unseen">Namespace</span>
          <select value={namespace} onChange={({ currentTarget }) => go(addressOf(currentTarget.value, page))}>
            {names.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
      {labels !== "" && <span class="quiet labels">{labels}</span>}
    </div>
  );
}
