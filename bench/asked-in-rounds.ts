/** The same questions to several ledgers, in turns, so that what the machine does meanwhile meets all of them alike. */
import type { Coordinator } from "../packages/coordinator/src/coordinator.js";

export interface AskedLedger {
  readonly coordinator: Coordinator;
  readonly namespace: string;
  /** Its leases, of one run each, from run 1 on. */
  readonly size: number;
}

/** Latencies in microseconds, by round. */
export type Rounds = readonly (readonly number[])[];

export interface RoundsOptions {
  readonly roundCount: number;
  readonly callsPerRound: number;
}

/** Latencies of each ledger by round, in microseconds. */
export async function askedInRounds<Ledger extends AskedLedger>(
  ask: (ledger: Ledger) => Promise<unknown>,
  ledgers: readonly Ledger[],
  { roundCount, callsPerRound }: RoundsOptions,
): Promise<readonly Rounds[]> {
  const rounds = ledgers.map((): number[][] => []);
  // The first round warms up.
  for (let round = 0; round <= roundCount; round++) {
    for (const [index, ledger] of ledgers.entries()) {
      const latencies: number[] = [];
      for (let call = 0; call < callsPerRound; call++) {
        const beginMs = performance.now();
        await ask(ledger);
        latencies.push((performance.now() - beginMs) * 1_000);
      }
      if (round > 0) rounds[index]?.push(latencies);
    }
  }
  return rounds;
}
