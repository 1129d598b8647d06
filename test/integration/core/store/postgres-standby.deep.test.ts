import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import type { LeaseStore } from '../../../../src/core/store/lease-store.js';
import { openStore } from '../../../../src/core/store/open-store.js';
import { type PostgresProcess, startPostgresProcess } from '../../../support/servers/postgres-process.js';

// A primary and its standby.

let primary: PostgresProcess;
let standby: PostgresProcess;
const opened: LeaseStore[] = [];

beforeAll(async () => {
  primary = await startPostgresProcess();
  standby = await startPostgresProcess({ primary, name: 'b' });
}, 600_000);

afterAll(async () => {
  for (const store of opened) await store.close();
  await standby?.dispose();
  await primary?.dispose();
});

async function open(hosts: string, requestTimeoutMs = 5_000) {
  const store = await openStore(`postgres://nodelease@${hosts}/nodelease/${randomUUID()}`, {
    ...{ clock: systemClock, random: systemRandom, requestTimeoutMs },
  });
  opened.push(store);
  return store;
}

const facts = async (store: LeaseStore) =>
  (await store.describe?.())?.find(({ id }) => id === 'postgres-replication');

describe('a replica', () => {
  it('is refused, for reads too', async () => {
    const store = await open(primary.address);
    await store.create('0.json', 'x', {});
    const replica = await open(standby.address);
    for (const call of [
      () => replica.read('0.json'),
      () => replica.list(),
      () => replica.create('0.json', 'x', {}),
      () => replica.describe?.(),
      () => replica.epoch?.(),
    ])
      await expect(call()).rejects.toMatchObject({
        outcome: 'not-applied',
        message: expect.stringContaining(
          `${standby.address} is a replica or takes no writes: name the primary`,
        ),
      });
  });

  it('is passed over where the URL names the primary, too', async () => {
    const store = await open(`${standby.address},${primary.address}`);
    expect(await store.create('0.json', 'x', {})).toMatchObject({ status: 'written' });
    expect(await store.read('0.json')).toMatchObject({ body: 'x' });
  });
});

it('doctor learns of a standby, and whether it is synchronous', async () => {
  const store = await open(primary.address);
  expect(await facts(store)).toMatchObject({
    status: 'warning',
    detail: expect.stringMatching(/^asynchronous, 1 /),
  });
  const waitFor = async (names: string) => {
    await primary.query(`ALTER SYSTEM SET synchronous_standby_names = '${names}'`);
    await primary.query('SELECT pg_reload_conf()');
  };
  for (const names of ['ANY 1 (b, c)', 'FIRST 1 (b, c)', 'b, c', '2 ( b, c, d )']) {
    await waitFor(names);
    const said = `synchronous_standby_names = ${names}: after a promotion the old primary`;
    await expect.poll(() => facts(store)).toMatchObject({ detail: expect.stringContaining(said) });
  }
  for (const names of ['FIRST 2 (b, c)', 'any 2 (b, c)', '*', 'b']) {
    await waitFor(names);
    await expect.poll(() => facts(store)).toBeUndefined();
    await waitFor('b, c');
    await expect.poll(() => facts(store)).toBeDefined();
  }
  await waitFor('b');
  await expect.poll(() => facts(store)).toBeUndefined();
});

it('a write whose wait for a synchronous standby is cancelled is unknown, and no read proves it before the standby has it', async () => {
  await primary.query('ALTER ROLE nodelease SET client_min_messages = error');
  const store = await open(primary.address, 2_000);
  await store.create('0.json', 'x', {});
  await standby.stop();
  const writing = store.create('1.json', 'y', {}).catch((error: unknown) => error);
  const waiting = async () =>
    (
      await primary.query(
        `SELECT pg_cancel_backend(pid) AS done FROM pg_stat_activity WHERE application_name = 'nodelease' AND wait_event = 'SyncRep' AND query LIKE '%INSERT%'`,
      )
    ).length;
  while ((await waiting()) === 0) await systemClock.sleep(10);
  expect(await writing).toMatchObject({
    outcome: 'unknown',
    message: expect.stringContaining('has given up the wait for its synchronous standby'),
  });
  expect(await primary.query(`SELECT body FROM nodelease WHERE key = '1.json'`)).toEqual([{ body: 'y' }]);
  await expect(store.read('1.json')).rejects.toMatchObject({
    message: expect.stringContaining('no answer within'),
  });
  await standby.start();
  await expect.poll(() => store.read('1.json').catch(() => undefined)).toMatchObject({ body: 'y' });
});

it('a promoted standby is another epoch, and has the writes that were confirmed', async () => {
  const store = await open(`${primary.address},${standby.address}`);
  await store.create('0.json', 'x', {});
  expect((await store.epoch?.())?.split('/')[1]).toBe('00000001');
  await primary.kill();
  await standby.promote();
  await expect.poll(() => store.read('0.json').catch(() => undefined)).toMatchObject({ body: 'x' });
  expect(await store.read('0.json')).toMatchObject({ age: { max: Number.POSITIVE_INFINITY } });
  expect((await store.epoch?.())?.split('/')[1]).toBe('00000002');
});
