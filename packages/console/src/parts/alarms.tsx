/** What an operator should do before it hurts. Nothing is shown when there is nothing. */
import type { Alarm } from "@callnumber/protocol/operator";
import { Notice } from "./notice.js";

const WORDS: Readonly<Record<Alarm["severity"], string>> = {
  notice: "To know",
  warning: "Warning",
  critical: "Act now",
};
const ORDER: readonly Alarm["severity"][] = ["critical", "warning", "notice"];

export function Alarms({ alarms }: { alarms: readonly Alarm[] }) {
  if (alarms.length === 0) return null;
  const sorted = [...alarms].sort((a, b) => ORDER.indexOf(a.severity) - ORDER.indexOf(b.severity));
  return (
    <section aria-label="Alarms" class="alarms">
      {sorted.map(({ name, severity, explanation }) => (
        <Notice key={name} kind={severity} title={`${WORDS[severity]}: ${name.replaceAll("_", " ")}`}>
          <p>{explanation}</p>
        </Notice>
      ))}
    </section>
  );
}
