/** W3C trace context: what a caller sends stands on every log line of its request, and on no other. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { Coordinator } from "../src/coordinator.js";
import { EventHub } from "../src/events/events.js";
import { KEPT_MS, traceContextOf, withinTrace, withTraceFields } from "../src/events/trace-context.js";
import { createServer, type Server } from "../src/http/server.js";
import { SILENT_LOG } from "../src/log.js";
import { MemoryStore } from "../src/stores/memory.js";
import { type Outcome, type StepCommand } from "../src/stores/store.js";

const TRACE_ID = "0af7651916cd43dd8448eb211c80319c";
const SPAN_ID = "b7ad6b7169203331";
const PARENT = `00-${TRACE_ID}-${SPAN_ID}-01`;
const CONTEXT = { traceId: TRACE_ID, parentSpanId: SPAN_ID, traceFlags: "01" };

describe("a traceparent", () => {
  test.each([
    ["of version 00", PARENT, CONTEXT],
    ["that is not recorded", PARENT.replace(/01$/, "00"), { ...CONTEXT, traceFlags: "00" }],
    ["of a later version", PARENT.replace(/^00/, "cc"), CONTEXT],
    ["of a later version with more behind it", `${PARENT.replace(/^00/, "cc")}-what-comes`, CONTEXT],
  ])("%s is taken", (_, traceparent, context) => {
    expect(traceContextOf({ traceparent })).toEqual(context);
  });

  test.each([
    ["nothing", undefined],
    ["empty", ""],
    ["of the version that is none", PARENT.replace(/^00/, "ff")],
    ["of version 00 with more behind it", `${PARENT}-more`],
    ["of a later version with something glued to it", `${PARENT.replace(/^00/, "cc")}.more`],
    ["in capitals", PARENT.toUpperCase()],
    ["with a trace id of zeros", `00-${"0".repeat(32)}-${SPAN_ID}-01`],
    ["with a span id of zeros", `00-${TRACE_ID}-${"0".repeat(16)}-01`],
    ["too short", `00-${TRACE_ID.slice(1)}-${SPAN_ID}-01`],
    ["with other characters", PARENT.replace("a", "g")],
    ["sent twice", `${PARENT}, ${PARENT}`],
    ["with a line feed", `${PARENT}\n`],
  ])("that is %s is ignored", (_, traceparent) => {
    expect(traceContextOf({ traceparent, tracestate: "a=1" })).toBeUndefined();
  });
});

describe("a tracestate", () => {
  test.each(["rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "a=1", "a=1, b=2 2,,c=3", "fw529a3039@dt=FfAL"])(
    "such as %s goes with it",
    (tracestate) => {
      expect(traceContextOf({ traceparent: PARENT, tracestate })).toEqual({ ...CONTEXT, traceState: tracestate });
    },
  );

  test.each(["", "A=1", "a", "a=", "=1", "a=b=c", "a=ü", `a=${"x".repeat(600)}`])(
    "such as %j is left out",
    (tracestate) => {
      expect(traceContextOf({ traceparent: PARENT, tracestate })).toEqual(CONTEXT);
    },
  );
});

describe("the keeping of contexts", () => {
  test("ends when none has come for a while, and begins again with the next", async () => {
    vi.useFakeTimers();
    try {
      const told = () => withTraceFields({ a: 1 });
      const seen: object[] = [];
      await withinTrace({ traceparent: PARENT }, async () => {
        vi.advanceTimersByTime(KEPT_MS - 1);
        withinTrace({ traceparent: PARENT }, () => {});
        vi.advanceTimersByTime(KEPT_MS - 1);
        await Promise.resolve();
        seen.push(told());
        vi.advanceTimersByTime(1);
        await Promise.resolve();
        seen.push(told());
      });
      expect(seen).toEqual([{ a: 1, ...CONTEXT }, { a: 1 }]);
      expect(withinTrace({ traceparent: PARENT }, told)).toEqual({ a: 1, ...CONTEXT });
    } finally {
      vi.useRealTimers();
    }
  });
});

class GatedStore extends MemoryStore {
  gate: Promise<void> = Promise.resolve();
  override async step(namespace: string, command: StepCommand): Promise<Outcome> {
    if (command.step === "lease") await this.gate;
    return super.step(namespace, command);
  }
}

describe("the log lines of a request", () => {
  const body = {
    runCount: 1,
    nonce: "nonce-0123456789",
    holder: { name: "importer", host: "mail-1", pid: 4711, labels: {} },
    lastRun: null,
    receipt: null,
    sentAtMs: 1_700_000_000_000,
  };
  let told: { event: string; fields: Readonly<Record<string, unknown>> }[];
  let store: GatedStore;
  let server: Server;
  let base: string;

  beforeEach(async () => {
    told = [];
    store = new GatedStore();
    const events = new EventHub(SILENT_LOG);
    events.subscribe(({ event, fields }) => told.push({ event, fields: fields as Record<string, unknown> }));
    const coordinator = new Coordinator({ store, name: "test", log: events });
    await coordinator.initNamespace("main");
    server = await createServer({ coordinator, release: "0.0.0", events });
    base = await server.listen({ host: "127.0.0.1", port: 0 });
    told.length = 0;
  });
  afterEach(() => server.stop());

  const post = (path: string, content: unknown, headers: Record<string, string> = {}) =>
    fetch(`${base}/v1/namespaces/main/${path}`, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: typeof content === "string" ? content : JSON.stringify(content),
    });

  test("bear its context: lease, report, refusal, and what is told on the way", async () => {
    const headers = { traceparent: PARENT, tracestate: "a=1" };
    await post("leases", body, headers);
    await post("runs/1/report", { nonce: body.nonce, lastSequence: 5, state: "open" }, headers);
    await post("leases", { ...body, sentAtMs: Date.now() + 3_600_000 }, headers);
    await post("leases", "{", headers);
    await post("leases", { ...body, runCount: 0 }, headers);
    await fetch(`${base}/nowhere`, { headers });
    expect(told.map(({ event }) => event)).toEqual([
      "pin",
      "lease",
      "report",
      "clocks_disagree",
      "refusal",
      "refusal",
      "refusal",
      "refusal",
    ]);
    for (const { fields } of told) expect(fields).toMatchObject({ ...CONTEXT, traceState: "a=1" });
  });

  test("bear nothing when it sends none, or a malformed one", async () => {
    await post("leases", body);
    await post("leases", body, { traceparent: "00-nonsense" });
    for (const { fields } of told) expect(fields).not.toHaveProperty("traceId");
  });

  test("are told apart while several wait at the same time", async () => {
    let open = () => {};
    store.gate = new Promise((resolve) => {
      open = resolve;
    });
    const traceOf = (index: number) => TRACE_ID.slice(0, -1) + index;
    const waiting = [1, 2, 3, 4].map((index) =>
      post(
        "leases",
        { ...body, nonce: `nonce-of-the-request-${index}` },
        index === 4 ? {} : { traceparent: PARENT.replace(TRACE_ID, traceOf(index)) },
      ),
    );
    open();
    await Promise.all(waiting);
    const leases = told.filter(({ event }) => event === "lease").map(({ fields }) => fields);
    expect(leases).toHaveLength(4);
    for (const { nonce, traceId } of leases) {
      const index = Number((nonce as string).at(-1));
      expect(traceId).toBe(index === 4 ? undefined : traceOf(index));
    }
  });
});
