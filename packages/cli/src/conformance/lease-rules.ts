/** What a client requests, what it makes of a lease, and when it must stop. */
import { setTimeout as delay } from "node:timers/promises";
import { type Lease, ledgerIdOf } from "@callnumber/protocol/api";
import { RUN_MAX, SEQUENCE_COUNT, SEQUENCE_MAX, VERSION_MAX } from "@callnumber/protocol/codec";
import { BrokenRule } from "./driven-client.js";
import { type Rule, type Trial, Unsupported } from "./rule.js";
import { type Answer, granted, refusal, refused, response } from "./scripted-coordinator.js";

/** A lease that shows a store which is not the one, or not in the state, that the client knows. */
const contradicting = (flaw: string, change: (lease: Lease) => Partial<Lease>): Answer => ({
  flaw,
  respond: (lease, socket) => socket.end(response(201, { ...lease, ...change(lease) })),
});

const STOPPING_CODES = ["store_forked", "run_above_high_water_mark", "store_id_mismatch"];
const CLOCK_MS = 3_600_000;
const SLOW_MS = 200;

const FIRST_AND_LAST_RUNS = [
  [0, 0],
  [0, RUN_MAX],
  [1, 5],
  [VERSION_MAX, RUN_MAX],
] as const;

/** Every number of each lease, in order. */
async function requireAll(trial: Trial, places: readonly (readonly [number, number])[]): Promise<void> {
  const client = trial.start();
  for (const [version, run] of places) {
    trial.coordinator.answers.push({
      respond: (lease, socket) => {
        Object.assign(lease, { version, firstRun: run });
        granted.respond(lease, socket);
      },
    });
  }
  // Above the last run there is none: a client that requests one early is refused.
  trial.coordinator.always = refused(409, refusal("run_space_exhausted"));
  for (const [version, run] of places) {
    const parts = await trial.take(client, SEQUENCE_COUNT);
    const wrong = parts.findIndex((one, at) => one.version !== version || one.run !== run || one.sequence !== at);
    if (wrong !== -1) {
      throw new BrokenRule(`number ${wrong + 1} of ${version}/${run} has ${JSON.stringify(parts[wrong])}`);
    }
  }
}

export const LEASE_RULES: readonly Rule[] = [
  {
    name: "encoding",
    text: "makes the numbers of each run with the sequences 0 to 16,383, once each and in order",
    check: (trial) => requireAll(trial, FIRST_AND_LAST_RUNS),
  },
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
      const respond: Answer["respond"] = async (lease, socket) => {
        await delay(SLOW_MS);
        granted.respond(lease, socket);
      };
      trial.coordinator.always = { respond };
      await trial.take(trial.start(), 4 * SEQUENCE_COUNT);
      const { inFlightMax } = trial.coordinator;
      if (inFlightMax > 1) throw new BrokenRule(`had ${inFlightMax} lease requests in flight`);
    },
  },
  {
    name: "restart",
    text: "keeps no run: after kill -9 it leases another one",
    check: async (trial) => {
      const killed = trial.start();
      await trial.take(killed, 3);
      await killed.kill();
      const leaseCount = trial.coordinator.granted.length;
      await trial.take(trial.start(), 3);
      if (trial.coordinator.granted.length === leaseCount) throw new BrokenRule("leased no run after the start");
    },
  },
  {
    name: "fork",
    text: "never makes a number twice when the process is forked",
    check: async (trial) => {
      const client = trial.start();
      await trial.take(client, 3);
      const answered = await client.ask("fork 3");
      if (answered.isUnsupported === true) throw new Unsupported();
      if (answered.error !== undefined) throw new BrokenRule(`failed after a fork: ${answered.error}`);
      const made = [...trial.judged(answered), ...(await trial.take(client, 3))];
      if (made.length !== 9) throw new BrokenRule(`${made.length - 3} numbers instead of 3 of each process`);
      if (trial.coordinator.granted.length < 2) throw new BrokenRule("the child leased no run of its own");
    },
  },
  {
    name: "expected-store",
    text: "makes no number of another store than the expected one",
    check: async (trial) => {
      const client = trial.start({ expectedStoreId: "another-store" });
      for (let tries = 0; tries < 2; tries++) {
        const { callNumbers } = await client.ask("next 1");
        if (callNumbers.length > 0) throw new BrokenRule(`made ${callNumbers[0]} of another store`);
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
    text: "reports the last sequence of the run in use when it is closed, and makes no more numbers",
    check: async (trial) => {
      const client = trial.start();
      await trial.take(client, 5);
      await requireClosed(client);
      requireReport(trial, firstLease(trial), "closed", 4);
      const { callNumbers } = await client.ask("next 1");
      if (callNumbers.length > 0) throw new BrokenRule(`made ${callNumbers[0]} after it was closed`);
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

async function requireClosed(client: ReturnType<Trial["start"]>): Promise<void> {
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
