/** One run: its lease with every field, how far each run of the lease got, and the runs beside it. */
import { RUN_MAX, SEQUENCE_COUNT } from "@callnumber/protocol/codec";
import { type LedgerEntry, ledgerIdOf, pathOf, type RunAnswer } from "@callnumber/protocol/wire";
import { asSentence, counted, grouped } from "../format.js";
import { runs } from "../format-event.js";
import { LeaseFields } from "../parts/lease.js";
import { Answered } from "../parts/loaded.js";
import { SequenceBar } from "../parts/sequence-bar.js";
import { Instant } from "../parts/time.js";
import { addressOf } from "../route.js";
import { runStateIn } from "../run-state.js";
import { useAnswer } from "../use-response.js";

export function RunPage({ namespace, run: ledgerId }: { namespace: string; run: string }) {
  const answer = useAnswer<RunAnswer>(pathOf("run", { namespace, run: ledgerId }), namespace);
  return (
    <>
      <p class="way">
        <a href={addressOf(namespace, "runs")}>Runs</a>
      </p>
      <h1 tabIndex={-1}>Run {answer.data ? grouped(answer.data.run) : ledgerId}</h1>
      {answer.error?.code === "run_not_leased" ? (
        <p>
          Nobody holds this run: it was never leased, or passed over when a doubt was settled.{" "}
          <a href={addressOf(namespace, "runs")}>All runs</a>
        </p>
      ) : answer.error?.code === "lease_trimmed" ? (
        <p>{asSentence(answer.error.message)}</p>
      ) : (
        <Answered answer={answer} what="run">
          {(data) => <Details answer={data} />}
        </Answered>
      )}
    </>
  );
}

function Details({ answer }: { answer: RunAnswer }) {
  const { namespace, version, run, state, lastSequence, lease } = answer;
  return (
    <>
      <SequenceBar state={state} lastSequence={lastSequence} />
      <section aria-labelledby="lease">
        <h2 id="lease">Its lease</h2>
        <LeaseFields lease={lease} />
        {lease.progress !== null && (
          <p class="quiet">
            Reported last on run {grouped(lease.progress.run)}, <Instant atMs={lease.progress.reportedAtMs} />.
          </p>
        )}
      </section>
      {lease.runCount > 1 && <RunsOfLease namespace={namespace} lease={lease} present={run} />}
      <Beside namespace={namespace} version={version} lease={lease} />
    </>
  );
}

function RunsOfLease({ namespace, lease, present }: { namespace: string; lease: LedgerEntry; present: number }) {
  const all = Array.from({ length: lease.runCount }, (_, index) => lease.firstRun + index);
  return (
    <section aria-labelledby="runs-of-lease">
      <h2 id="runs-of-lease">All {counted(lease.runCount, "run")} of the lease</h2>
      <ol class="run-bars">
        {all.map((run) => (
          <li key={run}>
            <a
              href={addressOf(namespace, "runs", ledgerIdOf(lease.version, run))}
              aria-current={run === present ? "true" : undefined}
            >
              {grouped(run)}
            </a>
            <SequenceBar isSmall {...runStateIn(lease, run)} />
          </li>
        ))}
      </ol>
      <p class="quiet">
        Each bar is {grouped(SEQUENCE_COUNT)} numbers. A holder uses the runs of a lease in their order.
      </p>
    </section>
  );
}

/** The leases beside this one, whoever holds them. */
function Beside({ namespace, version, lease }: { namespace: string; version: number; lease: LedgerEntry }) {
  const before = lease.firstRun - 1;
  const after = lease.firstRun + lease.runCount;
  return (
    <nav class="pager" aria-label="The leases beside this one">
      {before > 0 && <a href={addressOf(namespace, "runs", ledgerIdOf(version, before))}>Before: {runs(before, 1)}</a>}
      {after <= RUN_MAX && (
        <a href={addressOf(namespace, "runs", ledgerIdOf(version, after))}>After: {runs(after, 1)}</a>
      )}
    </nav>
  );
}
