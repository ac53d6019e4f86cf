/** What a rule of a client is, and the trial of one: a scripted coordinator, and processes of the client. */
import { ledgerIdOf, runName } from "@callnumber/protocol/api";
import { type CallNumberParts, decodeCallNumber, encodeCallNumber, SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import { type Answered, BrokenRule, DrivenClient, WrongNumber } from "./driven-client.js";
import { type Answer, granted, ScriptedCoordinator } from "./scripted-coordinator.js";

export interface Rule {
  /** In kebab case. */
  readonly name: string;
  /** What a client must do, in a sentence. */
  readonly text: string;
  /** @throws BrokenRule, Unsupported */
  readonly check: (trial: Trial) => Promise<void>;
}

/** The client answered that it can't do what a rule is about. */
export class Unsupported extends Error {
  constructor(reason = 'the client answered "unsupported"') {
    super(reason);
  }
}

export interface ClientSettings {
  readonly expectedStoreId?: string;
  readonly token?: string;
  readonly requestTimeoutMs?: number;
  readonly waitTimeoutMs?: number;
}

/** Long enough that no rule ends by it: rules about a time limit set their own. */
const REQUEST_TIMEOUT_MS = 60_000;
const WAIT_TIMEOUT_MS = 30_000;
/** How often a call that failed is repeated, as an importer would. */
const TRIES = 5;

export class Trial {
  readonly coordinator = new ScriptedCoordinator();
  readonly #made = new Set<string>();
  readonly #clients: DrivenClient[] = [];
  #url = "";

  private constructor(
    readonly command: readonly string[],
    readonly env: NodeJS.ProcessEnv,
  ) {}

  /** Runs the check of a rule. @throws what the check throws. */
  static async run(check: Rule["check"], command: readonly string[], env: NodeJS.ProcessEnv): Promise<void> {
    const trial = new Trial(command, env);
    trial.#url = await trial.coordinator.start();
    try {
      await check(trial).catch((error: unknown) => {
        // What the coordinator rejected explains what follows from it.
        trial.#requireValidRequests();
        throw error;
      });
      trial.#requireValidRequests();
    } finally {
      await trial.end();
    }
  }

  /** Starts a process of the client. */
  start({
    expectedStoreId,
    token,
    requestTimeoutMs = REQUEST_TIMEOUT_MS,
    waitTimeoutMs = WAIT_TIMEOUT_MS,
  }: ClientSettings = {}): DrivenClient {
    const settings = {
      CALLNUMBER_COORDINATOR: this.#url,
      CALLNUMBER_TOKEN: token,
      CALLNUMBER_EXPECTED_STORE_ID: expectedStoreId,
      CALLNUMBER_REQUEST_TIMEOUT_MS: String(requestTimeoutMs),
      CALLNUMBER_WAIT_TIMEOUT_MS: String(waitTimeoutMs),
    };
    const client = new DrivenClient(this.command, { ...this.env, ...settings });
    this.#clients.push(client);
    return client;
  }

  /** Takes numbers, with a second call after one that failed. Returns their parts, each of them judged. */
  async take(client: DrivenClient, count: number): Promise<readonly CallNumberParts[]> {
    const parts: CallNumberParts[] = [];
    let error: string | undefined;
    for (let tries = 0; tries < TRIES && parts.length < count; tries++) {
      const answered = await client.ask(`next ${count - parts.length}`);
      parts.push(...this.judged(answered));
      ({ error } = answered);
    }
    if (parts.length === count) return parts;
    throw new BrokenRule(`"next ${count}" generated ${parts.length} numbers, then answered "error ${error}"`);
  }

  /** A number by a single call. */
  async takeAtOnce(client: DrivenClient): Promise<void> {
    const answered = await client.ask("next 1");
    if (answered.error !== undefined) throw new BrokenRule(`gave up: ${answered.error}`);
    this.judged(answered);
  }

  /** Returns the parts of what a client made. @throws BrokenRule when a number came twice, or is of a run that it must not use. */
  judged({ callNumbers }: Answered): readonly CallNumberParts[] {
    return callNumbers.map((callNumber) => {
      const parts = this.#partsOf(callNumber);
      if (this.#made.has(callNumber)) throw new BrokenRule(`generated ${callNumber} twice`);
      this.#made.add(callNumber);
      return parts;
    });
  }

  /** Gives a client a lease, then `answer` instead of the next one. It must generate no more numbers, even after right responses. */
  async requireStop(answer: Answer): Promise<void> {
    const client = this.start();
    await this.take(client, 1);
    const { length } = this.coordinator.requests;
    this.coordinator.answers.push(answer);
    await this.requireStopOf(client, String(answer.flaw), TRIES);
    if (this.coordinator.requests.length === length) throw new BrokenRule("did not lease another run");
  }

  /** Takes numbers until the client fails, `runCountMax` runs at most. From then on it must make none. */
  async requireStopOf(client: DrivenClient, flaw: string, runCountMax: number): Promise<void> {
    for (let run = 0; ; run++) {
      const answered = await client.ask(`next ${SEQUENCE_COUNT}`);
      this.judged(answered);
      if (answered.error !== undefined) break;
      if (run > runCountMax) throw new BrokenRule(`went on after ${flaw}`);
    }
    this.coordinator.always = granted;
    for (let tries = 0; tries < 2; tries++) {
      const { callNumbers } = await client.ask("next 1");
      if (callNumbers.length > 0) throw new BrokenRule(`generated ${callNumbers[0]} after ${flaw}`);
    }
    await client.kill();
  }

  /** Ends the processes and the coordinator. */
  async end(): Promise<void> {
    this.coordinator.stop();
    await Promise.all(this.#clients.map((client) => client.kill()));
  }

  #partsOf(callNumber: string): CallNumberParts {
    const parts = decodeCallNumber(callNumber);
    const { granted, flawed } = this.coordinator;
    if (granted.some((lease) => holds(lease, parts))) return parts;
    const made = `generated ${callNumber} of run ${runName(parts.version, parts.run)}`;
    const flaw = flawed.find(({ lease }) => holds(lease, parts))?.flaw;
    if (flaw !== undefined) throw new BrokenRule(`${made}: ${flaw}`);
    const last = granted.at(-1);
    const first = last && encodeCallNumber({ version: last.version, run: last.firstRun, sequence: 0 });
    const begins = last
      ? `the first number of its lease, of run ${runName(last.version, last.firstRun)}, is ${first}`
      : "it leased none";
    throw new WrongNumber(`${made}, which was not leased to it: ${begins}`);
  }

  #requireValidRequests(): void {
    const [first] = this.coordinator.invalid;
    if (first !== undefined) throw new BrokenRule(`sent what a coordinator rejects: ${first}`);
  }
}

function holds(
  lease: { readonly version: number; readonly firstRun: number; readonly runCount: number },
  { version, run }: CallNumberParts,
): boolean {
  const offset = ledgerIdOf(version, run) - ledgerIdOf(lease.version, lease.firstRun);
  return offset >= 0 && offset < lease.runCount;
}
