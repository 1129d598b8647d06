import { describe, expect, it } from 'vitest';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import { openZooKeeper, type ZooKeeperClient } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { encodeInstance } from '../../../../src/zookeeper/services/instance/instance-codec.js';
import { jsonPayload } from '../../../../src/zookeeper/services/instance/payload-codec.js';
import type { ServiceInstance } from '../../../../src/zookeeper/services/instance/service-instance.js';
import { ServiceCache } from '../../../../src/zookeeper/services/service-cache.js';
import { ServiceDirectory } from '../../../../src/zookeeper/services/service-directory.js';
import { ServiceProvider } from '../../../../src/zookeeper/services/service-provider.js';
import { startZooKeeperProcess, type ZooKeeperProcess } from '../../../support/servers/zookeeper-process.js';
import { instanceOf } from '../../../support/service-instances.js';

const OUTAGE_MS = 30_000;
/**
 * After the servers answer again, until the cache equals the tree; on a busy machine, as many times what a
 * client takes there to connect and read it.
 */
const CAUGHT_UP = { withinMs: 2_000, reads: 5 };
const BASE = '/services';

interface Scene {
  readonly server: ZooKeeperProcess;
  /** A client of its own for each caller, closed at the end. */
  readonly open: (sessionTimeoutMs?: number) => ZooKeeperClient;
  readonly register: (by: ZooKeeperClient, id: string, fields?: Partial<ServiceInstance>) => Promise<void>;
  readonly cache: ServiceCache;
  readonly provider: ServiceProvider;
  /** How often the cache has reported a change. */
  readonly changes: () => number;
}

/** Nothing is shared: a server of its own for each test, which may stop it. */
async function onOwnServer(act: (scene: Scene) => Promise<void>): Promise<void> {
  const server = await startZooKeeperProcess();
  const clients: ZooKeeperClient[] = [];
  const open = (sessionTimeoutMs = 10_000) => {
    const opened = openZooKeeper({
      connect: server.connect,
      clock: systemClock,
      random: systemRandom,
      sessionTimeoutMs,
    });
    clients.push(opened);
    return opened;
  };
  const register = async (by: ZooKeeperClient, id: string, fields: Partial<ServiceInstance> = {}) => {
    const mode = fields.serviceType === 'STATIC' ? 'persistent' : 'ephemeral';
    await by.createWithParents(
      `${BASE}/orders/${id}`,
      encodeInstance(instanceOf(id, fields), jsonPayload),
      mode,
      {
        timeoutMs: 2 * OUTAGE_MS,
      },
    );
  };
  const cache = new ServiceCache({
    zookeeper: open(),
    clock: systemClock,
    basePath: BASE,
    name: 'orders',
    payload: jsonPayload,
  });
  const provider = new ServiceProvider({ source: cache, clock: systemClock, random: systemRandom });
  let reported = 0;
  cache.onChange(() => {
    reported += 1;
  });
  try {
    await act({ server, open, register, cache, provider, changes: () => reported });
  } finally {
    provider.close();
    await Promise.all(clients.map((client) => client.close()));
    await server.dispose();
  }
}

/**
 * Picks ten times a second while there is an outage. Resolves to the ids that were picked, once it is over.
 */
async function pickThrough(provider: ServiceProvider, ms: number): Promise<Set<string>> {
  const picked = new Set<string>();
  const end = systemClock.monotonic() + ms;
  while (systemClock.monotonic() < end) {
    picked.add(provider.need().id);
    await systemClock.sleep(100);
  }
  return picked;
}

/**
 * What is known and what stands in the tree, until they are equal. Returns how long that took, in
 * milliseconds.
 */
async function untilEqual(cache: ServiceCache, reader: ZooKeeperClient): Promise<number> {
  const begun = systemClock.monotonic();
  const directory = new ServiceDirectory({
    zookeeper: reader,
    clock: systemClock,
    basePath: BASE,
    payload: jsonPayload,
  });
  for (;;) {
    const tree = await directory.instances('orders').catch(() => undefined);
    if (cache.stale === undefined && JSON.stringify(tree) === JSON.stringify(cache.instances)) break;
    if (systemClock.monotonic() - begun > 30_000)
      throw new Error('the cache does not equal the tree after 30 s');
    await systemClock.sleep(10);
  }
  return systemClock.monotonic() - begun;
}

/** How long a client takes that has just been opened to connect and to read the tree, in milliseconds. */
async function timeToRead(zookeeper: ZooKeeperClient): Promise<number> {
  const begun = systemClock.monotonic();
  const directory = new ServiceDirectory({
    zookeeper,
    clock: systemClock,
    basePath: BASE,
    payload: jsonPayload,
  });
  await directory.instances('orders', { timeoutMs: OUTAGE_MS });
  return systemClock.monotonic() - begun;
}

const ids = ({ instances }: { readonly instances: readonly ServiceInstance[] }) =>
  instances.map(({ id }) => id).join();

describe.concurrent('a provider while ZooKeeper is away for 30 seconds', () => {
  it('picks on from what it knows, and knows the tree within 2 s of the servers’ return', async ({
    expect,
  }) => {
    await onOwnServer(async ({ server, open, register, cache, provider, changes }) => {
      const [staying, leaving] = [open(), open()];
      await register(staying, 'a');
      await register(leaving, 'b');
      await register(staying, 'c', { serviceType: 'STATIC' });
      await cache.ready;
      await expect.poll(() => ids(cache)).toBe('a,b,c');
      const before = cache.instances;
      const reported = changes();

      await server.stop();
      await expect.poll(() => cache.stale).toBeDefined();
      const since = cache.stale?.since;
      // Of the registered ones, one ends meanwhile; another one begins, and is registered as soon as it can
      // be.
      const joining = register(open(), 'd');
      void leaving.close();
      expect(await pickThrough(provider, OUTAGE_MS)).toEqual(new Set(['a', 'b', 'c']));
      expect([cache.instances, cache.stale?.since, changes()]).toEqual([before, since, reported]);
      expect(cache.instances).toBe(before);
      expect(cache.ageMs).toBeGreaterThan(OUTAGE_MS - 1_000);

      await server.start();
      const [tookMs, readMs] = await Promise.all([untilEqual(cache, open()), timeToRead(open())]);
      expect(tookMs).toBeLessThan(Math.max(CAUGHT_UP.withinMs, CAUGHT_UP.reads * readMs));
      await joining;
      // The one that ended without the servers’ knowing is gone with its session.
      await expect.poll(() => ids(cache)).toBe('a,c,d');
      expect(new Set(Array.from({ length: 9 }, () => provider.need().id))).toEqual(new Set(['a', 'c', 'd']));
    });
  });

  it('does so too where the servers stand still with their connections open', async ({ expect }) => {
    await onOwnServer(async ({ server, open, register, cache, provider }) => {
      const registrar = open(40_000);
      await register(registrar, 'a');
      await register(registrar, 'b');
      await cache.ready;
      await expect.poll(() => ids(cache)).toBe('a,b');

      server.pause();
      const paused = systemClock.monotonic();
      expect(await pickThrough(provider, OUTAGE_MS)).toEqual(new Set(['a', 'b']));
      // Known within two thirds of the session’s time-out.
      expect(cache.stale?.since).toBeGreaterThanOrEqual(paused);
      expect(cache.ageMs).toBeGreaterThan(OUTAGE_MS - 10_000);

      server.resume();
      const [tookMs, readMs] = await Promise.all([untilEqual(cache, open()), timeToRead(open())]);
      expect(tookMs).toBeLessThan(Math.max(CAUGHT_UP.withinMs, CAUGHT_UP.reads * readMs));
      await registrar.remove(`${BASE}/orders/a`);
      await expect.poll(() => ids(cache)).toBe('b');
    });
  });
});

describe('a provider', () => {
  it('sends nothing any more to an instance that is disabled in the tree, or whose process has ended', async () => {
    await onOwnServer(async ({ open, register, cache, provider }) => {
      const [one, two] = [open(), open()];
      await register(one, 'a');
      await register(two, 'b');
      await register(two, 'c');
      await expect.poll(() => ids(cache)).toBe('a,b,c');
      const picked = () => [...new Set(Array.from({ length: 12 }, () => provider.need().id))].sort().join();
      expect(picked()).toBe('a,b,c');
      await two.setData(`${BASE}/orders/b`, encodeInstance(instanceOf('b', { enabled: false }), jsonPayload));
      await expect.poll(picked).toBe('a,c');
      await one.close();
      await expect.poll(picked).toBe('c');
      await two.setData(`${BASE}/orders/b`, encodeInstance(instanceOf('b'), jsonPayload));
      await expect.poll(picked).toBe('b,c');
    });
  });
});
