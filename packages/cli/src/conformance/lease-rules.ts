/** What a client requests, what it makes of a lease, and when it must stop. */
import { LEASE_RUN_COUNT_MAX, type Lease, ledgerIdOf } from "@callnumber/protocol/api";
import {
  type CallNumberParts,
  encodeCallNumber,
  RUN_MAX,
  SEQUENCE_COUNT,
  SEQUENCE_MAX,
  VERSION_MAX,
} from "@callnumber/protocol/codec";
import { BrokenRule, type DrivenClient } from "./driven-client.js";
import { type Rule, type Trial, Unsupported } from "./rule.js";
import { type Answer, granted, grantedAfter, refusal, refused, response } from "./scripted-coordinator.js";

/** A lease that shows a store which is not the one, or not in the state, that the client knows. */
const contradicting = (flaw: string, change: (lease: Lease) => Partial<Lease>): Answer => ({
  flaw,
  respond: (lease, socket) => socket.end(response(201, { ...lease, ...change(lease) })),
});

const STOPPING_CODES = ["store_forked", "run_above_high_water_mark", "store_id_mismatch"];
const CLOCK_MS = 3_600_000;
const SLOW_MS = 200;
const SHORT_WAIT_MS = 1_000;
/** A client that requests more runs with more demand has done it by then. */
const RUNS_UNTIL_MORE = 12;

/** More than are used: a client on a busy machine may lose one. */
const PLACES = [
  [0, 0],
  [0, RUN_MAX],
  [1, 5],
  [VERSION_MAX, RUN_MAX - 2],
  [VERSION_MAX, RUN_MAX - 1],
  [VERSION_MAX, RUN_MAX],
] as const;
const PLACES_USED = 4;

/** Every number of each lease, in order. */
async function requireAll(trial: Trial): Promise<void> {
  for (const [version, firstRun] of PLACES) {
    trial.coordinator.answers.push({
      respond: (lease, socket) => {
        // The one that the coordinator has noted as granted.
        Object.assign(lease, { version, firstRun });
        granted.respond(lease, socket);
      },
    });
  }
  // Above the last run there is none.
  trial.coordinator.always = refused(409, refusal("run_space_exhausted"));
  const client = trial.start();
  for (let place = 0; place < PLACES_USED; place++) {
    const parts = await trial.take(client, SEQUENCE_COUNT);
    const { version, run } = parts[0] as CallNumberParts;
    const wrong = parts.findIndex((one, at) => one.version !== version || one.run !== run || one.sequence !== at);
    if (wrong !== -1) {
      const [made, right] = [parts[wrong] as CallNumberParts, { version, run, sequence: wrong }].map(encodeCallNumber);
      throw new BrokenRule(`number ${wrong + 1} of run ${version}/${run} is ${made}, should be ${right}`);
    }
  }
}

/** Where a number is of no run of a lease, no other rule can be judged. */
export const ENCODING: Rule = {
  name: "encoding",
  text: "generates the numbers of each run with the sequences 0 to 16,383, once each and in order",
  check: requireAll,
};

export const LEASE_RULES: readonly Rule[] = [
  ENCODING,
  {
    name: "fewer-runs",
    text: "uses what it got where it requested more runs, and every run of a lease",
    check: async (trial) => {
      const client = trial.start();
      for (const runCountMax of [1, 64, 2, 1]) {
        trial.coordinator.runCountMax = runCountMax;
        await trial.take(client, 3 * SEQUENCE_COUNT);
      }
    },
  },
  {
    name: "lease-request",
    text: "sends a request as the API describes it, with its clock",
    check: async (trial) => {
      await trial.take(trial.start(), 1);
      const lateMs = Math.abs(Date.now() - (trial.coordinator.requests[0]?.body.sentAtMs ?? 0));
      if (lateMs > CLOCK_MS) throw new BrokenRule("sentAtMs is not the time of the request in milliseconds since 1970");
    },
  },
  {
    name: "new-nonce",
    text: "sends a new nonce with each request",
    check: async (trial) => {
      const away = refused(503, refusal("store_unavailable", 0));
      trial.coordinator.answers.push(away, granted, granted, away);
      await trial.take(trial.start(), 2 * SEQUENCE_COUNT + 1);
      await trial.take(trial.start(), 1);
      const nonces = trial.coordinator.requests.map(({ body }) => body.nonce);
      const repeated = nonces.find((nonce, at) => nonces.indexOf(nonce) !== at);
      if (repeated !== undefined) throw new BrokenRule(`sent the nonce ${repeated} twice`);
    },
  },
  {
    name: "last-run",
    text: "sends the ledger id of its last run and the proof of that lease, both null at first",
    check: async (trial) => {
      await trial.take(trial.start(), 2 * SEQUENCE_COUNT + 1);
      const { requests, granted: leases } = trial.coordinator;
      requests.slice(0, 3).forEach(({ body }, at) => {
        const before = leases[at - 1];
        const lastRun = before === undefined ? null : ledgerIdOf(before.version, before.firstRun + before.runCount - 1);
        if (body.lastRun === lastRun && body.proof === (before?.proof ?? null)) return;
        throw new BrokenRule(`request ${at + 1} has lastRun ${body.lastRun} instead of ${lastRun}, or another proof`);
      });
    },
  },
  {
    name: "token",
    text: "sends its token with each request",
    check: async (trial) => {
      const token = (trial.coordinator.token = "cn_conformance-token");
      await trial.take(trial.start({ token }), SEQUENCE_COUNT + 1);
    },
  },
  {
    name: "one-request",
    text: "has one lease request in flight",
    check: async (trial) => {
      trial.coordinator.always = grantedAfter(SLOW_MS);
      await trial.take(trial.start(), 4 * SEQUENCE_COUNT);
      const { inFlightMax } = trial.coordinator;
      if (inFlightMax > 1) throw new BrokenRule(`had ${inFlightMax} lease requests in flight`);
    },
  },
  {
    name: "restart",
    text: "keeps no run: after kill -9, and after the end of its input, it leases another one",
    check: async (trial) => {
      for (const end of ["kill", "end"] as const) {
        const ended = trial.start();
        await trial.take(ended, 3);
        await ended[end]();
        const leaseCount = trial.coordinator.granted.length;
        await trial.take(trial.start(), 3);
        if (trial.coordinator.granted.length === leaseCount) throw new BrokenRule("leased no run after the start");
      }
    },
  },
  {
    name: "fork",
    text: "never generates a number twice when the process is forked",
    check: async (trial) => {
      const client = trial.start();
      // At the beginning of a run, near its end, where the next one may be there already, and where both processes need another one.
      for (const [before, inEach] of [
        [3, 3],
        [SEQUENCE_COUNT - 100, 200],
      ] as const) {
        await trial.take(client, before);
        const leaseCount = trial.coordinator.granted.length;
        const answered = await client.ask(`fork ${inEach}`);
        if (answered.isUnsupported === true) throw new Unsupported();
        if (answered.error !== undefined) throw new BrokenRule(`failed after a fork: ${answered.error}`);
        const made = trial.judged(answered).length;
        if (made !== 2 * inEach)
          throw new BrokenRule(`"fork ${inEach}" generated ${made} numbers instead of ${2 * inEach}`);
        if (trial.coordinator.granted.length === leaseCount) throw new BrokenRule("the child leased no run of its own");
      }
      await trial.take(client, SEQUENCE_COUNT);
    },
  },
  {
    name: "fork-knows",
    text: "knows in a forked process which run and store came last",
    check: async (trial) => {
      const client = trial.start();
      await trial.take(client, 3);
      // Both may lease now: the child what the parent has, from a store that has rolled back, or from another store.
      trial.coordinator.always = contradicting("a lease of the parent's run", () => placeOf(firstLease(trial)));
      const answered = await client.ask("fork 3");
      if (answered.isUnsupported === true) throw new Unsupported();
      trial.judged(answered);
      trial.coordinator.always = contradicting("a lease of another store", () => ({ storeId: "another-store" }));
      trial.judged(await client.ask("fork 3"));
    },
  },
  {
    name: "no-run",
    text: "generates no number while it has no run, however long none comes",
    check: async (trial) => {
      const client = trial.start({ waitTimeoutMs: SHORT_WAIT_MS });
      await trial.take(client, 1);
      trial.coordinator.always = refused(503, refusal("store_unavailable", 0));
      let made = 1;
      for (let failures = 0; failures < 2; ) {
        const answered = await client.ask(`next ${SEQUENCE_COUNT}`);
        made += trial.judged(answered).length;
        if (answered.error !== undefined) failures++;
        else if (made > 3 * SEQUENCE_COUNT) throw new BrokenRule(`generated ${made} numbers of what was leased before`);
      }
    },
  },
  {
    name: "expected-store",
    text: "generates no number of another store than the expected one",
    check: async (trial) => {
      const client = trial.start({ expectedStoreId: "another-store" });
      for (let tries = 0; tries < 2; tries++) {
        const { callNumbers } = await client.ask("next 1");
        if (callNumbers.length > 0) throw new BrokenRule(`generated ${callNumbers[0]} of another store`);
      }
      await trial.take(trial.start({ expectedStoreId: trial.coordinator.storeId }), 1);
    },
  },
  {
    name: "other-store",
    text: "stops permanently when a lease comes from another store than the one before",
    check: (trial) =>
      trial.requireStop(contradicting("a lease of another store", () => ({ storeId: "another-store" }))),
  },
  {
    name: "repeated-lease",
    text: "stops permanently when its last run is leased again",
    check: (trial) => trial.requireStop(contradicting("a lease of its last run", () => placeOf(firstLease(trial)))),
  },
  {
    name: "overlapping-lease",
    text: "stops permanently when a lease begins with the last of the runs that it got together",
    check: async (trial) => {
      const { coordinator } = trial;
      coordinator.runCountMax = LEASE_RUN_COUNT_MAX;
      // Clients that wait request more.
      coordinator.always = grantedAfter(SHORT_WAIT_MS);
      const client = trial.start();
      for (let run = 0; (coordinator.granted.at(-1)?.runCount ?? 1) === 1; run++) {
        if (run > RUNS_UNTIL_MORE) throw new Unsupported("it requests no more than one run");
        await trial.take(client, SEQUENCE_COUNT);
      }
      const { version, firstRun, runCount } = coordinator.granted.at(-1) as Lease;
      coordinator.always = contradicting("a lease of its last run", () => ({
        version,
        firstRun: firstRun + runCount - 1,
        runCount: 1,
      }));
      await trial.requireStopOf(client, "a lease of its last run", runCount + RUNS_UNTIL_MORE);
    },
  },
  {
    name: "decreasing-lease",
    text: "stops permanently when a run is not above its last one, of any version",
    check: async (trial) => {
      await trial.requireStop(
        contradicting("a lease of a lower run", () => ({ firstRun: firstLease(trial).firstRun - 1 })),
      );
      trial.coordinator.leaseFrom(2, 5);
      const flaw = "a lease of a lower version";
      await trial.requireStop(contradicting(flaw, () => ({ version: 1, firstRun: RUN_MAX })));
    },
  },
  ...STOPPING_CODES.map((code) => ({
    name: `stop-${code.replaceAll("_", "-")}`,
    text: `stops permanently after the error ${code}`,
    check: (trial: Trial) => trial.requireStop(refused(409, refusal(code))),
  })),
  {
    name: "exhausted-report",
    text: "reports each lease that is used up, in the next lease request or by a request of its own",
    check: async (trial) => {
      const client = trial.start();
      await trial.take(client, 3 * SEQUENCE_COUNT + 1);
      await requireClosed(client);
      for (const lease of trial.coordinator.granted.slice(0, 3)) requireReport(trial, lease, "exhausted", SEQUENCE_MAX);
    },
  },
  {
    name: "closing-report",
    text: "reports the last sequence of the run in use when it is closed, and generates no more numbers",
    check: async (trial) => {
      const client = trial.start();
      await trial.take(client, 5);
      await requireClosed(client);
      requireReport(trial, firstLease(trial), "closed", 4);
      const { callNumbers } = await client.ask("next 1");
      if (callNumbers.length > 0) throw new BrokenRule(`generated ${callNumbers[0]} after it was closed`);
    },
  },
  {
    name: "failed-report",
    text: "goes on when a report fails",
    check: async (trial) => {
      trial.coordinator.reportStatus = 500;
      const client = trial.start();
      await trial.take(client, 2 * SEQUENCE_COUNT + 1);
      await requireClosed(client);
    },
  },
];

async function requireClosed(client: DrivenClient): Promise<void> {
  const { error } = await client.ask("close");
  if (error !== undefined) throw new BrokenRule(`close failed: ${error}`);
}

function firstLease({ coordinator }: Trial): Lease {
  const [lease] = coordinator.granted;
  if (lease === undefined) throw new BrokenRule("no lease was requested");
  return lease;
}

const placeOf = ({ version, firstRun }: Lease) => ({ version, firstRun });

function requireReport({ coordinator }: Trial, lease: Lease, state: string, lastSequence: number): void {
  const run = ledgerIdOf(lease.version, lease.firstRun);
  const reports = coordinator.reports.filter((report) => report.run === run && report.nonce === lease.nonce);
  const last = reports.at(-1);
  if (last?.state === state && last.lastSequence === lastSequence) return;
  const instead = last === undefined ? "nothing" : JSON.stringify(last);
  throw new BrokenRule(`run ${run} should be reported as ${state} at ${lastSequence}; reported: ${instead}`);
}
