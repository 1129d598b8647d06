import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import { EtcdLeaseStore } from '../../../../src/core/store/etcd/index.js';
import type { LeaseStore } from '../../../../src/core/store/lease-store.js';
import { StoreError } from '../../../../src/core/store/lease-store.js';
import { openStore } from '../../../../src/core/store/open-store.js';
import { newEtcdStore } from '../../../support/etcd.js';
import { type EtcdCluster, startEtcdCluster } from '../../../support/servers/etcd-cluster.js';
import { type EtcdProcess, findEtcd } from '../../../support/servers/etcd-process.js';

// Three members, of which the leader is killed, paused, or cut off from the others.

let cluster: EtcdCluster;
let url: string;
const opened: LeaseStore[] = [];

beforeEach(async () => {
  cluster = await startEtcdCluster();
  url = newEtcdStore(cluster);
});

afterEach(async () => {
  for (const store of opened.splice(0)) await store.close();
  await cluster.stop();
});

async function open(address = cluster.address, requestTimeoutMs = 1_000): Promise<LeaseStore> {
  const store = await openStore(url.replace(cluster.address, address), {
    clock: systemClock,
    random: systemRandom,
    requestTimeoutMs,
  });
  opened.push(store);
  return store;
}

/** The servers, the one that is to fail first: that is the one that a store asks first. */
const startingWith = (server: EtcdProcess) =>
  [server, ...cluster.servers.filter((each) => each !== server)].map(({ address }) => address).join(',');

describe.each<[string, (leader: EtcdProcess) => unknown, (leader: EtcdProcess) => unknown]>([
  ['killed', (leader) => leader.kill(), (leader) => leader.start()],
  ['paused', (leader) => leader.pause(), (leader) => leader.resume()],
  ['cut off from the others', (leader) => cluster.isolate(leader), () => cluster.heal()],
])('while the leader is %s', (_, fail, mend) => {
  it('writers go on at the others, each write is applied once, and none is lost', async () => {
    const leader = await cluster.leader();
    const store = await open(startingWith(leader));
    const first = await store.create('0.json', '0', {});
    let etag = first.status === 'written' ? first.etag : '';
    const bodies = ['0'];
    let failures = 0;
    const writeOn = async (until: () => boolean) => {
      for (const deadline = performance.now() + 35_000; !until() && performance.now() < deadline; ) {
        const body = String(bodies.length);
        try {
          const result = await store.replace('0.json', body, {}, etag);
          if (result.status !== 'written') throw new Error(`a conflict at ${body}, without another writer`);
          etag = result.etag;
          bodies.push(body);
        } catch (error) {
          if (!(error instanceof StoreError && error.transient)) throw error;
          failures += 1;
          // Rule 5: read back, and go on from what is there.
          const object = await store.read('0.json').catch(() => undefined);
          if (object === undefined) continue;
          expect([bodies.at(-1), body]).toContain(object.body);
          if (object.body === body) bodies.push(body);
          etag = object.etag;
        }
      }
    };
    await writeOn(() => bodies.length > 20);
    await fail(leader);
    const before = bodies.length;
    await writeOn(() => bodies.length > before + 50);
    expect(bodies.length).toBeGreaterThan(before + 50);
    await mend(leader);
    await cluster.leader();
    await writeOn(() => bodies.length > before + 100);
    expect((await store.read('0.json'))?.body).toBe(bodies.at(-1));
    expect(failures).toBeLessThan(20);
  });
});

it('without a quorum nothing is written or read, in time and with a reported outcome, and all goes on afterwards', async () => {
  const store = await open();
  await store.create('0.json', 'x', {});
  const [, second, third] = cluster.servers as [EtcdProcess, EtcdProcess, EtcdProcess];
  await Promise.all([second.kill(), third.kill()]);
  for (const attempt of [
    () => store.create('1.json', 'x', {}),
    () => store.read('0.json'),
    () => store.list(),
  ]) {
    const begun = performance.now();
    await expect(attempt()).rejects.toMatchObject({ transient: true });
    expect(performance.now() - begun).toBeLessThan(3_000);
  }
  await Promise.all([second.start(), third.start()]);
  await cluster.leader();
  await expect.poll(() => store.read('0.json').catch(() => undefined)).toMatchObject({ body: 'x' });
});

it('a watch ends when its server has lost the others, and the next one is made at another', async () => {
  const leader = await cluster.leader();
  const store = await open(startingWith(leader));
  const other = await open(cluster.servers.find((server) => server !== leader)?.address);
  await store.list();
  const given = new AbortController();
  const reported: string[] = [];
  const watch = () =>
    store.changed?.(given.signal, ({ key }) => reported.push(key) < 0) ??
    Promise.reject(new Error('no watch'));
  const first = watch();
  await other.create('0.json', 'x', {});
  await expect.poll(() => reported).toEqual(['0.json']);
  cluster.isolate(leader);
  await first;
  const second = watch();
  await cluster.leader();
  await other.create('1.json', 'x', {});
  await expect.poll(() => reported.at(-1)).toBe('1.json');
  given.abort(new Error('enough'));
  await expect(second).rejects.toThrow('enough');
});

it('of 50 racing writers at three servers exactly one wins each race, and no write is lost', async () => {
  const stores = await Promise.all(
    Array.from({ length: 50 }, (_, writer) => open(cluster.servers[writer % 3]?.address, 20_000)),
  );
  const [store] = stores as [LeaseStore];
  let etag = '';
  for (let race = 0; race < 10; race += 1) {
    const results = await Promise.all(
      stores.map((each, writer) =>
        race === 0
          ? each.create('0.json', `0 ${writer}`, {})
          : each.replace('0.json', `${race} ${writer}`, {}, etag),
      ),
    );
    const winners = results.flatMap((result, writer) =>
      result.status === 'written' ? [{ writer, etag: result.etag }] : [],
    );
    expect(winners).toHaveLength(1);
    const [winner] = winners as [{ writer: number; etag: string }];
    expect(await store.read('0.json')).toMatchObject({ body: `${race} ${winner.writer}`, etag: winner.etag });
    etag = winner.etag;
  }
});

describe.each(['debian', '3.6'] as const)('etcd of version %s', (version) => {
  // One of them is built, which takes minutes.
  beforeAll(() => findEtcd(version), 900_000);

  // Where leases of etcd are renewed such a leader may revoke them all: nearly always on 3.4, and in one of
  // three trials on 3.6 with its own timing.
  it('reports no write as older than it is, also when a leader goes on that was paused for longer than marks stay', async () => {
    const three = await startEtcdCluster(version);
    try {
      for (let round = 0; round < 2; round += 1) {
        const leader = await three.leader();
        const endpoints = three.servers.filter((server) => server !== leader).map(({ endpoint }) => endpoint);
        const options = {
          url: 'etcd:',
          endpoints,
          prefix: `p${round}`,
          clock: systemClock,
          requestTimeoutMs: 1_000,
        };
        const store = new EtcdLeaseStore(options);
        opened.push(store);
        const begun = new Map<string | undefined, number>();
        const renewing = new AbortController();
        const renew = async (key: string) => {
          for (let etag: string | undefined; !renewing.signal.aborted; await systemClock.sleep(500)) {
            const at = performance.now();
            const write = { expiresAfterMs: 1_000 };
            const result = await (etag === undefined
              ? store.create(key, 'x', {}, write)
              : store.replace(key, 'x', {}, etag, write)
            ).catch(() => undefined);
            if (result?.status === 'written') begun.set(result.etag, at);
            etag =
              result?.status === 'written'
                ? result.etag
                : (await store.read(key).catch(() => undefined))?.etag;
          }
        };
        const look = async (lengthMs: number) => {
          for (
            const end = performance.now() + lengthMs;
            performance.now() < end;
            await systemClock.sleep(50)
          ) {
            const rows = (await store.list().catch(() => undefined))?.objects ?? [];
            for (const { key, etag, age } of rows) {
              const at = begun.get(etag);
              if (at !== undefined) expect(age.min, key).toBeLessThanOrEqual(performance.now() - at);
            }
          }
        };
        const holders = Array.from({ length: 40 }, (_, id) => renew(`${id}.json`));
        await look(2_000);
        leader.pause();
        await look(6_000);
        const before = begun.size;
        leader.resume();
        await look(4_000);
        renewing.abort();
        await Promise.all(holders);
        expect(begun.size - before).toBeGreaterThan(40);
        expect(await three.leader()).not.toBe(leader);
      }
    } finally {
      await three.stop();
    }
  });
});
