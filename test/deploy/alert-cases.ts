/**
 * For each alert of deploy/monitoring/callnumber-rules.yml: series with which it fires, and some with which it does not. In promtool's
 * notation: `0x30` is 0 for 31 minutes, `0+2x30` rises by 2 each minute, `_x30` is no series for 31 minutes. Each begins as that of a
 * real coordinator does, which monitoring.test.ts compares: a first incident that brings its series along is no rise to Prometheus.
 */

type Series = Readonly<Record<string, string>>;

export interface AlertCase {
  readonly alert: string;
  readonly fires: Series;
  readonly silent: Series;
  /** When it is looked at, minutes from the beginning; default 30. */
  readonly atMin?: number;
  /** Something had happened already when the process was scraped first. */
  readonly isFirstScrapeLate?: boolean;
}

const own = (name: string, labels = "") => `${name}{namespace="main",instance="one"${labels && `,${labels}`}}`;
/** Of what names no namespace that is known. */
const outside = (name: string, labels = "") => own(name, labels).replace('"main"', '""');
const STARTED = 'process_start_time_seconds{instance="one"}';
const guard = (state: string) => own("callnumber_guard_state", `state="${state}"`);
const refusals = (code: string) => own("callnumber_rejected_requests_total", `code="${code}"`);
const jumps = (code: string) => own("callnumber_recoveries_total", `reason="${code}"`);
const alarm = (name: string, severity = "warning") => own("callnumber_alarms", `name="${name}",severity="${severity}"`);
const linesLost = 'callnumber_log_lines_dropped_total{instance="one"}';
const trimFailures = own("callnumber_ledger_trim_failures_total");
const discarded = (reason: string) => own("callnumber_runs_discarded_total", `reason="${reason}"`);
const bucket = (le: string) => own("callnumber_lease_duration_seconds_bucket", `le="${le}"`);
const certificateEnd = 'callnumber_tls_certificate_expiry_timestamp_seconds{instance="one"}';
const findings = (effect: string) => `callnumber_preflight_findings{instance="one",effect="${effect}"}`;

/** Of which once is enough: it came before the first scrape of a process, as after a power cut. */
const BEFORE_FIRST_SCRAPE: readonly AlertCase[] = Object.entries({
  CallnumberHolderOfAnotherStore: refusals("run_above_high_water_mark"),
  CallnumberClocksDisagree: refusals("clock_skew"),
  CallnumberInternalError: refusals("internal_error"),
  CallnumberLogLinesLost: linesLost,
  CallnumberJumped: jumps("epoch_changed"),
  CallnumberLedgerTrimFails: trimFailures,
}).map(([alert, series]) => ({
  alert,
  fires: { [series]: "_x80 1x20", [STARTED]: "_x80 4860x20" },
  silent: { [series]: "1x100", [STARTED]: "0x100" },
  atMin: 90,
  isFirstScrapeLate: true,
}));

export const ALERT_CASES: readonly AlertCase[] = [
  ...BEFORE_FIRST_SCRAPE,
  {
    alert: "CallnumberDown",
    fires: { 'up{job="callnumber",instance="one"}': "1x20 0x20" },
    silent: { 'up{job="callnumber",instance="one"}': "1x40", 'up{job="other",instance="one"}': "0x40" },
  },
  {
    alert: "CallnumberStopped",
    fires: { [guard("stopped")]: "0x20 1x20", [guard("active")]: "1x20 0x20" },
    silent: { [guard("stopped")]: "0x40", [guard("recovering")]: "1x40" },
  },
  {
    alert: "CallnumberRecovering",
    fires: { [guard("recovering")]: "0x20 1x20" },
    // For a minute, as after every restart of the store.
    silent: { [guard("recovering")]: "0x28 1x1 0x20" },
  },
  {
    alert: "CallnumberStoreDown",
    fires: { 'callnumber_store_up{instance="one"}': "1x20 0x20" },
    silent: { 'callnumber_store_up{instance="one"}': "1x28 0 1x20" },
  },
  // Time begins at 0 there. Where plain HTTP is spoken, as by the coordinator that these series are compared with, there is none.
  {
    alert: "CallnumberCertificateEndsSoon",
    // Ten days.
    fires: { [certificateEnd]: "_ 864000x100" },
    // Fifteen days.
    silent: { [certificateEnd]: "_ 1296000x100" },
    atMin: 90,
  },
  {
    alert: "CallnumberCertificateEndsSoon",
    // Its last fourteen days begin with the tenth minute.
    fires: { [certificateEnd]: "_ 1210200x100" },
    // Renewed within the hour; and one for which CallnumberCertificateEnds is raised already.
    silent: { [certificateEnd]: "_ 864000x50 7776000x50", [certificateEnd.replace("one", "two")]: "_ 172800x100" },
    atMin: 90,
  },
  {
    alert: "CallnumberCertificateEnds",
    // Two days.
    fires: { [certificateEnd]: "_ 172800x40" },
    silent: { [certificateEnd]: "_ 270000x40" },
  },
  {
    alert: "CallnumberCertificateEnds",
    // It ended at the tenth minute.
    fires: { [certificateEnd]: "_ 600x40" },
    silent: { [certificateEnd]: "_ 600x20 7776000x20" },
  },
  {
    alert: "CallnumberHeartbeatsFail",
    fires: { 'callnumber_heartbeat_failures_total{instance="one"}': "0x10 1+10x30" },
    silent: { 'callnumber_heartbeat_failures_total{instance="one"}': "0 3x40" },
  },
  {
    alert: "CallnumberRefusals",
    fires: { [refusals("holder_mismatch")]: "_x5 1+10x40" },
    silent: {
      [refusals("holder_mismatch")]: "_x5 1+1x40",
      [refusals("run_ceiling_reached")]: "_x5 1+90x40",
      [refusals("not_found")]: "_x5 1+90x40",
    },
  },
  {
    alert: "CallnumberHolderOfAnotherStore",
    fires: { [refusals("run_above_high_water_mark")]: "0x20 1x20" },
    silent: { [refusals("run_above_high_water_mark")]: "0 1x40", [refusals("invalid_request")]: "_x5 1+9x40" },
  },
  {
    alert: "CallnumberClocksDisagree",
    fires: { [refusals("clock_skew")]: "0x20 1x20" },
    silent: { [refusals("clock_skew")]: "0 1x40", [refusals("store_forked")]: "_x5 1+9x40" },
  },
  {
    alert: "CallnumberClocksDisagree",
    fires: { [refusals("clock_moved_backward")]: "0x20 1x20" },
    silent: { [refusals("clock_moved_backward")]: "0x40" },
  },
  {
    alert: "CallnumberInternalError",
    fires: { [refusals("internal_error")]: "0x20 1x20" },
    silent: { [refusals("internal_error")]: "0 1x40", [refusals("invalid_request")]: "_x5 1+9x40" },
  },
  {
    alert: "CallnumberInternalError",
    fires: { [outside("callnumber_rejected_requests_total", 'code="internal_error"')]: "0x20 1x20" },
    silent: { [outside("callnumber_rejected_requests_total", 'code="internal_error"')]: "0 1x40" },
  },
  {
    alert: "CallnumberLogLinesLost",
    fires: { [linesLost]: "0x20 3x20" },
    silent: { [linesLost]: "0 3x40" },
  },
  {
    alert: "CallnumberSlowLeases",
    fires: { [bucket("1")]: "0+1x40", [bucket("2.5")]: "0+60x40", [bucket("+Inf")]: "0+60x40" },
    silent: { [bucket("1")]: "0+60x40", [bucket("2.5")]: "0+60x40", [bucket("+Inf")]: "0+60x40" },
  },
  {
    alert: "CallnumberJumped",
    fires: { [jumps("epoch_changed")]: "0x20 1x20" },
    // A store that was idle is no incident.
    silent: { [jumps("epoch_changed")]: "0 2x40", [jumps("heartbeat_expired")]: "0x20 1x20" },
  },
  {
    alert: "CallnumberJumpsOften",
    fires: { [jumps("epoch_changed")]: "0x10 0+1x30" },
    silent: { [jumps("epoch_changed")]: "0x20 1x20" },
  },
  {
    alert: "CallnumberRunsDiscarded",
    fires: { [discarded("requester_gone")]: "0+10x40" },
    silent: { [discarded("requester_gone")]: "0+1x40", [discarded("jump")]: "0+70000x40" },
  },
  {
    alert: "CallnumberPreflightRefuses",
    fires: { [findings("refuses")]: "0x20 1x20" },
    silent: { [findings("refuses")]: "0x40", [findings("warns")]: "2x40" },
  },
  {
    alert: "CallnumberPreflightWarns",
    fires: { [findings("warns")]: "1x100" },
    silent: { [findings("warns")]: "0x50 1x50", [findings("refuses")]: "1x100" },
    atMin: 90,
  },
  {
    alert: "CallnumberPreflightBlind",
    fires: { 'callnumber_preflight_failures_total{instance="one"}': "0+1x60" },
    silent: { 'callnumber_preflight_failures_total{instance="one"}': "0x10 1x50" },
    atMin: 45,
  },
  {
    alert: "CallnumberRunsUsed",
    fires: { [alarm("runs_used_80")]: "0x20 1x20" },
    silent: {
      [alarm("runs_used_80")]: "0x40",
      [alarm("holder_share")]: "1x40",
      [alarm("runs_used_50", "notice")]: "0x10 1x30",
    },
  },
  {
    alert: "CallnumberRunSpaceExhausted",
    fires: { [own("callnumber_runs_left")]: "40-2x20 0x20" },
    silent: { [own("callnumber_runs_left")]: "100-1x40" },
  },
  {
    alert: "CallnumberRunsEndSoon",
    // A run a second, and room for a day of it.
    fires: { [own("callnumber_runs_leased_total")]: "0+60x200", [own("callnumber_runs_left")]: "86400x200" },
    silent: { [own("callnumber_runs_leased_total")]: "0+60x200", [own("callnumber_runs_left")]: "1000000000x200" },
    atMin: 150,
  },
  {
    alert: "CallnumberHolderShare",
    fires: { [alarm("holder_share")]: "0x20 1x20" },
    silent: { [alarm("holder_share")]: "0x28 1x20" },
  },
  {
    alert: "CallnumberHolderRestarts",
    fires: { [alarm("holder_restarts")]: "0x20 1x20" },
    silent: { [alarm("holder_restarts")]: "0x20 1x5 0x20", [alarm("holder_share")]: "1x40" },
  },
  {
    alert: "CallnumberHeadroomLow",
    fires: { [own("callnumber_headroom_runs")]: "60000x10 0x30" },
    // A jump: the room grows by two runs a second.
    silent: { [own("callnumber_headroom_runs")]: "60000x10 0+120x30" },
  },
  {
    alert: "CallnumberHeadroomLow",
    fires: { [own("callnumber_headroom_runs")]: "60000-1000x40", [alarm("headroom_low")]: "0x10 1x30" },
    // For a moment.
    silent: { [own("callnumber_headroom_runs")]: "60000x27 0+120x20", [alarm("headroom_low")]: "0x25 1x20" },
  },
  {
    alert: "CallnumberRunCeilingEnding",
    fires: { [alarm("run_ceiling_ending")]: "0x20 1x20" },
    silent: { [alarm("run_ceiling_ending")]: "0x40", [alarm("run_ceiling_ending", "notice")]: "1x40" },
  },
  {
    alert: "CallnumberLedgerTrimFails",
    fires: { [trimFailures]: "0x60 1x60" },
    silent: { [trimFailures]: "0 1x120" },
    atMin: 90,
  },
  {
    alert: "CallnumberLedgerTrimFails",
    fires: { [outside("callnumber_ledger_trim_failures_total")]: "0x60 1x60" },
    silent: { [outside("callnumber_ledger_trim_failures_total")]: "0 1x120" },
    atMin: 90,
  },
];
