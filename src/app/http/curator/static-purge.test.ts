import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../../test/support/virtual-clock.js';
import type { Znode, ZooKeeper } from '../../../zookeeper/client/zookeeper.js';
import { ZooKeeperError, type ZooKeeperFault } from '../../../zookeeper/client/zookeeper-error.js';
import type { ServiceType } from '../../../zookeeper/services/instance/service-instance.js';
import { StaticPurge } from './static-purge.js';

const TIMEOUT_MS = 60_000;

/** The part of ZooKeeper that is asked here, in memory. */
class FakeTree {
  away = false;
  /** What may not be listed, read or removed. */
  readonly secret = new Set<string>();
  secretFault: ZooKeeperFault = 'refused';
  /** How often the services have been asked for. */
  looks = 0;
  /** Called before the next removal. */
  beforeRemoval: (() => void) | undefined;
  #zxid = 100n;
  readonly #znodes = new Map<string, Znode>();

  put(
    path: string,
    serviceType: ServiceType | undefined,
    version = 0,
    ephemeral = serviceType === 'DYNAMIC',
  ): void {
    const data = Buffer.from(
      serviceType === undefined
        ? '{{'
        : JSON.stringify({ address: '10.0.0.1', serviceType, registrationTimeUTC: 0 }),
    );
    this.#zxid += 1n;
    const owner = ephemeral ? '1'.repeat(16) : undefined;
    const stat = {
      version,
      childrenVersion: 0,
      createdZxid: this.#zxid,
      modifiedZxid: this.#zxid,
      createdAt: 0,
      modifiedAt: 0,
      owner,
      childCount: 0,
    };
    this.#znodes.set(path, { data, stat });
  }

  get paths(): string[] {
    return [...this.#znodes.keys()].sort();
  }

  readonly port = {
    state: { status: 'connected' },
    children: async (path: string) => {
      this.looks += path === '/services' ? 1 : 0;
      this.#check(path);
      const below = this.paths
        .filter((each) => each.startsWith(`${path}/`))
        .map((each) => each.slice(path.length + 1).split('/')[0] ?? '');
      return below.length === 0 ? undefined : [...new Set(below)];
    },
    read: async (path: string) => {
      this.#check(path);
      return this.#znodes.get(path);
    },
    remove: async (path: string, version?: number) => {
      this.#check(path);
      this.beforeRemoval?.();
      const found = this.#znodes.get(path);
      if (found && version !== undefined && found.stat.version !== version)
        throw new ZooKeeperError('another version', { fault: 'bad-version', outcome: 'not-applied' });
      return this.#znodes.delete(path);
    },
  } as unknown as ZooKeeper;

  #check(path: string): void {
    if (this.away) throw new ZooKeeperError('no answer', { fault: 'timeout', outcome: 'not-applied' });
    if (this.secret.has(path))
      throw new ZooKeeperError('not for you', { fault: this.secretFault, outcome: 'not-applied', path });
  }
}

function setUp(timeoutMs = TIMEOUT_MS) {
  const clock = new VirtualClock();
  const tree = new FakeTree();
  const purged: string[] = [];
  const failures: unknown[] = [];
  const purge = new StaticPurge({
    zookeeper: tree.port,
    clock,
    basePath: '/services',
    timeoutMs,
    onPurged: (name, id) => purged.push(`${name}/${id}`),
    onFailure: (failure) => failures.push(failure),
  });
  return { clock, tree, purged, failures, purge };
}

describe('a STATIC instance', () => {
  it('is unregistered when it has not been written again in time, and not a moment before', async () => {
    const { clock, tree, purged, purge } = setUp();
    tree.put('/services/orders/1', 'STATIC');
    await clock.advance(TIMEOUT_MS - 1);
    expect(purged).toEqual([]);
    await clock.advance(TIMEOUT_MS / 5);
    expect(purged).toEqual(['orders/1']);
    expect(tree.paths).toEqual([]);
    await purge.close();
  });

  it('stays while a client writes it again', async () => {
    const { clock, tree, purged, purge } = setUp();
    for (let i = 0; i < 10; i += 1) {
      tree.put('/services/orders/1', 'STATIC');
      await clock.advance(TIMEOUT_MS * 0.8);
    }
    expect(purged).toEqual([]);
    await purge.close();
  });

  it('stays when it is written again just before its removal', async () => {
    const { clock, tree, purged, purge } = setUp();
    tree.put('/services/orders/1', 'STATIC');
    tree.beforeRemoval = () => tree.put('/services/orders/1', 'STATIC', 1);
    await clock.advance(TIMEOUT_MS * 1.5);
    expect({ purged, paths: tree.paths }).toEqual({ purged: [], paths: ['/services/orders/1'] });
    await purge.close();
  });

  it('stays when ZooKeeper was away for longer than that: no client could have written it', async () => {
    const { clock, tree, purged, failures, purge } = setUp();
    tree.put('/services/orders/1', 'STATIC');
    await clock.advance(TIMEOUT_MS / 4);
    tree.away = true;
    await clock.advance(TIMEOUT_MS * 10);
    expect(failures.length).toBeGreaterThan(0);
    tree.away = false;
    await clock.advance(TIMEOUT_MS / 4);
    expect(purged).toEqual([]);
    await clock.advance(TIMEOUT_MS);
    expect(purged).toEqual(['orders/1']);
    await purge.close();
  });

  it('stays when this process was paused for longer than that', async () => {
    const { clock, tree, purged, purge } = setUp();
    tree.put('/services/orders/1', 'STATIC');
    await clock.advance(TIMEOUT_MS / 4);
    clock.freeze(TIMEOUT_MS * 10);
    await clock.advance(TIMEOUT_MS / 10);
    expect(purged).toEqual([]);
    await purge.close();
  });
});

describe('a service or an instance that the servers refuse', () => {
  it.each<ZooKeeperFault>(['refused', 'timeout'])(
    'keeps no other from being unregistered, and is reported once (%s)',
    async (fault) => {
      const { clock, tree, purged, failures, purge } = setUp();
      for (const path of ['/services/aaa/1', '/services/orders/1', '/services/orders/2', '/services/zzz/1'])
        tree.put(path, 'STATIC');
      tree.secretFault = fault;
      tree.put('/services/aaa/0', 'PERMANENT');
      tree.secret.add('/services/aaa').add('/services/orders/1');
      await clock.advance(TIMEOUT_MS * 1.2);
      expect(purged).toEqual(['orders/2', 'zzz/1']);
      await clock.advance(TIMEOUT_MS * 10);
      expect(failures).toMatchObject([{ path: '/services/aaa' }, { path: '/services/orders/1' }]);
      tree.secret.clear();
      await clock.advance(TIMEOUT_MS * 1.2);
      expect(purged).toEqual(['orders/2', 'zzz/1', 'aaa/1', 'orders/1']);
      tree.put('/services/aaa/2', 'STATIC');
      tree.secret.add('/services/aaa');
      await clock.advance(TIMEOUT_MS);
      expect(failures).toHaveLength(3);
      await purge.close();
    },
  );

  it('is reported once too where it is all of them, and is asked for less and less often', async () => {
    const { clock, tree, failures, purge } = setUp(1_000);
    tree.away = true;
    await clock.advance(60_000);
    expect(failures).toHaveLength(1);
    expect(tree.looks).toBeLessThan(20);
    tree.away = false;
    await clock.advance(10_000);
    const { looks } = tree;
    await clock.advance(10_000);
    expect(tree.looks - looks).toBeGreaterThanOrEqual(99);
    tree.away = true;
    await clock.advance(10_000);
    expect(failures).toHaveLength(2);
    await purge.close();
  });
});

describe('what is no STATIC instance', () => {
  it('is never unregistered', async () => {
    const { clock, tree, purged, purge } = setUp();
    tree.put('/services/orders/1', 'PERMANENT');
    tree.put('/services/orders/2', 'DYNAMIC');
    tree.put('/services/orders/3', undefined);
    // It ends with its session, whatever it says.
    tree.put('/services/orders/4', 'STATIC', 0, true);
    await clock.advance(TIMEOUT_MS * 10);
    expect({ purged, paths: tree.paths }).toEqual({
      purged: [],
      paths: ['/services/orders/1', '/services/orders/2', '/services/orders/3', '/services/orders/4'],
    });
    await purge.close();
    expect(clock.sleepers).toBe(0);
  });
});
