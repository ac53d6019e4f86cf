/** All namespaces of the store, beside the one that is looked at. */
import type { NamespaceDescription } from "@callnumber/protocol/operator";
import { grouped, labelsInWords } from "../format.js";
import { hueOf } from "../namespace-colour.js";
import { addressOf } from "../route.js";
import { stepAmongRows } from "./arrow-keys.js";
import { STATE_KINDS, STATE_WORDS } from "./guard.js";

interface Properties {
  readonly namespaces: readonly NamespaceDescription[];
  readonly present: string;
}

export function NamespacesTable({ namespaces, present }: Properties) {
  return (
    <section aria-labelledby="namespaces">
      <h2 id="namespaces">Namespaces</h2>
      {/* biome-ignore lint: arrow keys are an extra; each link is reached by Tab as well */}
      <table onKeyDown={stepAmongRows}>
        <thead>
          <tr>
            <th scope="col">Namespace</th>
            <th scope="col">Guard</th>
            <th scope="col" class="number">
              Mark
            </th>
            <th scope="col" class="number more">
              Runs left
            </th>
          </tr>
        </thead>
        <tbody>
          {namespaces.map(({ namespace, labels, record, guard }) => (
            <tr key={namespace} style={{ "--hue": String(hueOf(namespace)) }}>
              <th scope="row">
                <span class="swatch" aria-hidden="true" />
                <a data-row href={addressOf(namespace)} aria-current={namespace === present ? "true" : undefined}>
                  {namespace}
                </a>
                <small>{labelsInWords(labels)}</small>
              </th>
              <td>
                <span class={`badge ${STATE_KINDS[guard.state]}`}>
                  {STATE_WORDS[guard.state].replace(/^Leasing (is )?/, "")}
                </span>
                {guard.state !== "open" && (
                  <small>
                    <a href={addressOf(namespace, "recovery", guard.code ?? "")}>What to do</a>
                  </small>
                )}
              </td>
              <td class="number">{record === null ? "?" : grouped(record.highWaterMark)}</td>
              <td class="number more">{record === null ? "?" : grouped(record.runsLeft)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
