/** What `npm run test:mutation` mutates in TypeScript, by target: the sources, and the tests that must notice. None of them needs a server. */
const CLIENT = "packages/client/test";
const COORDINATOR = "packages/coordinator/test";
const STORES = "packages/coordinator/src/stores";

/** Stryker takes a test file that does not load for one without a failure: what a mutant breaks at load fails here. */
const LOADS = "test/mutation/loads.mjs";

export const TARGETS = {
  protocol: { mutate: ["packages/protocol/src/**/*.ts"], tests: [LOADS, "packages/protocol/test/*.test.ts"] },
  /** Of its own, because each table that is made at load takes all tests of a target. */
  numbers: { mutate: ["packages/client/src/run-numbers.ts"], tests: [LOADS, `${CLIENT}/run-numbers.test.ts`] },
  client: {
    mutate: ["packages/client/src/**/*.ts", "!packages/client/src/run-numbers.ts"],
    tests: [LOADS, `${CLIENT}/{client,copied-process,forms,guard,http-source,ready,retry}.test.ts`],
  },
  guard: {
    mutate: ["packages/coordinator/src/guard/**/*.ts"],
    tests: [
      LOADS,
      `${COORDINATOR}/{seals,advance-version,apply,apply-stale,attached-node,discarded,decide,failing-files,forked,verify-outcome,guard-state,refusals,skipped-runs,store-id,stores,ceiling,lost-namespace,move-forgotten,move-ways-out,namespace-guard,namespace-guards,namespace-steps,preflight,lease-proof,record-findings,recover,restart-decision,checkpoint,checkpoint-moves}.test.ts`,
    ],
  },
  /** What decides about leases; not the files and locks below them. */
  stores: {
    mutate: [`${STORES}/{memory,stored-shapes,sqlite/tables,sqlite/store}.ts`],
    tests: [LOADS, `${COORDINATOR}/{stores,two-stores,ledger-trim,store-copy,sqlite-store,seals,discarded}.test.ts`],
  },
};
