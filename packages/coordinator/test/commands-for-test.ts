/** Commands of the port, as a coordinator makes them that remembers nothing: for one store. */
import type { Bounds } from "../src/guard/clocks.js";
import type {
  AdvanceStep,
  ClaimStep,
  ConfirmStep,
  HeartbeatStep,
  InitStep,
  LeaseStep,
  RecoverStep,
  SealStep,
  StepCommand,
  SuspectStep,
} from "../src/guard/commands.js";
import { newStoreId } from "../src/guard/store-id.js";
import type { ReportCommand } from "../src/ledger/ledger-changes.js";

export const NAMESPACE = "main";
export const PROOF_KEY = "5a".repeat(32);
export const LEASE_NONCE = "nonce-0123456789";
export const holder = { name: "importer", host: "mail-1", pid: 4711, labels: { archive: "lists", step: "1" } };

/**
 * For tests that wait until the line has risen above a skip. Not shorter: eps must also cover the way of a step to a store in
 * another process, on a machine that has other things to do.
 */
export const SHORT_BOUNDS: Bounds = { epsMs: 1_000, gapMs: 60_000, attendedMs: 60_000, heartbeatEveryMs: 1_000 };

/** For a store in the test's own process, where nothing lies between two clocks. */
export const SMALL_BOUNDS: Bounds = { epsMs: 40, gapMs: 6_000, attendedMs: 6_000, heartbeatEveryMs: 100 };

/** Three years ago: the line lies far above everything that a test leases. */
const LONG_AGO_MS = 1_700_000_000_000;

export function storeIdFrom(firstRun: number, { initializedAtMs = LONG_AGO_MS, rate = 2 } = {}): string {
  return newStoreId({ firstRun, initializedAtMs, rate });
}

type Own<S extends StepCommand> = Partial<Omit<S, "step">>;

/** Each function makes one command; what it is given stands in place of the default. */
export function commandsFor(storeId: string) {
  const base = () => ({ storeId, isSilenceAccepted: false });
  const remembered = { floor: 0, generationMin: 0 };
  return {
    init: (own: Own<InitStep> = {}): InitStep => {
      return { ...base(), step: "init", nodeCount: 1, proofKey: PROOF_KEY, ...own };
    },
    lease: (own: Own<LeaseStep> = {}): LeaseStep => {
      const asked = { runCount: 1, provenRun: 0, holder, coordinator: "test", leaseNonce: LEASE_NONCE };
      return { ...base(), ...remembered, step: "lease", ...asked, ...own };
    },
    heartbeat: (own: Own<HeartbeatStep> = {}): HeartbeatStep => ({
      ...base(),
      ...remembered,
      step: "heartbeat",
      ...own,
    }),
    claim: (generation: number, own: Own<ClaimStep> = {}): ClaimStep => {
      return { ...base(), step: "claim", generation, generationMin: 0, ...own };
    },
    confirm: (generation: number, own: Own<ConfirmStep> = {}): ConfirmStep => {
      return { ...base(), step: "confirm", generation, floor: 0, ...own };
    },
    seal: (seal: string, own: Own<SealStep> = {}): SealStep => ({
      ...base(),
      ...remembered,
      step: "seal",
      seal,
      ...own,
    }),
    recover: (own: Own<RecoverStep> = {}): RecoverStep => {
      return { ...base(), ...remembered, step: "recover", nodeCount: undefined, proofKey: PROOF_KEY, ...own };
    },
    suspect: (recoveredMin: number): SuspectStep => ({ ...base(), step: "suspect", recoveredMin }),
    advance: (version: number, own: Own<AdvanceStep> = {}): AdvanceStep => {
      return { ...base(), ...remembered, step: "advance", version, ...own };
    },
  };
}

export type Commands = ReturnType<typeof commandsFor>;

export function reportCommand(command: Partial<ReportCommand> = {}): ReportCommand {
  return { nonce: LEASE_NONCE, lastSequence: 10, state: "open", ...command };
}
