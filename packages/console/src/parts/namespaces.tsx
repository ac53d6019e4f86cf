/** The namespaces of the store: a switch in the header, and a table. Each has a color, made from its name, so that they are not mixed up. */
import { runName } from "@callnumber/protocol/api";
import type { NamespaceDescription } from "@callnumber/protocol/schemas";
import { formatNumber } from "../format.js";
import { go, type Route, urlOf } from "../route.js";
import { STATE_KINDS, STATE_TITLES } from "./headline.js";
import { TableHead } from "./table.js";

/** Hues far enough from the red and amber of alarms. */
const FIRST_HUE = 130;
const HUE_COUNT = 215;

/** 130 to 344, for `oklch()`; lightness and chroma are in the style sheet, so that contrast is the same for every name. */
export function hueOf(namespace: string): number {
  let hash = 2_166_136_261;
  for (const character of namespace) hash = Math.imul(hash ^ (character.codePointAt(0) ?? 0), 16_777_619) >>> 0;
  // The low bits of short, similar names are alike; a second mixing keeps "lists" and "list" apart.
  hash = Math.imul(hash ^ (hash >>> 15), 2_246_822_507) >>> 0;
  return FIRST_HUE + (((hash ^ (hash >>> 13)) >>> 0) % HUE_COUNT);
}

interface Properties {
  readonly namespaces: readonly NamespaceDescription[];
  readonly route: Route;
}

/** One namespace alone is only named. */
export function NamespaceSwitch({ namespaces, route: { namespace, page } }: Properties) {
  const names = [...new Set([...namespaces.map((one) => one.namespace), namespace])];
  return (
    <div class="namespace-switch">
      <span class="swatch" aria-hidden="true" />
      {names.length === 1 ? (
        <strong>{namespace}</strong>
      ) : (
        <label>
          <span class="unseen">Namespace</span>
          <select value={namespace} onChange={({ currentTarget }) => go(urlOf(currentTarget.value, page))}>
            {names.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
    </div>
  );
}

export function NamespacesTable({
  namespaces,
  present,
}: {
  namespaces: readonly NamespaceDescription[];
  present: string;
}) {
  return (
    <section aria-labelledby="namespaces">
      <h2 id="namespaces">Namespaces</h2>
      <table>
        <TableHead
          columns={[["Namespace"], ["Leasing"], ["High-water mark", "number"], ["Runs left", "number more"]]}
        />
        <tbody>
          {namespaces.map(({ namespace, record, guard }) => (
            <tr key={namespace} style={{ "--hue": String(hueOf(namespace)) }}>
              <th scope="row">
                <span class="swatch" aria-hidden="true" />
                <a href={urlOf(namespace)} aria-current={namespace === present ? "true" : undefined}>
                  {namespace}
                </a>
              </th>
              <td>
                <span class={`badge ${STATE_KINDS[guard.state]}`}>
                  {STATE_TITLES[guard.state].replace(/^Leasing (is )?/, "")}
                </span>
                {guard.state !== "active" && (
                  <small>
                    <a href={urlOf(namespace, "recovery")}>What to do</a>
                  </small>
                )}
              </td>
              <td class="number">{record === null ? "?" : runName(record.version, record.highWaterMark)}</td>
              <td class="number more">{record === null ? "?" : formatNumber(record.runsLeft)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
