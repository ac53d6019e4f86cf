/** Reads an answer of /metrics: each sample by its name and labels, as Prometheus sees them. */
export type Samples = ReadonlyMap<string, number>;

/** `name{a="1",b="2"}` to the value; labels sorted. */
export function samplesIn(text: string): Samples {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => {
      const [, name, labels, value] = /^([a-z0-9_]+)(?:\{(.*)\})? (\S+)$/.exec(line) ?? [];
      if (name === undefined) throw new Error(`no sample: ${line}`);
      return [keyOf(name, labels ?? ""), Number(value)] as const;
    }),
  );
}

/** The names of all metrics in an answer; of a histogram the one name that its samples share. */
export function metricNamesIn(text: string): readonly string[] {
  return [...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name as string);
}

function keyOf(name: string, labels: string): string {
  if (labels === "") return name;
  const sorted = [...labels.matchAll(/[a-z]+="[^"]*"/g)].map(([label]) => label).sort();
  return `${name}{${sorted.join(",")}}`;
}
