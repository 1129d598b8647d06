/** See `LeaseStore.epoch`. A server refuses this while it is a replica. */
const EPOCH = `extract(epoch FROM pg_postmaster_start_time()) || '/' ||
    left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) || '/' || 'nodelease'::regclass::oid`;

const SERVER = `WITH server AS MATERIALIZED (SELECT clock_timestamp() AS now, ${EPOCH} AS epoch)`;

export const READ_EPOCH = `${SERVER} SELECT epoch FROM server`;

/** No age for rows of another epoch: the clocks of two servers are not compared. */
const ANSWER = `(extract(epoch FROM server.now) * 1000)::float8 AS now, CASE WHEN o.epoch = server.epoch
    THEN greatest(0, extract(epoch FROM server.now - o.written_at) * 1000)::float8 END AS age`;

/**
 * Has the commit of this very statement, whatever the session's defaults are, wait until it is on the disk of this
 * server and of its synchronous standbys, and warn where it did not. A `SET` would be left to other clients of a
 * pooler.
 */
const DURABLE = `set_config('client_min_messages', 'warning', true), set_config('synchronous_commit',
  CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)`;

/** A `timestamp` has no time zone: it is refused, since its ages would depend on that of the session. */
const WRITTEN = `RETURNING o.etag, (extract(epoch FROM o.written_at) * 1000)::float8 AS now,
  extract(timezone FROM o.written_at), ${DURABLE}`;

/** The time of writing is read before a wait for a lock, and after the request was sent. */
export const CREATE = `${SERVER}
  INSERT INTO nodelease AS o (prefix, key, etag, body, metadata, written_at, epoch)
  SELECT $1, $2, $3::uuid, $4, $5::jsonb, server.now, server.epoch FROM server WHERE $6::text IS NULL
  ON CONFLICT DO NOTHING ${WRITTEN}`;

export const REPLACE = `${SERVER}
  UPDATE nodelease AS o
  SET etag = $3::uuid, body = $4, metadata = $5::jsonb, written_at = server.now, epoch = server.epoch
  FROM server WHERE o.prefix = $1 AND o.key = $2 AND o.etag::text = $6 ${WRITTEN}`;

/** One row, or more: its key is null where there is no object. */
export const READ = `${SERVER}
  SELECT ${ANSWER}, o.key, o.etag, o.body, o.metadata
  FROM server LEFT JOIN nodelease o ON o.prefix = $1 AND o.key = $2`;

/** The same. With `$2` also the objects of the prefixes below. */
export const LIST = `${SERVER}
  SELECT ${ANSWER}, substr(o.prefix || '/' || o.key, length($1::text) + 2) AS key, o.etag, octet_length(o.body) AS size
  FROM server LEFT JOIN nodelease o
    ON o.prefix = $1 OR ($2::boolean AND o.prefix > $1 || '/' AND o.prefix < $1 || '0')
  ORDER BY o.prefix, o.key`;

export const DISCARD = 'DELETE FROM nodelease WHERE prefix = $1 AND key = $2';

/** Rows are replaced all the time: half of each page is left for that, so that no index is written. */
export const CREATE_TABLE = `CREATE TABLE IF NOT EXISTS nodelease (
  prefix text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  etag uuid NOT NULL,
  body text NOT NULL,
  metadata jsonb NOT NULL,
  written_at timestamptz NOT NULL,
  epoch text NOT NULL,
  PRIMARY KEY (prefix, key)) WITH (fillfactor = 50)`;

/** Ends when synchronous standbys have all that was written before. */
export const BARRIER = `SELECT ${DURABLE}, pg_logical_emit_message(true, 'nodelease', '')`;

/**
 * Notifies waiting tasks. A transaction that does commits under a lock of the whole server: it writes nothing else,
 * and does not wait for a disk.
 */
export const NOTIFY = `SELECT pg_notify($1, $2), set_config('synchronous_commit', 'off', true)`;

/** What of a server concerns leases. A replica refuses it. The last row is for clients behind a pooler alone. */
export const DESCRIBE = `WITH server AS MATERIALIZED (SELECT pg_current_wal_insert_lsn(),
    current_setting('synchronous_standby_names') AS names,
    (SELECT count(*) FROM pg_stat_replication) AS standbys,
    coalesce((SELECT version FROM pg_stat_ssl WHERE pid = pg_backend_pid()), 'without TLS') AS tls)
  SELECT facts.*, pg_backend_pid() AS pid FROM server CROSS JOIN LATERAL (
    SELECT 'server', 'ok', format('PostgreSQL %s, %s, synchronous_commit = %s, synchronous_standby_names = %L',
      current_setting('server_version'), tls, current_setting('synchronous_commit'), names)
    UNION ALL SELECT 'clock', 'ok', 'ages of leases are those by the clock of this server: slew it, never set it'
    UNION ALL SELECT 'durability', 'fault', 'fsync = off: a crash of the host loses or damages leases'
    WHERE current_setting('fsync') = 'off'
    UNION ALL SELECT 'durability', 'fault', 'the table is unlogged: a crash of the server empties it, with all versions'
    FROM pg_class WHERE oid = 'nodelease'::regclass AND relpersistence <> 'p'
    UNION ALL SELECT 'replication', 'warning', format('asynchronous, %s standby(s): a promotion loses the last writes,'
      ' so leases go back in time; set synchronous_standby_names', standbys)
    WHERE names = '' AND standbys > 0
    UNION ALL SELECT 'replication', 'warning', format('synchronous_standby_names = %s: after a promotion the old primary'
      ' may acknowledge writes through another standby; have it wait for all, such as FIRST 2 (a, b)', names)
    WHERE coalesce(substring(names FROM '(\\d+)\\s*\\(')::int, 1) <
      CASE WHEN names LIKE '%*%' THEN standbys ELSE cardinality(string_to_array(names, ',')) END
    UNION ALL SELECT 'pooler', 'warning', 'no notifications: waiting tasks poll'
  ) AS facts (id, status, detail)`;
