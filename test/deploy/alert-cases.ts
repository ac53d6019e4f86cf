/**
 * For each alert of deploy/monitoring/callnumber-rules.yml: series with which it fires, and some with which it does not. In promtool's
 * notation: `0x30` is 0 for 31 minutes, `0+2x30` rises by 2 each minute, `_x30` is no series for 31 minutes. Each begins as that of a
 * real coordinator does, which monitoring.slow.test.ts compares: a first incident that brings its series along is no rise to Prometheus.
 */

type Series = Readonly<Record<string, string>>;

/** The name of the alert, the series with which it fires and with which it does not, and when it is checked: in minutes, default 30. */
export type AlertCase = readonly [alert: string, fires: Series, silent: Series, atMinutes?: number | undefined];

const own = (name: string, labels = "") => `${name}{namespace="main",instance="one"${labels && `,${labels}`}}`;
/** Of requests that name no known namespace. */
const outside = (name: string, labels = "") => own(name, labels).replace('"main"', '""');
const STARTED = 'process_start_time_seconds{instance="one"}';
const guard = (state: string) => own("callnumber_guard_state", `state="${state}"`);
const rejections = (code: string) => own("callnumber_rejected_requests_total", `code="${code}"`);
const recoveries = (code: string) => own("callnumber_recoveries_total", `reason="${code}"`);
const alarm = (name: string, severity = "warning") => own("callnumber_alarms", `name="${name}",severity="${severity}"`);
const linesLost = 'callnumber_log_lines_dropped_total{instance="one"}';
const trimFailures = own("callnumber_ledger_trim_failures_total");
const discarded = (reason: string) => own("callnumber_runs_discarded_total", `reason="${reason}"`);
const bucket = (le: string) => own("callnumber_lease_duration_seconds_bucket", `le="${le}"`);
const certificateEnd = 'callnumber_tls_certificate_expiry_timestamp_seconds{instance="one"}';
const findings = (effect: string) => `callnumber_preflight_findings{instance="one",effect="${effect}"}`;

/** Alerts for which once is enough: it happened before the first scrape of a process, as after a power cut. */
export const CASES_BEFORE_FIRST_SCRAPE = Object.entries({
  CallnumberHolderOfAnotherStore: rejections("run_above_high_water_mark"),
  CallnumberClocksDisagree: rejections("clock_skew"),
  CallnumberInternalError: rejections("internal_error"),
  CallnumberLogLinesLost: linesLost,
  CallnumberRecovered: recoveries("epoch_changed"),
  CallnumberLedgerTrimFails: trimFailures,
}).map(
  ([alert, series]): AlertCase => [
    alert,
    { [series]: "_x80 1x20", [STARTED]: "_x80 4860x20" },
    { [series]: "1x100", [STARTED]: "0x100" },
    90,
  ],
);

/** A case of one series: its values with which the alert fires and with which it does not. */
const of = (alert: string, series: string, fires: string, silent: string, atMinutes?: number): AlertCase => [
  alert,
  { [series]: fires },
  { [series]: silent },
  atMinutes,
];

export const ALERT_CASES: readonly AlertCase[] = [
  [
    "CallnumberDown",
    { 'up{job="callnumber",instance="one"}': "1x20 0x20" },
    { 'up{job="callnumber",instance="one"}': "1x40", 'up{job="other",instance="one"}': "0x40" },
  ],
  [
    "CallnumberStopped",
    { [guard("stopped")]: "0x20 1x20", [guard("active")]: "1x20 0x20" },
    { [guard("stopped")]: "0x40", [guard("recovering")]: "1x40" },
  ],
  // Silent: for a minute, as after every restart of the store.
  of("CallnumberRecovering", guard("recovering"), "0x20 1x20", "0x28 1x1 0x20"),
  of("CallnumberStoreDown", 'callnumber_store_up{instance="one"}', "1x20 0x20", "1x28 0 1x20"),
  // Time begins at 0 there. Where plain HTTP is spoken, as by the coordinator that these series are compared with, there is none.
  // Fires: ten days; silent: fifteen days.
  of("CallnumberCertificateEndsSoon", certificateEnd, "_ 864000x100", "_ 1296000x100", 90),
  [
    "CallnumberCertificateEndsSoon",
    // Its last fourteen days begin with the tenth minute.
    { [certificateEnd]: "_ 1210200x100" },
    // Renewed within the hour; and one for which CallnumberCertificateEnds is raised already.
    { [certificateEnd]: "_ 864000x50 7776000x50", [certificateEnd.replace("one", "two")]: "_ 172800x100" },
    90,
  ],
  // Fires: two days.
  of("CallnumberCertificateEnds", certificateEnd, "_ 172800x40", "_ 270000x40"),
  // Fires: it ended at the tenth minute.
  of("CallnumberCertificateEnds", certificateEnd, "_ 600x40", "_ 600x20 7776000x20"),
  of("CallnumberHeartbeatsFail", 'callnumber_heartbeat_failures_total{instance="one"}', "0x10 1+10x30", "0 3x40"),
  [
    "CallnumberRejections",
    { [rejections("holder_mismatch")]: "_x5 1+10x40" },
    {
      [rejections("holder_mismatch")]: "_x5 1+1x40",
      [rejections("run_ceiling_reached")]: "_x5 1+90x40",
      [rejections("not_found")]: "_x5 1+90x40",
    },
  ],
  [
    "CallnumberHolderOfAnotherStore",
    { [rejections("run_above_high_water_mark")]: "0x20 1x20" },
    { [rejections("run_above_high_water_mark")]: "0 1x40", [rejections("invalid_request")]: "_x5 1+9x40" },
  ],
  [
    "CallnumberClocksDisagree",
    { [rejections("clock_skew")]: "0x20 1x20" },
    { [rejections("clock_skew")]: "0 1x40", [rejections("store_forked")]: "_x5 1+9x40" },
  ],
  of("CallnumberClocksDisagree", rejections("clock_moved_backward"), "0x20 1x20", "0x40"),
  [
    "CallnumberInternalError",
    { [rejections("internal_error")]: "0x20 1x20" },
    { [rejections("internal_error")]: "0 1x40", [rejections("invalid_request")]: "_x5 1+9x40" },
  ],
  of(
    "CallnumberInternalError",
    outside("callnumber_rejected_requests_total", 'code="internal_error"'),
    "0x20 1x20",
    "0 1x40",
  ),
  ["CallnumberLogLinesLost", { [linesLost]: "0x20 3x20" }, { [linesLost]: "0 3x40" }],
  [
    "CallnumberSlowLeases",
    { [bucket("1")]: "0+1x40", [bucket("2.5")]: "0+60x40", [bucket("+Inf")]: "0+60x40" },
    { [bucket("1")]: "0+60x40", [bucket("2.5")]: "0+60x40", [bucket("+Inf")]: "0+60x40" },
  ],
  [
    "CallnumberRecovered",
    { [recoveries("epoch_changed")]: "0x20 1x20" },
    // A store that was idle is no incident.
    { [recoveries("epoch_changed")]: "0 2x40", [recoveries("heartbeat_expired")]: "0x20 1x20" },
  ],
  of("CallnumberRecoversOften", recoveries("epoch_changed"), "0x10 0+1x30", "0x20 1x20"),
  [
    "CallnumberRunsDiscarded",
    { [discarded("requester_gone")]: "0+10x40" },
    { [discarded("requester_gone")]: "0+1x40", [discarded("skipped")]: "0+70000x40" },
  ],
  [
    "CallnumberPreflightRejects",
    { [findings("rejects")]: "0x20 1x20" },
    { [findings("rejects")]: "0x40", [findings("warns")]: "2x40" },
  ],
  [
    "CallnumberPreflightWarns",
    { [findings("warns")]: "1x100" },
    { [findings("warns")]: "0x50 1x50", [findings("rejects")]: "1x100" },
    90,
  ],
  of("CallnumberPreflightBlind", 'callnumber_preflight_failures_total{instance="one"}', "0+1x60", "0x10 1x50", 45),
  [
    "CallnumberRunsUsed",
    { [alarm("runs_used_80")]: "0x20 1x20" },
    {
      [alarm("runs_used_80")]: "0x40",
      [alarm("holder_restarts")]: "1x40",
    },
  ],
  of("CallnumberRunSpaceExhausted", own("callnumber_runs_left"), "40-2x20 0x20", "100-1x40"),
  [
    "CallnumberRunsEndSoon",
    // A run a second, and room for a day of it.
    { [own("callnumber_runs_leased_total")]: "0+60x200", [own("callnumber_runs_left")]: "86400x200" },
    { [own("callnumber_runs_leased_total")]: "0+60x200", [own("callnumber_runs_left")]: "1000000000x200" },
    150,
  ],
  [
    "CallnumberHolderRestarts",
    { [alarm("holder_restarts")]: "0x20 1x20" },
    { [alarm("holder_restarts")]: "0x20 1x5 0x20", [alarm("headroom_low")]: "1x40" },
  ],
  [
    "CallnumberConnectionsFull",
    { [alarm("connections_full")]: "0x20 1x20" },
    { [alarm("connections_full")]: "0x40", [alarm("holder_restarts")]: "1x40" },
  ],
  [
    "CallnumberTokensFileUnreadable",
    { [alarm("tokens_file_unreadable")]: "0x20 1x20" },
    { [alarm("tokens_file_unreadable")]: "0x40", [alarm("holder_restarts")]: "1x40" },
  ],
  // Silent: after a recovery the headroom grows by two runs a second.
  of("CallnumberHeadroomLow", own("callnumber_headroom_runs"), "60000x10 0x30", "60000x10 0+120x30"),
  [
    "CallnumberHeadroomLow",
    { [own("callnumber_headroom_runs")]: "60000-1000x40", [alarm("headroom_low")]: "0x10 1x30" },
    // For a moment.
    { [own("callnumber_headroom_runs")]: "60000x27 0+120x20", [alarm("headroom_low")]: "0x25 1x20" },
  ],
  [
    "CallnumberRunCeilingEnding",
    { [alarm("run_ceiling_ending")]: "0x20 1x20" },
    { [alarm("run_ceiling_ending")]: "0x40", [alarm("run_ceiling_ending", "notice")]: "1x40" },
  ],
  ["CallnumberLedgerTrimFails", { [trimFailures]: "0x60 1x60" }, { [trimFailures]: "0 1x120" }, 90],
  of("CallnumberLedgerTrimFails", outside("callnumber_ledger_trim_failures_total"), "0x60 1x60", "0 1x120", 90),
];
