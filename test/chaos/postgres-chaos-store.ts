import { setTimeout as sleep } from 'node:timers/promises';
import type { RandomSource } from '../../src/core/base/clock.js';
import { type PostgresProcess, startPostgresProcess } from '../support/servers/postgres-process.js';
import { monotonicMicros } from './act.js';
import type { ChaosStore, RawLease } from './chaos-store.js';
import type { FaultRecord } from './trouble.js';

/**
 * How long a fault lasts, and how long all is well after it, in milliseconds. After most of them the ages of leases are
 * unknown, so that the ids of dead tasks are free a duration and a grace later.
 */
const AWAY_MS = { least: 300, most: 3_000 };
const WELL_MS = { least: 4_000, most: 10_000 };
/** How long a look at a lease object may take while the servers are away, in milliseconds. */
const READ_WITHIN_MS = 30_000;

const PREFIX = 'chaos/fleet';
const STANDBY = 'b';
/** The rest of a statement about all connections of tasks. */
const OF_TASKS = `FROM pg_stat_activity WHERE usename = 'nodelease'`;

type Fault =
  | 'kill of the server'
  | 'restart of the server'
  | 'kill of a backend'
  | 'end of all backends'
  | 'cancelled statements'
  | 'no connections left'
  | 'standby away'
  | 'fail-over';

/** Each of them once in a round, so that no run is without one; some more often. */
const ROUND: readonly Fault[] = [
  'kill of the server',
  'restart of the server',
  'kill of a backend',
  'end of all backends',
  'cancelled statements',
  'no connections left',
  'standby away',
  'fail-over',
  'fail-over',
];

/**
 * A server and its synchronous standby, at two addresses. One fault at a time; a fail-over kills the primary, promotes
 * the standby, and puts a new standby in the place of the old primary.
 *
 * @param lossy whether the standby has not got the writes of the last seconds when it is promoted
 */
export async function startPostgresChaosStore(lossy: boolean) {
  let primary = await startPostgresProcess();
  let standby = await startPostgresProcess({ primary, name: STANDBY });
  const ports = [primary.port, standby.port];
  await synchronous(primary);

  const failOver = async (pause: (ms: number) => Promise<void>, awayMs: number, signal: AbortSignal) => {
    if (lossy) {
      await set(primary, 'synchronous_standby_names', '');
      // Paused replay would lose nothing: all that was received is replayed before a promotion.
      await set(standby, 'primary_conninfo', '');
      await pause(awayMs);
    }
    await primary.kill();
    const { port } = primary;
    await primary.dispose();
    await standby.promote();
    primary = standby;
    standby = await startPostgresProcess({ primary, name: STANDBY, port });
    await synchronous(primary, signal);
  };

  const harm = async (
    random: RandomSource,
    signal: AbortSignal,
    record: (fault: FaultRecord) => void,
  ): Promise<void> => {
    const pause = (ms: number) => sleep(ms, undefined, { signal }).catch(() => undefined);
    const between = ({ least, most }: typeof AWAY_MS) => Math.round(least + random.next() * (most - least));
    const faults: Record<Fault, (awayMs: number) => Promise<unknown>> = {
      'kill of the server': async (awayMs) => {
        await primary.kill();
        await pause(awayMs);
        await primary.start();
      },
      'restart of the server': async (awayMs) => {
        await primary.stop();
        await pause(awayMs);
        await primary.start();
      },
      // The server ends all others as well, and recovers, as after a crash; it is the same process all the time.
      'kill of a backend': async () => {
        const [row] = await primary.query(`SELECT pid ${OF_TASKS} ORDER BY random() LIMIT 1`);
        if (row) process.kill(Number(row.pid), 'SIGKILL');
      },
      'end of all backends': () => primary.query(`SELECT pg_terminate_backend(pid) ${OF_TASKS}`),
      'cancelled statements': async (awayMs) => {
        for (
          const end = performance.now() + awayMs;
          performance.now() < end && !signal.aborted;
          await pause(20)
        )
          await primary.query(`SELECT pg_cancel_backend(pid) ${OF_TASKS} AND state = 'active'`);
      },
      'no connections left': async (awayMs) => {
        await primary.query('ALTER ROLE nodelease CONNECTION LIMIT 2');
        await primary.query(`SELECT pg_terminate_backend(pid) ${OF_TASKS}`);
        await pause(awayMs);
        await primary.query('ALTER ROLE nodelease CONNECTION LIMIT -1');
      },
      // Writes wait for it. Operators who cannot wait cancel them.
      'standby away': async (awayMs) => {
        await standby.kill();
        await pause(awayMs / 2);
        await primary.query(`SELECT pg_cancel_backend(pid) ${OF_TASKS} AND wait_event = 'SyncRep'`);
        await pause(awayMs / 2);
        await standby.start();
      },
      'fail-over': (awayMs) => failOver(pause, awayMs, signal),
    };
    let round: Fault[] = [];
    while (!signal.aborted) {
      await pause(between(WELL_MS));
      if (signal.aborted) return;
      if (round.length === 0) round = [...ROUND];
      const [name = 'fail-over'] = round.splice(Math.floor(random.next() * round.length), 1);
      const lengthMs = between(AWAY_MS);
      record({ name, at: monotonicMicros(), lengthMs, slot: undefined, taskId: undefined });
      await faults[name](lengthMs);
      // Else the next fault would lose writes that a client may have seen.
      await caughtUp(primary, signal);
    }
  };

  const read = async (id: number): Promise<RawLease | undefined> => {
    const statement = `SELECT body, metadata FROM nodelease WHERE prefix = '${PREFIX}' AND key = '${id}.json'`;
    for (const deadline = performance.now() + READ_WITHIN_MS; ; await sleep(50)) {
      try {
        return (await primary.query(statement))[0] as RawLease | undefined;
      } catch (error) {
        if (performance.now() > deadline) throw error;
      }
    }
  };

  const store: ChaosStore = {
    servers: ports.map((port) => ({ hostname: '127.0.0.1', port })),
    env: {},
    address: (through = ports) => ({
      url: `postgres://nodelease@${through.map((port) => `127.0.0.1:${port}`).join(',')}/nodelease/${PREFIX}`,
      endpoint: '',
    }),
    read,
    harm,
    goesBack: lossy,
  };
  const stop = async () => {
    await standby.dispose();
    await primary.dispose();
  };
  return { store, description: `PostgreSQL at ${primary.address}, standby ${standby.address}`, stop };
}

async function set(server: PostgresProcess, setting: string, value: string): Promise<void> {
  await server.query(`ALTER SYSTEM SET ${setting} = '${value}'`);
  await server.query('SELECT pg_reload_conf()');
}

async function synchronous(primary: PostgresProcess, signal?: AbortSignal): Promise<void> {
  await set(primary, 'synchronous_standby_names', STANDBY);
  await caughtUp(primary, signal);
}

/** Resolves once the standby is synchronous, and has all that was written before; or the signal aborts. */
async function caughtUp(primary: PostgresProcess, signal?: AbortSignal): Promise<void> {
  for (let position: unknown; !signal?.aborted; await sleep(20)) {
    // While it recovers it answers nothing.
    const [row] = await primary
      .query(
        `SELECT pg_current_wal_lsn() AS now, flush_lsn >= '${position ?? '0/0'}' AS done
         FROM pg_stat_replication WHERE sync_state = 'sync'`,
      )
      .catch(() => []);
    if (position !== undefined && row?.done === true) return;
    position ??= row?.now;
  }
}
