/** The filters of the runs page as a form. Nothing is asked before it is sent, by Enter or the button. */
import { RUN_COUNT, VERSION_COUNT } from "@callnumber/protocol/codec";
import { addressOf, go } from "../route.js";
import { asFieldTime, fromFieldTime, RUN_FILTERS, type RunFilter } from "../run-filters.js";

/** Runs are named by their ledger ids, which rise over all versions. */
const LEDGER_ID_MAX = VERSION_COUNT * RUN_COUNT - 1;

interface Properties {
  readonly namespace: string;
  readonly filters: Readonly<Record<string, string>>;
}

export function RunFilterForm({ namespace, filters }: Properties) {
  const send = (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const entries = RUN_FILTERS.map(({ name, kind }) => {
      const text = String(form.get(name) ?? "").trim();
      return [name, kind === "time" ? fromFieldTime(text) : text] as const;
    });
    go(addressOf(namespace, "runs", "", Object.fromEntries(entries)));
  };
  const count = Object.keys(filters).length;
  return (
    <details class="filters" open={count > 0 || matchMedia("(width >= 44rem)").matches}>
      <summary>Filter{count > 0 && ` (${count})`}</summary>
      <form onSubmit={send}>
        {RUN_FILTERS.map((filter) => (
          <label key={filter.name}>
            <span>{filter.title}</span>
            <Field filter={filter} value={filters[filter.name] ?? ""} />
          </label>
        ))}
        <div class="buttons">
          <button type="submit">Show</button>
          {count > 0 && <a href={addressOf(namespace, "runs")}>Show all</a>}
        </div>
      </form>
    </details>
  );
}

function Field({ filter: { name, kind, hint, choices = [] }, value }: { filter: RunFilter; value: string }) {
  if (kind === "choice") {
    return (
      <select name={name} defaultValue={value}>
        <option value="">any</option>
        {choices.map((choice) => (
          <option key={choice} value={choice} selected={choice === value}>
            {choice}
          </option>
        ))}
      </select>
    );
  }
  if (kind === "time") return <input type="datetime-local" name={name} defaultValue={asFieldTime(value)} />;
  if (kind === "run") return <input type="number" name={name} min={0} max={LEDGER_ID_MAX} defaultValue={value} />;
  return (
    <input type="text" name={name} defaultValue={value} placeholder={hint} autocomplete="off" spellcheck={false} />
  );
}
