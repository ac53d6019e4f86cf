/** What a client does with responses that are lost, half, slow, stale or wrong: none of their runs is used. */
import { setTimeout as delay } from "node:timers/promises";
import type { Lease } from "@callnumber/protocol/api";
import { RUN_MAX, SEQUENCE_COUNT, VERSION_MAX } from "@callnumber/protocol/codec";
import { BrokenRule } from "./driven-client.js";
import { type Rule, type Trial } from "./rule.js";
import { type Answer, grantedAfter, refusal, refused, response } from "./scripted-coordinator.js";

const SHORT_TIMEOUT_MS = 1_000;
/** A response that takes so long in all is late for every client, however slow the machine. */
const TRICKLE_MS = 12 * SHORT_TIMEOUT_MS;
const RETRY_AFTER_MS = 1_500;
/** A timer may fire a little early. */
const TIMER_MS = 50;
/** So many attempts in a row fail at once. Delays that double to 6.4 s, each random, are shorter in all only once in 30,000 times. */
const FAILURES = 7;
const FAILURES_MIN_MS = 600;

const half = (kept: (whole: string) => number): Answer => ({
  flaw: "it was in a response that ended early",
  respond: (lease, socket) => {
    const whole = response(201, lease);
    socket.end(whole.slice(0, kept(whole)));
  },
});

const chunkedHalf: Answer = {
  flaw: "it was in a chunked response that ended early",
  respond: (lease, socket) => {
    const body = JSON.stringify(lease);
    const size = (body.length + 5).toString(16);
    socket.end(`HTTP/1.1 201 Scripted\r\ntransfer-encoding: chunked\r\n\r\n${size}\r\n${body}`);
  },
};

const bodyStart = (whole: string) => whole.indexOf("\r\n\r\n") + 4;
const HALVES: readonly Answer[] = [
  half(() => 0),
  half(() => 10),
  half((whole) => bodyStart(whole) - 9),
  half(bodyStart),
  half((whole) => bodyStart(whole) + 30),
  half((whole) => whole.length - 1),
  chunkedHalf,
];

/** A response that differs from the right one in some fields. */
const altered = (fields: Readonly<Record<string, unknown>>): Answer => ({
  flaw: `its response had ${JSON.stringify(fields)}`,
  respond: (lease, socket) => socket.end(response(201, { ...lease, ...fields })),
});

const MALFORMED: readonly Answer[] = [
  ...[VERSION_MAX + 1, -1, 0.5, "0", null].map((version) => altered({ version })),
  ...[RUN_MAX + 1, -1, 1.5, "1", null].map((firstRun) => altered({ firstRun })),
  ...[0, 65, 1.5, "1"].map((runCount) => altered({ runCount })),
  altered({ firstRun: RUN_MAX, runCount: 2 }),
  ...["", "two words", 7, null].map((storeId) => altered({ storeId })),
  ...["short", 7, null].map((proof) => altered({ proof })),
  ...["null", "[]", '"run"', "7", "{}", "<html></html>", ""].map((body) => refused(201, body)),
];

/** A client meets each answer instead of a lease, and gets a right one afterwards. */
async function discards(trial: Trial, answers: readonly Answer[]): Promise<void> {
  let client = trial.start();
  for (const answer of answers) {
    trial.coordinator.answers.push(answer);
    const { callNumbers, error } = await client.ask("next 1");
    trial.judged({ callNumbers });
    // One that reported the failure has no run yet, and can meet the next one.
    if (error !== undefined) continue;
    await client.kill();
    client = trial.start();
  }
  await trial.take(client, 1);
}

/** The first request is answered when the second one has come, a little before that one. */
function lateAnswers(): readonly [Answer, Answer] {
  let hasRetried: () => void = () => {};
  const retried = new Promise<void>((resolve) => {
    hasRetried = resolve;
  });
  const late: Answer = {
    flaw: "it came after the time limit of its request",
    respond: async (lease, socket) => {
      await retried;
      socket.end(response(201, lease));
    },
  };
  const next: Answer = {
    respond: async (lease, socket) => {
      hasRetried();
      await grantedAfter(2 * TIMER_MS).respond(lease, socket);
    },
  };
  return [late, next];
}

const trickling: Answer = {
  flaw: `it arrived byte by byte, for ${TRICKLE_MS / 1_000} s in all`,
  respond: async (lease, socket) => {
    const whole = response(201, lease);
    for (const byte of whole) {
      if (socket.destroyed) return;
      socket.write(byte);
      await delay(TRICKLE_MS / whole.length);
    }
    socket.end();
  },
};

/** The response to the first request is sent for the second one, too. */
function staleAnswers(): readonly [Answer, Answer] {
  let first: Lease | undefined;
  const flaw = "its response had the nonce of an earlier request";
  const keep: Answer = {
    flaw: "its request was rejected",
    respond: (lease, socket) => {
      first = lease;
      socket.end(response(503, refusal("store_unavailable", 0)));
    },
  };
  return [keep, { flaw, respond: (_, socket) => socket.end(response(201, first)) }];
}

export const RESPONSE_RULES: readonly Rule[] = [
  {
    name: "lost-response",
    text: "leases again by itself, with a new nonce, when a connection ends without a response",
    check: async (trial) => {
      trial.coordinator.answers.push(...Array.from({ length: 3 }, () => half(() => 0)));
      await trial.takeAtOnce(trial.start());
      const nonces = new Set(trial.coordinator.requests.map(({ body }) => body.nonce));
      if (nonces.size !== 4) throw new BrokenRule(`sent ${nonces.size} nonces in 4 requests`);
    },
  },
  {
    name: "half-response",
    text: "discards a response that ends early",
    check: (trial) => discards(trial, HALVES),
  },
  {
    name: "slow-response",
    text: "discards a response that is not there as a whole within the time limit",
    check: async (trial) => {
      trial.coordinator.answers.push(trickling);
      await trial.take(trial.start({ requestTimeoutMs: SHORT_TIMEOUT_MS }), 1);
    },
  },
  {
    name: "late-response",
    text: "never uses a response that comes after the time limit",
    check: async (trial) => {
      trial.coordinator.answers.push(...lateAnswers());
      const client = trial.start({ requestTimeoutMs: SHORT_TIMEOUT_MS });
      await trial.take(client, SEQUENCE_COUNT + 1);
    },
  },
  {
    name: "growing-time-limit",
    text: "gives each attempt more time, so that a coordinator with a queue serves it",
    check: async (trial) => {
      trial.coordinator.always = grantedAfter(2.5 * SHORT_TIMEOUT_MS);
      await trial.takeAtOnce(trial.start({ requestTimeoutMs: SHORT_TIMEOUT_MS }));
    },
  },
  {
    name: "stale-response",
    text: "never uses a response with another nonce than that of the request",
    check: async (trial) => {
      trial.coordinator.answers.push(...staleAnswers());
      await trial.take(trial.start(), 1);
    },
  },
  {
    name: "foreign-lease",
    text: "discards a lease of another namespace",
    check: (trial) => discards(trial, [altered({ namespace: "other" }), altered({ namespace: null })]),
  },
  {
    name: "malformed-lease",
    text: "discards a lease with a field out of its range, of another type or missing, and what is not a lease",
    check: (trial) => discards(trial, MALFORMED),
  },
  {
    name: "unknown-fields",
    text: "ignores fields that it does not know",
    check: async (trial) => {
      const respond: Answer["respond"] = (lease, socket) => socket.end(response(201, { ...lease, ofTheFuture: [1] }));
      trial.coordinator.always = { respond };
      await trial.take(trial.start(), 1);
    },
  },
  {
    name: "retry-after",
    text: "repeats a request that can succeed later, after the wait that the coordinator asks for",
    check: async (trial) => {
      let refusedAtMs = Number.POSITIVE_INFINITY;
      trial.coordinator.answers.push({
        flaw: "its request was rejected",
        respond: (_, socket) => {
          refusedAtMs = performance.now();
          const headers = { "retry-after": Math.ceil(RETRY_AFTER_MS / 1_000) };
          socket.end(response(503, refusal("shutting_down", RETRY_AFTER_MS), headers));
        },
      });
      await trial.takeAtOnce(trial.start());
      const waitedMs = (trial.coordinator.requests[1]?.atMs ?? 0) - refusedAtMs;
      if (waitedMs < RETRY_AFTER_MS - TIMER_MS) {
        throw new BrokenRule(`waited ${Math.round(waitedMs)} ms of ${RETRY_AFTER_MS}`);
      }
    },
  },
  {
    name: "proxy-error",
    text: "repeats a request after 502, 503 or 504 of a proxy, which is no JSON",
    check: async (trial) => {
      trial.coordinator.answers.push(...[502, 503, 504].map((status) => refused(status, "<html>Bad Gateway</html>")));
      await trial.takeAtOnce(trial.start());
    },
  },
  {
    name: "growing-delay",
    text: "waits longer after each attempt that fails",
    check: async (trial) => {
      const answer = refused(503, refusal("store_unavailable", 0));
      trial.coordinator.answers.push(...Array.from({ length: FAILURES }, () => answer));
      await trial.takeAtOnce(trial.start());
      const times = trial.coordinator.requests.map(({ atMs }) => atMs);
      const tookMs = (times[FAILURES] ?? 0) - (times[0] ?? 0);
      if (tookMs < FAILURES_MIN_MS) throw new BrokenRule(`sent ${FAILURES + 1} requests in ${Math.round(tookMs)} ms`);
    },
  },
  {
    name: "final-error",
    text: "fails the call after an error that no repetition fixes, sends nothing more, and works again afterwards",
    check: async (trial) => {
      const client = trial.start();
      for (const [status, code] of FINAL_ERRORS) {
        const { length } = trial.coordinator.requests;
        trial.coordinator.answers.push(refused(status, refusal(code)));
        const { callNumbers, error } = await client.ask("next 1");
        const sent = trial.coordinator.requests.length - length;
        if (error === undefined)
          throw new BrokenRule(`generated ${callNumbers[0]} after ${code}, which needs a person`);
        if (sent !== 1) throw new BrokenRule(`sent ${sent} requests where the first was rejected with ${code}`);
      }
      await trial.take(client, 1);
    },
  },
];

const FINAL_ERRORS = [
  [400, "invalid_request"],
  [401, "unauthorized"],
  [403, "forbidden"],
  [404, "namespace_not_found"],
  [409, "run_space_exhausted"],
] as const;
