/**
 * The statements of the store, in one schema. They know no rule: they compare, add, write and answer, as step-store.ts does for the stores
 * in the coordinator's process. What they compare and write comes as one JSON parameter, so that it has names.
 * Guarantees: G1 (docs/guarantees.md).
 */
import { RECORD_FIELDS } from "../../guard/record.js";

/** The columns of a record. `k`: the checksum of the others, SHA-256 where other stores have SHA-1, which this server does not know. */
export const RECORD_COLUMNS = [...RECORD_FIELDS, "k"] as const;

const [MARK_AT, TIME_AT] = [RECORD_FIELDS.indexOf("c") + 1, RECORD_FIELDS.indexOf("t") + 1];
/** Those that no lease changes. */
const STILL_FIELDS = RECORD_FIELDS.filter((name) => name !== "c" && name !== "t");

const listOf = (names: readonly string[], row: string) => names.map((name) => `${row}.${name}`).join(", ");
const sha256Of = (text: string) => `encode(sha256(convert_to(${text}, 'UTF8')), 'hex')`;
const checksumOf = (fields: string) => sha256Of(`array_to_string(${fields}, E'\\n', '')`);
/** Null for a text that a cast would end the statement for. */
const wholeOf = (column: string) => `CASE WHEN ${column} ~ '^[0-9]{1,15}$' THEN ${column}::bigint END`;

/** How long a step waits for another one to end. Not longer than the coordinator waits for the answer. */
const LOCK_TIMEOUT = "2s";
/** After this, the server ends a transaction whose coordinator is gone: its connection would stay open for hours, with the row locked. */
const IDLE_TIMEOUT = "5s";

/**
 * Who receives the log. A backup could not be promoted, and a logical subscriber is another cluster: no standby, also where a commit waits for it.
 * Neither replays. A sender that does is a standby, whatever its name: pg_basebackup -R writes PGAPPNAME into what it makes.
 * What does not report that it replays, such as an archiver under another name, may be one as far as is known, and acknowledges nothing. What has
 * not begun to stream is none yet: a check of a monitor, or the first copy of a subscriber's table.
 */
export const SENDERS = `(SELECT sender.*, sender.sync_state IN ('sync', 'quorum') AS is_waited_for, sender.replay_lsn IS NOT NULL AS replays,
    (coalesce(sender.application_name, '') NOT IN ('pg_basebackup', 'pg_receivewal') OR sender.replay_lsn IS NOT NULL) AND coalesce(sender.state, '') NOT IN ('startup', 'backup') AND NOT EXISTS (
      SELECT FROM pg_replication_slots AS slot WHERE slot.active_pid = sender.pid AND slot.slot_type = 'logical') AS is_standby
  FROM pg_stat_replication AS sender)`;

/** How many standbys there are, and which connections they have: a clock that was set back makes the latest one look old. Some users don't see. */
const STANDBYS = `(SELECT count(*) FILTER (WHERE is_standby) AS standbys, bool_or(is_standby AND backend_start IS NULL) AS are_hidden,
    md5(string_agg(concat_ws(' ', pid, extract(epoch FROM backend_start)), ',' ORDER BY pid) FILTER (WHERE is_standby)) AS connections
  FROM ${SENDERS} AS sender) AS senders`;

/**
 * The server at this moment. Its epoch: when its process began and, from PostgreSQL 15 on, last recovered from a crash of a part of it, which resets its
 * statistics; the database and its table, of which a copy has others; which cluster it is, the timeline that it writes (a checkpoint would show a
 * promotion late), and the connections of its standbys: one that comes may have followed another server meanwhile.
 */
const serverOf = (table: string) => `
  CASE WHEN pg_is_in_recovery() THEN 'replica' ELSE 'master' END AS role,
  CASE WHEN senders.are_hidden THEN NULL ELSE concat_ws(':', concat_ws('-', (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::bigint,
      CASE WHEN current_setting('server_version_num')::integer >= 150000
        THEN (extract(epoch FROM pg_stat_get_bgwriter_stat_reset_time()) * 1000000)::bigint END,
      (SELECT oid FROM pg_database WHERE datname = current_database()), '${table}'::regclass::oid),
    (SELECT system_identifier FROM pg_control_system()),
    CASE WHEN pg_is_in_recovery() THEN '-' ELSE substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8) END,
    coalesce(senders.connections, '0')) END AS epoch, senders.standbys`;

/** For what a lease rests on. Set again after a write, because a trigger of another program may have changed it. */
const DURABLY = "set_config('synchronous_commit', 'on', true)";
/** What reports and upkeep write: no lease rests on it, and it waits for no standby, which may be away for long. */
const LOCALLY = "SELECT set_config('synchronous_commit', 'local', true)";

/** What is asked of `read` and `apply`: `Ask` names the same fields. */
const ASK = `ask AS MATERIALIZED (
  SELECT * FROM jsonb_to_record($1::jsonb) AS ask(nonce text, namespace text, server text, standbys_max bigint, time_min_ms bigint,
    time_max_ms bigint, place text, fingerprint text, ledger_mark bigint, still text[], now_ms bigint, age_min_ms bigint,
    age_max_ms bigint, base bigint, mark_id_min bigint, is_ledger_reached boolean, mark_max bigint, after text[], holders jsonb, leases jsonb))`;

/** One step, as JSON. `still` and what follows up to `mark_max`: only where leases of others do no harm, else `fingerprint` and `ledger_mark`. */
export interface Ask {
  readonly nonce: string;
  readonly namespace: string;
  /** Role and epoch. */
  readonly server: string;
  readonly standbys_max: number;
  readonly time_min_ms: number;
  readonly time_max_ms: number;
  /** What is where the keys of other stores are, and whether it expires: a record and a ledger, or nothing. */
  readonly place: string;
  readonly fingerprint: string | undefined;
  readonly ledger_mark: number;
  readonly still?: readonly (string | null)[] | undefined;
  readonly now_ms?: number | undefined;
  readonly age_min_ms?: number | undefined;
  readonly age_max_ms?: number | undefined;
  /** Ledger id of run 0. */
  readonly base: number;
  readonly mark_id_min?: number | undefined;
  readonly is_ledger_reached?: boolean | undefined;
  readonly mark_max?: number | undefined;
  /** The record to write, in the order of its fields. */
  readonly after: readonly string[];
  readonly holders: readonly { readonly id: string; readonly name: string; readonly json: string }[];
  readonly leases: readonly { readonly runs: number; readonly nonce: string; readonly holder: string }[];
}

export function stillFieldsOf(fields: Readonly<Partial<Record<string, string>>>): readonly (string | null)[] {
  return STILL_FIELDS.map((name) => fields[name] ?? null);
}

/** A row of a lease with its holder, as `StoredLease`, and its progress. */
const LEASE = `lease.last_ledger_id AS "lastLedgerId", lease.run_count AS "runCount", lease.leased_at_ms AS "leasedAtMs",
  holder.json AS "holderJson", lease.nonce, lease.progress_run AS run, lease.progress_sequence AS "lastSequence",
  lease.progress_state AS state, lease.progress_at_ms AS "reportedAtMs"`;

/** `schema`: as in the store's URL. */
export function statementsIn(schema: string) {
  const own = (table: string) => `"${schema}".${table}`;
  const asked = "FROM ask JOIN ".concat(own("namespaces"), " AS n ON n.name = ask.namespace");
  // The row is locked before anything else is looked at: a step that waited for another one sees what that has left.
  const locked = `found AS MATERIALIZED (SELECT n.* ${asked} CROSS JOIN (
    SELECT set_config('lock_timeout', '${LOCK_TIMEOUT}', true), ${DURABLY},
      set_config('client_min_messages', 'warning', true)) AS own FOR UPDATE OF n)`;
  const seen = `seen AS MATERIALIZED (
    SELECT found.*, ask.nonce, floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now_ms,
      coalesce((SELECT max(last_ledger_id) FROM ${own("leases")} WHERE namespace = ask.namespace), 0) AS ledger_mark,
      ${sha256Of(`ARRAY[${listOf(RECORD_COLUMNS, "found")}]::text`)} AS fingerprint,
      ${checksumOf(`ARRAY[${listOf(RECORD_FIELDS, "found")}]`)} = found.k AS is_whole, ${serverOf(own("namespaces"))}
    FROM ask LEFT JOIN found ON true CROSS JOIN ${STANDBYS})`;
  const sameServer = `concat_ws(' ', seen.role, seen.epoch) = ask.server AND seen.standbys <= ask.standbys_max
      AND seen.now_ms BETWEEN ask.time_min_ms AND ask.time_max_ms AND ask.place = concat_ws(' ',
        CASE WHEN num_nonnulls(${listOf(RECORD_COLUMNS, "seen")}) > 0 THEN 'hash' ELSE 'none' END,
        CASE WHEN seen.ledger_mark > 0 THEN 'stream hash' ELSE 'none none' END, 'false')`;
  const exactly = `fit AS MATERIALIZED (
    SELECT seen.name, ask.after, ask.base, ask.after[${MARK_AT}]::bigint AS mark, ask.after[${TIME_AT}]::bigint AS time_ms FROM ask, seen
    WHERE ${sameServer} AND seen.fingerprint = ask.fingerprint AND seen.ledger_mark = ask.ledger_mark)`;
  // The mark as it is found, and its time, each raised by what is asked.
  const rising = `raised AS MATERIALIZED (
    SELECT seen.*, ${wholeOf("seen.c")} AS mark, ${wholeOf("seen.t")} AS changed_at_ms, greatest(seen.now_ms, ask.now_ms) AS written_at_ms,
      (SELECT coalesce(sum(runs), 0)::bigint FROM jsonb_to_recordset(ask.leases) AS lease(runs integer)) AS runs FROM ask, seen
  ), fit AS MATERIALIZED (
    SELECT seen.name, ask.base, seen.mark, greatest(seen.changed_at_ms, seen.written_at_ms) AS time_ms,
      ask.after[:${MARK_AT - 1}] || ARRAY[(seen.mark + seen.runs)::text, greatest(seen.changed_at_ms, seen.written_at_ms)::text]
        || ask.after[${TIME_AT + 1}:] AS after FROM ask, raised AS seen
    WHERE ${sameServer} AND seen.is_whole AND ARRAY[${listOf(STILL_FIELDS, "seen")}] = ask.still
      AND seen.written_at_ms - seen.changed_at_ms BETWEEN ask.age_min_ms AND ask.age_max_ms
      AND ask.base + seen.mark >= ask.mark_id_min AND (ask.base + seen.mark >= seen.ledger_mark OR NOT ask.is_ledger_reached)
      AND seen.mark + seen.runs <= ask.mark_max)`;
  const written = `written AS (
    UPDATE ${own("namespaces")} AS n SET ${RECORD_FIELDS.map((name, at) => `${name} = fit.after[${at + 1}]`).join(", ")},
      k = ${checksumOf("fit.after")} FROM fit WHERE n.name = fit.name
      RETURNING n.c, n.t, n.c = fit.after[${MARK_AT}] AND n.t = fit.after[${TIME_AT}] AS is_as_asked
  ), holders AS (
    INSERT INTO ${own("holders")} SELECT holder.id, holder.name, holder.json
      FROM written, ask, jsonb_to_recordset(ask.holders) AS holder(id uuid, name text, json text) ORDER BY holder.id ON CONFLICT DO NOTHING
  ), leases AS (
    INSERT INTO ${own("leases")} (namespace, last_ledger_id, run_count, leased_at_ms, holder_id, nonce)
      SELECT fit.name, fit.base + fit.mark + sum(lease.runs) OVER (ORDER BY lease.at), lease.runs, fit.time_ms, lease.holder, lease.nonce
      FROM written, fit, ask, ROWS FROM (jsonb_to_recordset(ask.leases) AS (runs integer, nonce text, holder uuid))
        WITH ORDINALITY AS lease(runs, nonce, holder, at))`;
  const answer = `SELECT seen.nonce, now_ms, ledger_mark, fingerprint, is_whole, role, epoch, standbys, ${listOf(RECORD_COLUMNS, "seen")}`;
  const apply = (fit: string) =>
    `WITH ${ASK}, ${locked}, ${seen}, ${fit}, ${written} ${answer}, written.c::bigint AS written_mark, written.t::bigint AS written_time, written.is_as_asked,
       CASE WHEN written.c IS NOT NULL THEN ${DURABLY} END
     FROM seen LEFT JOIN written ON true`;
  const leases = (where: string, order: string) =>
    `SELECT ${LEASE} FROM ${own("leases")} AS lease LEFT JOIN ${own("holders")} AS holder ON holder.id = lease.holder_id
     WHERE lease.namespace = $1 AND ${where} ORDER BY ${order} LIMIT $3`;
  return {
    read: `WITH ${ASK}, found AS MATERIALIZED (SELECT n.* ${asked}), ${seen} ${answer} FROM seen`,
    applyRising: apply(rising),
    applyExactly: apply(exactly),
    /**
     * The server, how far the log is on its disk, as far as it is asked for (null: now), how many standbys acknowledge at all, and how many of them have
     * so much of it on their disks. One that has more than was sent to it has the log of another time.
     */
    acknowledged: `WITH log AS MATERIALIZED (
        SELECT coalesce($1::pg_lsn, CASE WHEN pg_is_in_recovery() THEN NULL ELSE pg_current_wal_flush_lsn() END) AS lsn)
      SELECT log.lsn::text, counted.*, ${serverOf(own("namespaces"))} FROM log CROSS JOIN ${STANDBYS} CROSS JOIN LATERAL (
        SELECT count(*) AS connected, count(*) FILTER (WHERE flush_lsn BETWEEN log.lsn AND sent_lsn) AS acknowledged
        FROM ${SENDERS} AS sender WHERE is_standby AND replays AND is_waited_for) AS counted`,
    beginLocally: `${LOCALLY}, set_config('lock_timeout', '${LOCK_TIMEOUT}', true), set_config('idle_in_transaction_session_timeout', '${IDLE_TIMEOUT}', true)`,
    addName: `INSERT INTO ${own("namespaces")} (name) VALUES ($1) ON CONFLICT DO NOTHING`,
    lockName: `SELECT ${listOf(RECORD_COLUMNS, "n")}, n.trimmed_through FROM ${own("namespaces")} AS n WHERE n.name = $1 FOR UPDATE`,
    names: `SELECT name FROM ${own("namespaces")} AS n WHERE num_nonnulls(${listOf(RECORD_COLUMNS, "n")}) > 0 ORDER BY name`,
    oldest: leases("lease.last_ledger_id >= $2", "lease.last_ledger_id"),
    newest: leases("lease.last_ledger_id <= $2", "lease.last_ledger_id DESC"),
    since: leases("lease.leased_at_ms >= $2", "lease.leased_at_ms, lease.last_ledger_id"),
    newestId: `SELECT coalesce(max(last_ledger_id), 0) AS id FROM ${own("leases")} WHERE namespace = $1`,
    hasHolder: `SELECT EXISTS (SELECT FROM ${own("holders")} WHERE name = $1) AS found`,
    setProgress: `WITH own AS MATERIALIZED (${LOCALLY}) UPDATE ${own("leases")} SET progress_run = $3, progress_sequence = $4, progress_state = $5, progress_at_ms = $6 FROM own
      WHERE namespace = $1 AND last_ledger_id = $2 AND (progress_run, progress_sequence, progress_state, progress_at_ms)
        IS NOT DISTINCT FROM ($7::integer, $8::integer, $9::text, $10::bigint)`,
    retention: `SELECT retention_days AS days, trimmed_through AS through, trimmed_leased_at_ms AS "leasedAtMs"
      FROM ${own("namespaces")} WHERE name = $1`,
    setDays: `WITH own AS MATERIALIZED (${LOCALLY}) INSERT INTO ${own("namespaces")} (name, retention_days) SELECT $1::text, $2::integer FROM own
      ON CONFLICT (name) DO UPDATE SET retention_days = excluded.retention_days`,
    setTrimmed: `UPDATE ${own("namespaces")} SET trimmed_through = $2, trimmed_leased_at_ms = $3 WHERE name = $1`,
    removeUpTo: `DELETE FROM ${own("leases")} WHERE namespace = $1 AND last_ledger_id <= $2`,
    lockUpTo: `SELECT FROM ${own("leases")} WHERE namespace = $1 AND last_ledger_id <= $2 FOR UPDATE`,
    append: `WITH lease AS (
        SELECT * FROM jsonb_to_recordset($2::jsonb) AS lease(id bigint, runs integer, time_ms bigint, holder uuid, name text, json text, nonce text,
          run integer, sequence integer, state text, reported_at_ms bigint)
      ), holders AS (
        INSERT INTO ${own("holders")} SELECT DISTINCT holder, name, json FROM lease ORDER BY holder ON CONFLICT DO NOTHING
      ) INSERT INTO ${own("leases")}
        SELECT $1, id, runs, time_ms, holder, nonce, run, sequence, state, reported_at_ms FROM lease`,
  } as const;
}

export type Statements = ReturnType<typeof statementsIn>;
