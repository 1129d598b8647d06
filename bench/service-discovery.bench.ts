import { afterEach, beforeEach, expect, inject, it } from 'vitest';
import { systemClock, systemRandom } from '../src/core/base/system.js';
import { openZooKeeper, type ZooKeeperClient } from '../src/zookeeper/client/zookeeper-client.js';
import { jsonPayload } from '../src/zookeeper/services/instance/payload-codec.js';
import type { ServiceInstance } from '../src/zookeeper/services/instance/service-instance.js';
import { type InstanceSource, ServiceCache } from '../src/zookeeper/services/service-cache.js';
import { ServiceDirectory } from '../src/zookeeper/services/service-directory.js';
import { ServiceProvider } from '../src/zookeeper/services/service-provider.js';
import { parseStrategy, STRATEGY_NAMES } from '../src/zookeeper/services/strategies.js';
import { uniqueChroot } from '../test/support/zookeeper.js';
import { inTurns } from './comparison.js';
import { median, report } from './report.js';
import { BASE_PATH, newInstances, register } from './service-instances.js';

/** How many instances there are to pick from. */
const SIZES = [10, 1_000, 10_000];

/** What a pick takes at the most, in nanoseconds: of round robin at any size, 5 million a second. */
const ROUND_ROBIN_NANOS = 200;
/**
 * How many times that of the fewest instances it may take of the most. Some of it is the processor's caches',
 * as for the baseline.
 */
const FLAT = 3;

const opened: ZooKeeperClient[] = [];
let connect: string;

beforeEach(() => {
  connect = `${inject('zookeeper').connect}${uniqueChroot('services')}`;
});
afterEach(async () => {
  for (const client of opened.splice(0).reverse()) await client.close();
});

async function open(): Promise<ZooKeeperClient> {
  const client = openZooKeeper({ connect, clock: systemClock, random: systemRandom });
  opened.push(client);
  await client.whenConnected();
  return client;
}

const directoryOf = (zookeeper: ZooKeeperClient) =>
  new ServiceDirectory({ zookeeper, clock: systemClock, basePath: BASE_PATH, payload: jsonPayload });
const cacheOf = (zookeeper: ZooKeeperClient, name: string) =>
  new ServiceCache({ zookeeper, clock: systemClock, basePath: BASE_PATH, name, payload: jsonPayload });

function fixed(instances: readonly ServiceInstance[]): InstanceSource {
  return {
    name: 'orders',
    instances,
    ready: Promise.resolve(),
    stale: undefined,
    onChange: () => () => {},
    close: () => {},
  };
}

/** Nanoseconds a call: the least of several runs, since all else that the machine does only adds to it. */
function nanosEach(pick: () => ServiceInstance | undefined): number {
  const [runs, calls] = [15, 400_000];
  let least = Number.POSITIVE_INFINITY;
  let ports = 0;
  for (let run = 0; run < runs; run += 1) {
    const begun = performance.now();
    // The sum is there so that no call can be left out.
    for (let i = 0; i < calls; i += 1) ports += pick()?.port ?? 0;
    least = Math.min(least, ((performance.now() - begun) * 1e6) / calls);
  }
  expect(ports).toBeGreaterThan(0);
  return least;
}

const count = (value: number) => value.toLocaleString('en');

it('picks', () => {
  const sizes = SIZES.map((size) => {
    const instances = newInstances('orders', size);
    let next = 0;
    return { size, instances, bare: nanosEach(() => instances[next++ % size]) };
  });
  report(
    'The baseline: the next index of an array',
    sizes.map(({ size, bare }) => [`of ${count(size)} instances`, `${bare.toFixed(1)} ns`, '1.00']),
  );
  for (const name of STRATEGY_NAMES) {
    const rows = sizes.map(({ size, instances, bare }) => {
      const options = {
        source: fixed(instances),
        clock: systemClock,
        random: systemRandom,
        strategy: parseStrategy(name),
      };
      const provider = new ServiceProvider(options);
      return { size, bare, nanos: nanosEach(() => provider.pick()) };
    });
    const first = rows[0]?.nanos ?? Number.NaN;
    report(
      `A pick: ${name}`,
      rows.map(({ size, bare, nanos }) => [
        `of ${count(size)} instances`,
        `${nanos.toFixed(1)} ns, ${(1_000 / nanos).toFixed(1)} million a second`,
        `${(nanos / bare).toFixed(2)} times the baseline, ${(nanos / first).toFixed(2)} times that of ${count(rows[0]?.size ?? 0)}`,
      ]),
    );
    for (const { size, nanos } of rows) {
      expect(nanos / first, `${name} is flat up to ${count(size)} instances`).toBeLessThan(FLAT);
      if (name === 'round-robin')
        expect(nanos, `a pick of ${count(size)} in turn`).toBeLessThan(ROUND_ROBIN_NANOS);
    }
  }
});

it('picks while one instance is down', () => {
  const instances = newInstances('orders', 1_000);
  const options = {
    source: fixed(instances),
    clock: systemClock,
    random: systemRandom,
    downPolicy: { timeoutMs: 3_600_000 },
  };
  const provider = new ServiceProvider(options);
  const up = nanosEach(() => provider.pick());
  for (let i = 0; i < 2; i += 1) provider.noteError(instances[0] as ServiceInstance);
  const down = nanosEach(() => provider.pick());
  report('A pick of 1,000 instances in turn', [
    ['none is down', `${up.toFixed(1)} ns`, '1.0'],
    ['one is, and each pick looks at a clock', `${down.toFixed(1)} ns`, (down / up).toFixed(1)],
  ]);
});

it('the fill of a cache', async () => {
  const size = 5_000;
  await register(await open(), newInstances('orders', size));
  const zookeeper = await open();
  const directory = directoryOf(zookeeper);
  const took = async (act: () => Promise<number>) => {
    const begun = performance.now();
    expect(await act()).toBe(size);
    return performance.now() - begun;
  };
  const { plain, ours } = await inTurns(
    { counted: 5, warmUp: 1 },
    () => took(async () => (await directory.instances('orders', { timeoutMs: 60_000 })).length),
    () =>
      took(async () => {
        const cache = cacheOf(zookeeper, 'orders');
        await cache.ready;
        cache.close();
        return cache.instances.length;
      }),
  );
  report(`All ${count(size)} instances of a service, median of 5`, [
    ['queried', `${median(plain).toFixed(0)} ms`, '1.00'],
    [
      'by a new cache, from its making until it is ready',
      `${median(ours).toFixed(0)} ms`,
      (median(ours) / median(plain)).toFixed(2),
    ],
  ]);
});

it('a pick from the cache against a query each time', async () => {
  const registrar = await open();
  const zookeeper = await open();
  const directory = directoryOf(zookeeper);
  for (const size of [10, 1_000]) {
    const name = `orders-${size}`;
    await register(registrar, newInstances(name, size));
    const cache = cacheOf(zookeeper, name);
    await cache.ready;
    const provider = new ServiceProvider({ source: cache, clock: systemClock, random: systemRandom });
    const queries: number[] = [];
    for (let round = -3; round < 25; round += 1) {
      const begun = performance.now();
      const found = await directory.instances(name);
      expect(found[Math.abs(round) % size]).toBeDefined();
      if (round >= 0) queries.push((performance.now() - begun) * 1e6);
    }
    const nanos = nanosEach(() => provider.pick());
    provider.close();
    const queried = median(queries);
    expect(nanos, 'a pick from the cache, where a query each time takes at least a round trip').toBeLessThan(
      queried / 100,
    );
    report(`One of ${count(size)} instances`, [
      ['by a query each time', `${(queried / 1e6).toFixed(2)} ms`, '1'],
      [
        'by a provider, from its cache',
        `${nanos.toFixed(1)} ns`,
        `1 / ${count(Math.round(queried / nanos))}`,
      ],
    ]);
  }
});
