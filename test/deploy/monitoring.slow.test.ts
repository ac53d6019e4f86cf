/** What operators load into Prometheus and Grafana: rules that fire when they should, and no metric that the coordinator does not have. */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createClient } from "@callnumber/client";
import { Coordinator, createServer, EventHub, openStore, parseStoreUrl } from "@callnumber/coordinator";
import { beforeAll, expect, test } from "vitest";
import { metricNamesIn, samplesIn } from "../../packages/coordinator/test/metrics-text.js";
import { folderForTest, REPOSITORY } from "../processes/command.js";
import { ALERT_CASES, type AlertCase, CASES_BEFORE_FIRST_SCRAPE } from "./alert-cases.js";

const RULES = join(REPOSITORY, "deploy", "monitoring", "callnumber-rules.yml");
const DASHBOARD = join(REPOSITORY, "deploy", "monitoring", "callnumber-dashboard.json");
const rules = readFileSync(RULES, "utf8");
const dashboard = JSON.parse(readFileSync(DASHBOARD, "utf8")) as Dashboard;
const documentation = readFileSync(join(REPOSITORY, "docs", "reference", "metrics-and-events.md"), "utf8");
/** Prometheus' own checker comes with Debian's package prometheus, which is too large to be downloaded for these tests. */
const HAS_PROMTOOL = spawnSync("promtool", ["--version"]).error === undefined;

interface Dashboard {
  readonly panels: readonly {
    readonly id: number;
    readonly type: string;
    readonly title: string;
    readonly datasource?: { readonly uid: string };
    readonly targets?: readonly { readonly expr: string }[];
  }[];
  readonly templating: { readonly list: readonly { readonly name: string; readonly type: string }[] };
}

const alertNames = [...rules.matchAll(/^ {6}- alert: (\S+)$/gm)].map(([, name]) => name as string);
const recorded = [...rules.matchAll(/^ {6}- record: (\S+)$/gm)].map(([, name]) => name as string);

/** What a real coordinator returns: at first, and after a lease and a rejection. */
let first = "";
let metrics = "";

beforeAll(async () => {
  const { store } = await openStore(parseStoreUrl("memory:"), { create: true });
  const events = new EventHub({ debug() {}, info() {}, warn() {}, error() {} });
  const coordinator = new Coordinator({ store, name: "monitored", log: events });
  await coordinator.initNamespace("main");
  coordinator.startHeartbeat();
  const server = createServer({ coordinator, release: "0.0.0", events });
  const url = await server.listen({ host: "127.0.0.1", port: 0 });
  const scrape = async () => await (await fetch(`${url}/metrics`)).text();
  first = await scrape();
  const client = createClient({ coordinator: url, holder: { name: "importer" } });
  await client.next();
  await client.close();
  await fetch(`${url}/v1/namespaces/missing/status`);
  metrics = await scrape();
  await server.stop();
  await coordinator.stopHeartbeat();
});

/** Every metric that an expression names, without the endings that a histogram's series have. */
function metricsNamedIn(text: string): string[] {
  const known = new Set(metricNamesIn(metrics));
  const names = [...text.matchAll(/(?<![\w:])(callnumber|process|nodejs)_\w+\b(?!:)/g)].map(([name]) => name);
  return names.map((name) => (known.has(name) ? name : name.replace(/_(bucket|sum|count)$/, "")));
}

test.runIf(HAS_PROMTOOL)("/metrics passes Prometheus' own checker", () => {
  expect(promtool(["check", "metrics"], metrics)).toEqual({ code: 0, output: "" });
});

test("/metrics has every metric of docs/reference/metrics-and-events.md, and no other", () => {
  const ours = metricNamesIn(metrics).filter((name) => name.startsWith("callnumber_"));
  const rows = [...documentation.matchAll(/^\| `(callnumber_\w+)/gm)].map(([, name]) => name as string);
  expect(rows.sort()).toEqual([...ours].sort());
});

test("/metrics has the labels of docs/reference/metrics-and-events.md", () => {
  for (const [, name, text] of documentation.matchAll(/^\| `(callnumber_\w+)` +\| ([^|]*)\|/gm)) {
    const [, labels] = new RegExp(`^${name}(?:_count)?\\{(.*)\\} `, "m").exec(metrics) ?? [];
    // One that counts nothing yet has no sample.
    if (labels === undefined) continue;
    const names = [...labels.matchAll(/([a-z]+)="/g)].map(([, label]) => label as string).sort();
    const documented = [...(text as string).matchAll(/`([a-z]+)`/g)].map(([, label]) => label as string).sort();
    expect(documented, name).toEqual(names);
  }
});

test("the rules name only metrics that the coordinator has, and series that they record", () => {
  const known = new Set(metricNamesIn(metrics));
  expect(metricsNamedIn(rules).filter((name) => !known.has(name))).toEqual([]);
  const named = [...rules.matchAll(/namespace:callnumber_\w+:\w+/g)].map(([name]) => name);
  expect(new Set(named)).toEqual(new Set(recorded));
});

test("each alert has a severity, a summary, and a description with what to do", () => {
  const alerts = rules.split(/^ {6}- (?=alert|record)/m).filter((text) => text.startsWith("alert"));
  expect(alerts).toHaveLength(alertNames.length);
  for (const alert of alerts) {
    expect(alert).toMatch(/^ {8}for: \d+[mh]$/m);
    expect(alert).toMatch(/labels: \{ severity: (critical|warning|info) \}/);
    expect(alert).toMatch(/summary: "/);
    expect(alert).toMatch(/description:[^]*(callnumber [a-z]+|log|docs\/|type|Type)/);
  }
});

test("each alert has a row in docs/reference/metrics-and-events.md and a case, and none is left over", () => {
  const rows = [...documentation.matchAll(/^\| `(Callnumber\w+)`/gm)].map(([, name]) => name as string);
  expect(rows.sort()).toEqual([...alertNames].sort());
  expect([...new Set(ALERT_CASES.map(([alert]) => alert))].sort()).toEqual([...alertNames].sort());
});

test("the series of the cases begin as those of a real coordinator", () => {
  const samples = samplesIn(first);
  const series = ALERT_CASES.flatMap(([alert, fires, silent]) =>
    [fires, silent].flatMap((one) => Object.entries(one)).map(([name, values]) => ({ alert, name, values })),
  );
  const ours = series.filter(({ name }) => name.startsWith("callnumber_"));
  const untrue = ours.filter(({ name, values }) => {
    const value = samples.get(asScraped(name));
    // Gauges may begin anywhere.
    if (value === undefined || values.startsWith("_")) return value !== undefined || !values.startsWith("_");
    return /_(total|bucket)\{/.test(name) && !values.startsWith(`${value}`);
  });
  expect(untrue).toEqual([]);
});

test.runIf(HAS_PROMTOOL)("the rules pass Prometheus' own checker", () => {
  expect(promtool(["check", "rules", RULES])).toMatchObject({ code: 0 });
});

test.runIf(HAS_PROMTOOL)("each alert fires when it should, and is silent when not", async () => {
  const file = join(await folderForTest(), "alerts.json");
  const tests = [...CASES_BEFORE_FIRST_SCRAPE, ...ALERT_CASES].flatMap((one) => [
    alertTest(one, true),
    alertTest(one, false),
  ]);
  writeFileSync(file, JSON.stringify({ rule_files: [RULES], evaluation_interval: "1m", tests }));
  const { code, output } = promtool(["test", "rules", file]);
  expect(output).not.toContain("FAILED");
  expect(code).toBe(0);
});

/** As `samplesIn` names it: a scrape adds the instance. */
function asScraped(series: string): string {
  const [name, labels = ""] = series.replace(/\}$/, "").split("{");
  const sorted = labels
    .split(",")
    .filter((label) => !label.startsWith("instance="))
    .sort();
  return sorted.length === 0 ? (name as string) : `${name}{${sorted.join(",")}}`;
}

/** Compares how many alerts of the name fire, whatever their text. */
function alertTest([alert, fires, silent, atMinutes = 30]: AlertCase, isFiring: boolean): object {
  const series = Object.entries(isFiring ? fires : silent);
  const expr = `sum(ALERTS{alertname="${alert}",alertstate="firing"}) or vector(0)`;
  const exp_samples = [{ labels: "{}", value: isFiring ? 1 : 0 }];
  return {
    name: `${alert} ${isFiring ? "fires" : "is silent"}`,
    interval: "1m",
    input_series: series.map(([name, values]) => ({ series: name, values })),
    promql_expr_test: [{ expr, eval_time: `${atMinutes}m`, exp_samples }],
  };
}

/** Runs promtool. Returns its exit code and everything it printed. */
function promtool(args: readonly string[], input = ""): { readonly code: number | null; readonly output: string } {
  const { status, stdout, stderr } = spawnSync("promtool", args, { input, encoding: "utf8" });
  return { code: status, output: `${stdout}${stderr}` };
}

const panels = dashboard.panels.filter(({ type }) => type !== "row");
const expressions = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));

test("the dashboard shows every metric of the coordinator, and no other", () => {
  const known = metricNamesIn(metrics);
  const shown = expressions.flatMap(metricsNamedIn);
  expect(shown.length).toBeGreaterThan(30);
  expect(shown.filter((name) => !known.includes(name))).toEqual([]);
  expect(known.filter((name) => name.startsWith("callnumber_") && !shown.includes(name))).toEqual([]);
});

test("each panel of the dashboard has a title of its own, an expression and the data source of a variable", () => {
  expect(dashboard.templating.list.map(({ name, type }) => [name, type])).toEqual([
    ["datasource", "datasource"],
    ["namespace", "query"],
  ]);
  expect(new Set(dashboard.panels.map(({ id }) => id)).size).toBe(dashboard.panels.length);
  expect(new Set(panels.map(({ title }) => title)).size).toBe(panels.length);
  for (const { datasource, targets = [] } of panels) {
    expect(datasource?.uid).toBe("${datasource}");
    expect(targets.length).toBeGreaterThan(0);
  }
});

test.runIf(HAS_PROMTOOL)("the expressions of the dashboard pass Prometheus' own checker", async () => {
  const file = join(await folderForTest(), "expressions.json");
  const filled = expressions.map((expr, index) => ({
    record: `dashboard:expression:${index}`,
    expr: expr.replaceAll("$__rate_interval", "5m").replaceAll("$namespace", "main"),
  }));
  writeFileSync(file, JSON.stringify({ groups: [{ name: "dashboard", rules: filled }] }));
  expect(promtool(["check", "rules", file])).toMatchObject({ code: 0 });
});
