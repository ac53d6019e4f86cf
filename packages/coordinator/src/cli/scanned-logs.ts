/** Logs of coordinators among what `--scan` was given: floors for `recover`, each for the store that its lines name. */
import { runOfLedgerId } from "@callnumber/protocol/wire";
import { ArchiveError } from "../archive/archive-error.js";
import type { LoggedStore, LogScanResult } from "../archive/log-scan.js";
import type { Floor } from "../operator/recover-plan.js";
import { grouped } from "./print.js";

export interface ScannedLog extends LogScanResult {
  /** As people call it. */
  readonly name: string;
}

/**
 * @throws ArchiveError when one of the logs holds no event at all, whatever the others hold: the greatest run may stand in it, unread.
 *   When none of them tells of the namespace: they are the wrong ones, or of another level.
 */
export function mustTellOf(namespace: string, logs: readonly ScannedLog[]): void {
  const unread = logs.filter(({ eventCount }) => eventCount === 0);
  if (unread.length > 0) throw new ArchiveError(unread.map(unreadInWords).join("\n"));
  if (logs.length === 0 || logs.some((log) => storesOf(namespace, log).length > 0)) return;
  const names = logs.map(({ name }) => name).join(", ");
  throw new ArchiveError(
    `${names} ${logs.length === 1 ? "holds" : "hold"} no lease of namespace "${namespace}": is it a coordinator's log, written at level info or debug?`,
  );
}

export function floorsOfLogs(namespace: string, logs: readonly ScannedLog[]): readonly Floor[] {
  return logs.flatMap((log) =>
    storesOf(namespace, log).map(({ storeId, greatest: { ledgerId, event, line } }) => ({
      from: `the ${event} in line ${grouped(line)} of ${log.name}`,
      ledgerId,
      storeId,
    })),
  );
}

/** What each log tells of the store that is recovered, and all of what was not taken. */
export function logsInWords(namespace: string, storeId: string, logs: readonly ScannedLog[]): readonly string[] {
  return logs.flatMap((log) => [
    ...labelled(taken(namespace, storeId, log)),
    ...othersOf(namespace, storeId, log).map(notTaken),
    ...damageIn(log),
  ]);
}

function unreadInWords({ name, damagedCount, damaged: [first] }: ScannedLog): string {
  const where = first === undefined || first.line === null ? "" : `line ${grouped(first.line)}: `;
  const unread =
    first === undefined
      ? ""
      : `, and ${damagedCount === 1 ? "one line" : `${grouped(damagedCount)} lines`} that can't be read (${where}${first.why})`;
  return (
    `${name} holds no event of a coordinator${unread}. If it is a coordinator's log, the greatest run may stand in it: give it as the ` +
    "coordinator wrote it; else leave it out. Nothing was changed"
  );
}

function storesOf(namespace: string, { stores }: LogScanResult): readonly LoggedStore[] {
  return stores.filter((one) => one.namespace === namespace);
}

function taken(namespace: string, storeId: string, log: ScannedLog): string {
  const own = storesOf(namespace, log).find((one) => one.storeId === storeId);
  if (own === undefined) return `nothing of this store in ${log.name}`;
  const { greatest, leaseCount } = own;
  const { run } = runOfLedgerId(greatest.ledgerId);
  return `greatest run ${grouped(run)} (${greatest.event}, line ${grouped(greatest.line)}), of ${leases(leaseCount)} in ${log.name}`;
}

function othersOf(namespace: string, storeId: string, log: ScannedLog): readonly LoggedStore[] {
  return log.stores.filter((one) => one.namespace !== namespace || one.storeId !== storeId);
}

function notTaken({ namespace, storeId, leaseCount, greatest: { ledgerId } }: LoggedStore): string {
  const { run } = runOfLedgerId(ledgerId);
  return indented(
    `not taken: ${leases(leaseCount)} up to run ${grouped(run)} of namespace ${namespace}, store id ${storeId}`,
  );
}

function damageIn({ damaged, damagedCount }: ScannedLog): readonly string[] {
  if (damagedCount === 0) return [];
  const lines =
    damagedCount === 1 ? "1 line that can't be read was" : `${grouped(damagedCount)} lines that can't be read were`;
  return [
    indented(`${lines} passed over:`),
    ...damaged.map(({ line, why }) => indented(line === null ? `  ${why}` : `  line ${grouped(line)}: ${why}`)),
    ...(damagedCount > damaged.length ? [indented("  …")] : []),
  ];
}

function leases(leaseCount: number): string {
  return leaseCount === 1 ? "1 lease" : `${grouped(leaseCount)} leases`;
}

function labelled(text: string): readonly string[] {
  return [`  ${"the log".padEnd(19)}${text}`];
}

function indented(text: string): string {
  return `${" ".repeat(21)}${text}`;
}
