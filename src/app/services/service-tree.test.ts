import { describe, expect, it } from 'vitest';
import { VirtualClock } from '../../../test/support/virtual-clock.js';
import type { SessionState } from '../../zookeeper/client/session-state.js';
import type { ReadingWatch, Znode, ZnodeStat, ZooKeeper } from '../../zookeeper/client/zookeeper.js';
import { readEntry, ServiceTree } from './service-tree.js';

/** Znodes in memory, and the watches on them. */
class WatchedZnodes {
  readonly description = 'zookeeper';
  state: SessionState = { status: 'connected', sessionId: '1', timeoutMs: 10_000, server: 'zk:2181' };
  readonly children = new Map<string, readonly string[]>();
  readonly data = new Map<string, string>();
  readonly watches = new Map<string, () => void>();
  readonly #states = new Set<(state: SessionState) => void>();

  onState = (listener: (state: SessionState) => void) => {
    this.#states.add(listener);
    return () => this.#states.delete(listener);
  };
  watchChildren = (path: string, listener: (names: readonly string[] | undefined, path: string) => void) =>
    this.#watch(`${path}/*`, () => listener(this.children.get(path), path));
  watchData = (path: string, listener: (znode: Znode | undefined, path: string) => void) =>
    this.#watch(path, () => listener(this.#znode(path), path));

  get listeners(): number {
    return this.watches.size + this.#states.size;
  }

  become(state: SessionState): void {
    this.state = state;
    for (const listener of this.#states) listener(state);
  }

  #watch(key: string, report: () => void): ReadingWatch {
    this.watches.set(key, report);
    report();
    return { first: Promise.resolve(), isRefused: false, close: () => this.watches.delete(key) };
  }

  #znode(path: string): Znode | undefined {
    const text = this.data.get(path);
    const stat = {
      version: 0,
      childrenVersion: 0,
      createdZxid: 1n,
      modifiedZxid: 1n,
      createdAt: 0,
      modifiedAt: 0,
      owner: undefined,
      childCount: 0,
    };
    return text === undefined ? undefined : { data: Buffer.from(text), stat };
  }
}

function setUp(ids: readonly string[], data = '{}') {
  const zookeeper = new WatchedZnodes();
  zookeeper.children.set('/services', ['orders']);
  zookeeper.children.set('/services/orders', ids);
  for (const id of ids) zookeeper.data.set(`/services/orders/${id}`, data);
  const tree = new ServiceTree({
    zookeeper: zookeeper as unknown as ZooKeeper,
    clock: new VirtualClock(),
    basePath: '/services',
  });
  return { zookeeper, tree };
}

describe('the tree of services', () => {
  it('is watched while there is a listener, and not after the last', () => {
    const { zookeeper, tree } = setUp(['a', 'b']);
    const [first, second] = [tree.follow(() => {}), tree.follow(() => {})];
    expect([...zookeeper.watches.keys()].filter((path) => path.startsWith('/services'))).toEqual([
      '/services/*',
      '/services/orders/*',
      '/services/orders/a',
      '/services/orders/b',
    ]);
    first();
    expect([tree.entries.size, tree.status.isWhole]).toEqual([3, true]);
    second();
    expect([zookeeper.listeners, tree.entries.size]).toEqual([0, 0]);
    tree.follow(() => {});
    expect(tree.entries.size).toBe(3);
  });

  it('is followed up to 10,000 znodes, and says that there are more', () => {
    const { zookeeper, tree } = setUp(Array.from({ length: 12_000 }, (_, id) => `${id}`));
    tree.follow(() => {});
    expect([tree.entries.size, tree.status.isPartial]).toEqual([10_000, true]);
    expect(zookeeper.watches.size).toBeLessThan(10_010);
  });

  it('keeps only the beginning of foreign data', () => {
    for (const data of ['é'.repeat(900_000), JSON.stringify({ payload: 'é'.repeat(900_000) })]) {
      const { tree } = setUp(['a'], data);
      tree.follow(() => {});
      expect(tree.entries.get('/services/orders/a')?.text).toHaveLength(2_000);
    }
    const { tree } = setUp(
      ['a'],
      JSON.stringify({ name: 'x'.repeat(400_000), address: 'y'.repeat(400_000) }),
    );
    tree.follow(() => {});
    expect(JSON.stringify(tree.entries.get('/services/orders/a')).length).toBeLessThan(3_000);
  });

  it('shows names that ZooKeeper’s clients cannot read, and reads no such name', () => {
    const { zookeeper, tree } = setUp(['a\u0001b']);
    tree.follow(() => {});
    expect(tree.entries.get('/services/orders/a\u0001b')?.problem).toMatch(/^cannot be asked for: /);
    expect(zookeeper.watches.has('/services/orders/a\u0001b')).toBe(false);
  });

  it('says why it is not fresh, and notifies its listeners', () => {
    const { zookeeper, tree } = setUp(['a']);
    let calls = 0;
    tree.follow(() => {
      calls += 1;
    });
    calls = 0;
    zookeeper.become({
      status: 'suspended',
      sessionId: '1',
      timeoutMs: 10_000,
      problem: 'no server answers',
    });
    expect([calls > 0, tree.status]).toEqual([
      true,
      { state: 'failing', problem: 'no server answers', isWhole: true, isPartial: false },
    ]);
  });

  it('keeps what has not changed across a lost connection', () => {
    const { zookeeper, tree } = setUp(['a', 'b'], '{"name":"orders","id":"a"}');
    tree.follow(() => {});
    const before = new Map(tree.entries);
    const connected = zookeeper.state;
    zookeeper.become({ status: 'suspended', sessionId: '1', timeoutMs: 10_000 });
    zookeeper.data.set('/services/orders/b', '{}');
    zookeeper.become(connected);
    expect([...tree.entries].filter(([path, entry]) => before.get(path) !== entry)).toMatchObject([
      ['/services/orders/b', { id: 'b' }],
    ]);
    expect(tree.status).toMatchObject({ state: 'ok', isWhole: true });
  });
});

it('an instance of Dubbo is shown as what it is, and a folder of Dubbo as nothing wrong', () => {
  const stat = { owner: '1', childCount: 0, modifiedAt: 1_000 } as ZnodeStat;
  const payload = {
    '@class': 'org.apache.dubbo.registry.zookeeper.ZookeeperInstance',
    metadata: {
      'dubbo.endpoints': '[{"port":20880,"protocol":"dubbo"}]',
      'dubbo.metadata.revision': '6c3b99',
    },
  };
  const json = JSON.stringify({ name: 'shop', id: 'a:20880', address: 'a', port: 20880, payload });
  expect(readEntry('shop', 'a:20880', { data: Buffer.from(json), stat })).toMatchObject({
    instance: { state: 'enabled', dubbo: 'dubbo:20880 · revision 6c3b' },
    text: JSON.stringify(payload),
    problem: null,
  });
  expect(readEntry('shop', 'a', { data: Buffer.from('{}'), stat }).instance).not.toHaveProperty('dubbo');
  const data = Buffer.from('10.0.0.7');
  expect(readEntry('shop', 'providers', { data, stat })).toEqual({
    sessionId: '1',
    changedAt: '1970-01-01T00:00:01.000Z',
    text: '10.0.0.7',
    isDubboFolder: true,
  });
  expect(readEntry('shop', 'other', { data, stat })).toMatchObject({ problem: 'is not JSON' });
});
