/** The filters of the runs page: as the address keeps them, and as the coordinator and its export take them. Pure. */
import { PAGE_LIMIT_DEFAULT } from "@callnumber/protocol/wire";

export interface RunFilter {
  readonly name: string;
  readonly title: string;
  readonly kind: "text" | "choice" | "time" | "run";
  readonly hint?: string;
  readonly choices?: readonly string[];
}

export const RUN_FILTERS: readonly RunFilter[] = [
  { name: "holder", title: "Holder", kind: "text" },
  { name: "host", title: "Host", kind: "text" },
  { name: "label", title: "Label", kind: "text", hint: "name=value" },
  { name: "state", title: "State", kind: "choice", choices: ["open", "exhausted", "closed", "burnt", "unreported"] },
  { name: "leasedFromMs", title: "Leased from", kind: "time" },
  { name: "leasedToMs", title: "Leased until", kind: "time" },
  { name: "fromRun", title: "Run from", kind: "run" },
  { name: "toRun", title: "Run to", kind: "run" },
];

/** What stands in an address, without what is empty and without what is no filter. */
export function filtersIn(query: URLSearchParams): Readonly<Record<string, string>> {
  const known = RUN_FILTERS.map(({ name }) => [name, query.get(name) ?? ""] as const);
  return Object.fromEntries(known.filter(([, value]) => value !== ""));
}

/** As the coordinator asks for them. */
export function queryOf(filters: Readonly<Record<string, string>>, cursor: string): string {
  const asked = new URLSearchParams({ ...filters, limit: String(PAGE_LIMIT_DEFAULT) });
  if (cursor !== "") asked.set("cursor", cursor);
  return asked.toString();
}

/** Local time, as a browser's field shows it; empty for what is no time. */
export function asFieldTime(timeMs: string): string {
  const atMs = Number(timeMs);
  if (timeMs === "" || Number.isNaN(new Date(atMs).getTime())) return "";
  const zoneMs = new Date(atMs).getTimezoneOffset() * 60_000;
  return new Date(atMs - zoneMs).toISOString().slice(0, 16);
}

export function fromFieldTime(text: string): string {
  const atMs = new Date(text).getTime();
  return Number.isNaN(atMs) ? "" : String(atMs);
}
