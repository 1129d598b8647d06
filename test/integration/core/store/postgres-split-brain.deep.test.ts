import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import { acquireLease } from '../../../../src/core/lease/acquire/acquire-lease.js';
import type { Lease } from '../../../../src/core/lease/model/lease.js';
import { openStore } from '../../../../src/core/store/open-store.js';
import { type PostgresProcess, startPostgresProcess } from '../../../support/servers/postgres-process.js';

// A standby is promoted while the old primary is alive, and reached by the task that holds the id. Two tasks hold it
// wherever the old primary still acknowledges writes: no task can know, as docs/guides/postgres.md says.

const [DURATION, GRACE] = [4_000, 500];

let primary: PostgresProcess;
/** Follows the old primary, also after the promotion of another standby. */
let other: PostgresProcess;
const ends: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  primary = await startPostgresProcess();
  other = await startPostgresProcess({ primary, name: 'c' });
}, 600_000);

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

afterAll(async () => {
  await other?.dispose();
  await primary?.dispose();
});

async function acquire({ address }: PostgresProcess, prefix: string): Promise<Lease> {
  const times = { clock: systemClock, random: systemRandom };
  const url = `postgres://nodelease@${address}/nodelease/${prefix}`;
  const store = await openStore(url, { ...times, requestTimeoutMs: 1_000 });
  const lease = await acquireLease({
    ...{ store, ...times, nodes: 1, taskId: address },
    ...{ durationMs: DURATION, graceMs: GRACE },
  });
  ends.push(async () => {
    await lease.release();
    await store.close();
  });
  return lease;
}

async function waitFor(standbys: string): Promise<void> {
  await primary.query(`ALTER SYSTEM SET synchronous_standby_names = '${standbys}'`);
  await primary.query('SELECT pg_reload_conf()');
}

const FOLLOWS = `SELECT 1 FROM pg_stat_replication
  WHERE application_name = 'b' AND replay_lsn >= pg_current_wal_lsn()`;

it.each([
  ['', 2],
  ['ANY 1 (b, c)', 2],
  ['FIRST 1 (b, c)', 2],
  ['b', 1],
  ['FIRST 2 (b, c)', 1],
])(
  'after a promotion of b with synchronous_standby_names = "%s", holders of one id: %d',
  async (names, holders) => {
    await waitFor('');
    const standby = await startPostgresProcess({ primary, name: 'b' });
    ends.push(standby.dispose);
    await waitFor(names);
    const prefix = randomUUID();
    const old = await acquire(primary, prefix);
    while ((await primary.query(FOLLOWS)).length === 0) await systemClock.sleep(10);

    await standby.promote();
    const young = await acquire(standby, prefix);

    expect(young.id).toBe(old.id);
    expect([old, young].filter((lease) => lease.isValid())).toHaveLength(holders);
    // A receiver that refuses the smaller version is safe in any case.
    expect(young.version).toBeGreaterThan(old.version + 2 ** 32 - 1);
  },
);
