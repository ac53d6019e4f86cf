/** The filters of the runs page: in the URL of the page, in requests, and as a form. */
import type { KnownRunState } from "@callnumber/protocol/api";
import { formatZone } from "../format.js";
import { go, urlOf } from "../route.js";

interface RunFilter {
  readonly name: string;
  readonly title: string;
  readonly kind: "text" | "choice" | "time" | "run";
}

const RUN_FILTERS: readonly RunFilter[] = [
  { name: "holder", title: "Holder", kind: "text" },
  { name: "host", title: "Host", kind: "text" },
  { name: "label", title: "Label", kind: "text" },
  { name: "state", title: "State", kind: "choice" },
  { name: "leasedFromMs", title: "Leased from", kind: "time" },
  { name: "leasedToMs", title: "Leased until", kind: "time" },
  { name: "fromRun", title: "Run from", kind: "run" },
  { name: "toRun", title: "Run to", kind: "run" },
];
const STATES: readonly KnownRunState[] = ["open", "exhausted", "closed", "discarded", "skipped", "unreported"];

interface Properties {
  readonly namespace: string;
  readonly filters: Readonly<Record<string, string>>;
}

/** The filters in a URL, without empty and unknown ones. */
export function filtersIn(query: URLSearchParams): Readonly<Record<string, string>> {
  const known = RUN_FILTERS.map(({ name }) => [name, query.get(name) ?? ""] as const);
  return Object.fromEntries(known.filter(([, value]) => value !== ""));
}

/** Nothing is requested before it is submitted, by Enter or the button. */
export function RunFilterForm({ namespace, filters }: Properties) {
  const submit = (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const entries = RUN_FILTERS.map(({ name, kind }) => {
      const text = String(form.get(name) ?? "").trim();
      return [name, kind === "time" ? fromFieldTime(text) : text] as const;
    });
    go(urlOf(namespace, "runs", "", Object.fromEntries(entries)));
  };
  const count = Object.keys(filters).length;
  return (
    <details class="filters" open={count > 0 || matchMedia("(width >= 44rem)").matches}>
      <summary>Filter{count > 0 && ` (${count})`}</summary>
      <form onSubmit={submit}>
        {RUN_FILTERS.map((filter) => (
          <label key={filter.name}>
            <small>
              {filter.title}
              {filter.kind === "time" && ` (${formatZone(Date.now())})`}
            </small>
            <Field filter={filter} value={filters[filter.name] ?? ""} />
          </label>
        ))}
        <div class="buttons">
          <button type="submit">Show</button>
          {count > 0 && <a href={urlOf(namespace, "runs")}>Show all</a>}
        </div>
      </form>
    </details>
  );
}

function Field({ filter: { name, kind }, value }: { filter: RunFilter; value: string }) {
  if (kind === "choice") {
    return (
      <select name={name} defaultValue={value}>
        <option value="">any</option>
        {STATES.map((state) => (
          <option key={state} value={state} selected={state === value}>
            {state}
          </option>
        ))}
      </select>
    );
  }
  if (kind === "time") return <input type="datetime-local" name={name} defaultValue={toFieldTime(value)} />;
  const placeholder = kind === "run" ? "1/65556" : name === "label" ? "name=value" : "";
  return <input name={name} defaultValue={value} placeholder={placeholder} autocomplete="off" spellcheck={false} />;
}

/** Local time, as a field of the browser shows it; empty for an invalid one. */
function toFieldTime(timeMs: string): string {
  const atMs = Number(timeMs);
  if (timeMs === "" || Number.isNaN(new Date(atMs).getTime())) return "";
  const zoneMs = new Date(atMs).getTimezoneOffset() * 60_000;
  return new Date(atMs - zoneMs).toISOString().slice(0, 16);
}

function fromFieldTime(text: string): string {
  const atMs = new Date(text).getTime();
  return Number.isNaN(atMs) ? "" : String(atMs);
}
