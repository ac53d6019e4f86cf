/** What pages of other sites can do where no token is required, also under a name that leads here; and hostile text on the page. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { CapacityResponse, LedgerEntry, NamespacesResponse, RunsResponse } from "@callnumber/protocol/schemas";
import type { Page, Response } from "playwright-core";
import { expect, onTestFinished, test } from "vitest";
import { chromiumForFile, expectAccessible, PHONE, untilLoaded } from "./browser.js";
import { openConsole } from "./consoles.js";

// Every name but the coordinator's own address leads to this machine: that is how a rebound name looks.
const browser = chromiumForFile("--host-resolver-rules=MAP *.example 127.0.0.1");

/** Everything that a page can try against `at`, each with its result in `seen`; at the end the title is `tried`. */
const ATTACK = `<!doctype html><title>trying</title><body><script type="module">
const at = new URLSearchParams(location.search).get("at");
const seen = {};
const within = (promise) => Promise.race([promise, new Promise((_, reject) => setTimeout(() => reject(new Error("nothing came")), 3000))]);
const attempt = async (name, run) => { try { seen[name] = String(await within(run())); } catch (error) { seen[name] = "refused"; } };
const get = (path, options) => fetch(at + path, { credentials: "include", ...options }).then(async (answer) => answer.type + " " + await answer.text());
const body = JSON.stringify({ runCount: 1, nonce: "nonce-of-another-site", lastRun: null, proof: null, sentAtMs: 0, holder: { name: "evil", host: "evil", pid: 1, labels: {} } });
const lease = (type, mode) => get("/v1/namespaces/main/leases", { method: "POST", mode, headers: { "content-type": type }, body });
const loaded = (element, name) => new Promise((resolve, reject) => { element.onload = () => resolve(name); element.onerror = () => reject(); document.body.append(element); });
await attempt("read", () => get("/v1/namespaces"));
await attempt("read without being allowed to", () => get("/v1/namespaces", { mode: "no-cors" }));
await attempt("read with a header", () => get("/v1/namespaces", { headers: { "x-any": "1" } }));
await attempt("lease", () => lease("application/json"));
await attempt("lease as a form would", () => lease("text/plain", "no-cors"));
await attempt("stream", () => new Promise((resolve, reject) => {
  const source = new EventSource(at + "/v1/events?recent=yes", { withCredentials: true });
  source.onopen = () => resolve("open"); source.onerror = () => { source.close(); reject(); };
}));
await attempt("image", () => loaded(Object.assign(new Image(), { src: at + "/v1/namespaces/main/status" }), "loaded"));
await attempt("its own image", () => loaded(Object.assign(new Image(), { src: at + "/console/favicon.svg" }), "loaded"));
await attempt("script", () => loaded(Object.assign(document.createElement("script"), { src: at + "/v1/namespaces" }), "loaded"));
await attempt("style", () => loaded(Object.assign(document.createElement("link"), { rel: "stylesheet", href: at + "/v1/namespaces" }), "loaded"));
for (const path of ["/console/", "/v1/namespaces"]) await attempt("frame " + path, async () => {
  const frame = Object.assign(document.createElement("iframe"), { src: at + path });
  await loaded(frame, "");
  return frame.contentDocument.body.innerText;
});
for (const path of ["/v1/namespaces/main/leases", "/v1/namespaces/main/runs/1/report"]) await attempt("form " + path, async () => {
  const frame = Object.assign(document.createElement("iframe"), { name: "f" + path.length });
  document.body.append(frame);
  const form = Object.assign(document.createElement("form"), { method: "post", action: at + path, target: frame.name, enctype: "text/plain" });
  const middle = body.indexOf("evil");
  form.append(Object.assign(document.createElement("input"), { name: body.slice(0, middle), value: body.slice(middle) }));
  document.body.append(form);
  const done = new Promise((resolve) => { frame.onload = resolve; });
  form.submit();
  await done;
  return frame.contentDocument.body.innerText;
});
await attempt("window", async () => {
  const opened = window.open(at + "/console/#/main");
  await new Promise((resolve) => setTimeout(resolve, 1000));
  return opened.document.body.innerText;
});
document.title = "tried";
window.seen = seen;
</script>`;

/** Starts the web server of another site. Resolves to its port. */
async function otherSite(): Promise<number> {
  const server = createServer((_, response) => response.setHeader("content-type", "text/html").end(ATTACK));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

async function tried(page: Page, origin: string, at: string) {
  const answers: Response[] = [];
  // Of this page and its frames, not of a window that it opens.
  page.on("response", (response) => {
    if (response.url().startsWith(at)) answers.push(response);
  });
  await page.goto(`${origin}/?at=${encodeURIComponent(at)}`);
  await expect.poll(() => page.title()).toBe("tried");
  return { seen: await page.evaluate<Record<string, string>>("seen"), answers };
}

test.each([
  ["another port of the same host", "127.0.0.1"],
  ["another host", "evil.example"],
])("a page on %s reads nothing and changes nothing", async (_, host) => {
  const { page, visit, url: consoleUrl } = await openConsole(browser());
  const { origin: url } = new URL(consoleUrl);
  await visit("/main");
  await page.locator(".notice-title", { hasText: "Leasing is active" }).waitFor();
  // Another window of the same browser.
  const evil = await page.context().newPage();
  const { seen, answers } = await tried(evil, `http://${host}:${await otherSite()}`, url);
  const { "read without being allowed to": opaque, ...rest } = seen;
  const quiet = new Set(["lease as a form would"]);
  expect([undefined, "refused", "opaque "]).toContain(opaque);
  for (const [name, got] of Object.entries(rest))
    expect([name, got]).toEqual([name, quiet.has(name) ? expect.stringMatching(/^(refused|opaque )$/) : "refused"]);
  expect(Object.keys(seen).length).toBeGreaterThan(12);
  // Nor did the coordinator respond with anything that only the browser kept from that page, except the files of the console.
  const answered = answers.filter((answer) => answer.ok()).map((answer) => new URL(answer.url()).pathname);
  expect(answered.filter((path) => !path.startsWith("/console/"))).toEqual([]);
  expect(answers.filter((answer) => answer.ok() && answer.request().method() !== "GET")).toEqual([]);
  const { namespaces } = (await (await fetch(`${url}/v1/namespaces`)).json()) as NamespacesResponse;
  expect(namespaces).toMatchObject([{ record: { runsUsed: 0 } }]);
});

test("a page under a rebound name reads nothing", async () => {
  const { page, url } = await openConsole(browser());
  const evil = await page.context().newPage();
  // Whatever is there: a page of the coordinator, or none.
  await evil.goto(`http://evil.example:${new URL(url).port}/healthz`);
  const read = (path: string) =>
    evil.evaluate<string>(`fetch("${path}", { credentials: "include" }).then((a) => a.status + " " + a.type)`);
  for (const path of ["/v1/namespaces", "/v1/namespaces/main/runs", "/v1/events"])
    expect(await read(path), path).toBe("403 basic");
});

const MARKUP = `<img src=x onerror="window.pwned=1"><script>window.pwned=1</script>`;
const TURNED = "good\u202egnp.exe\u2066";
const ANSI = "\u001b[31mred\u001b]8;;http://evil.example\u0007link";
const HOSTILE = [
  MARKUP,
  `"><svg onload=window.pwned=1>`,
  "javascript:window.pwned=1",
  TURNED,
  ANSI,
  "{{7*7}}${7*7}",
  "x".repeat(64),
  "\u0000\u0008",
];
const LONG = "W".repeat(4_000);

const holder = (name: string) => ({ name, host: `${name}.host`, pid: 1, labels: { team: name } });

function entry(name: string, index: number): LedgerEntry {
  return {
    version: 0,
    firstRun: index + 1,
    runCount: 1,
    leasedAtMs: 1_795_250_506_950,
    holder: holder(name),
    coordinator: name,
    nonce: "nonce-of-this-request",
    progress: null,
  } as unknown as LedgerEntry;
}

/** As a coordinator or store that was taken over responds: no schema protects the page. */
async function respondHostilely(page: Page): Promise<void> {
  const texts = [...HOSTILE, LONG];
  const runs: RunsResponse = { leases: texts.map(entry), nextCursor: MARKUP, trimmed: null } as never;
  const guard = { state: "stopped", code: MARKUP, sinceMs: 0, explanation: texts.join(" ") };
  const namespaces = {
    store: MARKUP,
    coordinator: TURNED,
    release: ANSI,
    namespaces: ["main", ...texts].map((namespace) => ({ namespace, record: null, guard })),
  } as unknown as NamespacesResponse;
  const capacity = {
    namespace: "main",
    rates: [],
    lookedAt: { leaseCount: 9, fromMs: 0 },
    holders: texts.map((name) => ({
      name,
      leaseCount: 1,
      runCount: 1,
      share: 0.1,
      lastLeaseAtMs: 0,
      isLive: true,
    })),
    alarms: texts.map((explanation) => ({ name: MARKUP, severity: "critical", explanation })),
  } as unknown as CapacityResponse;
  const events = texts.map((text, id) => ({
    id,
    atMs: 0,
    level: "warn",
    event: id % 2 === 0 ? "stopped" : text,
    namespace: null,
    code: null,
    fields: { explanation: text, reason: text },
  }));
  const body = events.map((event) => `id: a-${event.id}\ndata: ${JSON.stringify(event)}\n\n`).join("");
  for (const [path, response] of Object.entries({
    "/*/runs?*": { json: runs },
    "/*/capacity": { json: capacity },
    "": { json: namespaces },
    "/*/status": { status: 503, json: { code: MARKUP, message: texts.join(" ") } },
    "/*/call-numbers/*": { status: 400, json: { code: MARKUP, message: MARKUP + TURNED } },
  }))
    await page.route(`**/v1/namespaces${path}`, (route) => route.fulfill(response));
  const stream = { contentType: "text/event-stream", body: `retry: 60000\n\n${body}` };
  await page.route("**/v1/events?*", (route) => route.fulfill(stream));
}

test.each([
  ["overview", "/main"],
  ["runs", "/main/runs"],
  ["recovery", "/main/recovery"],
  ["a URL with markup", `/main/recovery/${encodeURIComponent(MARKUP)}`],
  ["a namespace of markup", `/${encodeURIComponent(MARKUP)}/runs`],
  ["filters of markup", `/main/runs?holder=${encodeURIComponent(MARKUP)}&label=${encodeURIComponent(TURNED)}`],
  ["a run of markup", `/main/runs/${encodeURIComponent(MARKUP)}`],
  ["a call number of markup", `/main/inspect/${encodeURIComponent(MARKUP)}`],
  ["a call number that turns round", `/main/inspect/${encodeURIComponent(TURNED + ANSI)}`],
  ["a very long call number", `/main/inspect/${LONG}`],
  ["an escape that is none", "/main/inspect/%E0%A4%A"],
])("hostile text stays text: %s", async (name, place) => {
  const { page, visit } = await openConsole(browser(), { viewport: PHONE });
  await respondHostilely(page);
  await visit(place);
  await untilLoaded(page);
  expect(await page.evaluate("globalThis.pwned")).toBeUndefined();
  const made =
    "document.querySelectorAll('main img, main script, main svg[onload], [onerror], [href^=\"javascript:\" i]').length";
  expect(await page.evaluate(made)).toBe(0);
  const shown = await page.evaluate<string>("document.body.innerText");
  // No character that changes the direction, is invisible, or controls a terminal.
  expect(/[^\P{C}\n\t]/u.exec(shown)?.[0].codePointAt(0)?.toString(16)).toBeUndefined();
  if (name === "runs") expect(shown).toContain(`${MARKUP}`);
  if (name === "runs") expect(shown).toContain("good\\u{202e}gnp.exe\\u{2066}");
  await expectAccessible(page, `hostile ${name}`);
});
