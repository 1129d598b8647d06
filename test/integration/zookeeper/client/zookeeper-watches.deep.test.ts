import { afterEach, beforeEach, describe, expect, inject, it } from 'vitest';
import { systemClock as clock, systemRandom as random } from '../../../../src/core/base/system.js';
import type { Watch } from '../../../../src/zookeeper/client/zookeeper.js';
import { openZooKeeper, type ZooKeeperClient } from '../../../../src/zookeeper/client/zookeeper-client.js';
import { FaultProxy } from '../../../support/network/fault-proxy.js';
import { expireSession, uniqueChroot } from '../../../support/zookeeper.js';

const SESSION_MS = 2_000;
/** Of what changes the tree, and has to get through however busy the machine is. */
const WRITER_SESSION_MS = 30_000;
/**
 * From a reconnect until two thousand watches are right; on a busy machine, as many times what reading all of
 * it takes there.
 */
const RIGHT = { withinMs: 2_000, reads: 5 };

const clients: ZooKeeperClient[] = [];
const proxies: FaultProxy[] = [];
let chroot: string;
/** Changes the tree, past every fault. */
let writer: ZooKeeperClient;

beforeEach(async () => {
  chroot = uniqueChroot('watches');
  writer = open(undefined, WRITER_SESSION_MS);
  await writer.ensurePath('/');
});
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()));
  await Promise.all(proxies.splice(0).map((proxy) => proxy.stop()));
});

function open(server = inject('zookeeper').connect, sessionTimeoutMs = SESSION_MS): ZooKeeperClient {
  const client = openZooKeeper({ connect: `${server}${chroot}`, sessionTimeoutMs, clock, random });
  clients.push(client);
  return client;
}

async function openThroughProxy(): Promise<{ client: ZooKeeperClient; proxy: FaultProxy }> {
  const proxy = new FaultProxy();
  proxies.push(proxy);
  const [host = '', port] = inject('zookeeper').connect.split(':');
  return { proxy, client: open(`127.0.0.1:${await proxy.start(host, Number(port))}`) };
}

/** The reports of a watch, in a form that compares: the names in order, the text, or that there is none. */
interface Reports {
  readonly watch: Watch;
  readonly all: string[];
}

function followChildren(client: ZooKeeperClient, path: string): Reports {
  const all: string[] = [];
  return {
    all,
    watch: client.watchChildren(path, (names) => all.push(names ? [...names].sort().join() : 'absent')),
  };
}

function followData(client: ZooKeeperClient, path: string): Reports {
  const all: string[] = [];
  return { all, watch: client.watchData(path, (znode) => all.push(znode ? `=${znode.data}` : 'absent')) };
}

async function becomes({ all }: Reports, wanted: string[]): Promise<void> {
  await expect.poll(() => all).toEqual(wanted);
}

describe('a standing watch', () => {
  it('on children reports them now, and after every change, from before the znode is made to after it is gone', async () => {
    const reported = followChildren(open(), '/w');
    await reported.watch.first;
    expect(reported.all).toEqual(['absent']);
    await writer.create('/w', '', 'persistent');
    await becomes(reported, ['absent', '']);
    await writer.create('/w/a', '', 'persistent');
    await becomes(reported, ['absent', '', 'a']);
    await writer.create('/w/b', '', 'persistent');
    await becomes(reported, ['absent', '', 'a', 'a,b']);
    await writer.remove('/w/a');
    await writer.remove('/w/b');
    await expect.poll(() => reported.all.at(-1)).toBe('');
    await writer.remove('/w');
    await expect.poll(() => reported.all.at(-1)).toBe('absent');
  });

  it('on data reports it now, and after every change, from before the znode is made to after it is gone', async () => {
    const reported = followData(open(), '/w');
    await becomes(reported, ['absent']);
    await writer.create('/w', '1', 'persistent');
    await becomes(reported, ['absent', '=1']);
    await writer.setData('/w', '2');
    await becomes(reported, ['absent', '=1', '=2']);
    await writer.create('/w/child', '', 'persistent');
    await writer.remove('/w/child');
    await writer.remove('/w');
    await becomes(reported, ['absent', '=1', '=2', 'absent']);
    await writer.create('/w', '2', 'persistent');
    await becomes(reported, ['absent', '=1', '=2', 'absent', '=2']);
  });

  it('reports a znode that was replaced by an equal one, and data that was written again', async () => {
    await writer.create('/w', 'same', 'persistent');
    const zxids: (bigint | undefined)[] = [];
    const watch = open().watchData('/w', (znode) => zxids.push(znode?.stat.modifiedZxid));
    await watch.first;
    await writer.setData('/w', 'same');
    await expect.poll(() => zxids.length).toBe(2);
    await writer.multi([
      { type: 'remove', path: '/w' },
      { type: 'create', path: '/w', data: 'same', mode: 'persistent' },
    ]);
    await expect.poll(() => zxids.length).toBe(3);
    expect(new Set(zxids).size).toBe(3);
  });

  it('may report many changes as one, never two equal states in succession, and the newest at the end', async () => {
    const client = open();
    await writer.create('/w', '', 'persistent');
    const children = followChildren(client, '/w');
    const data = followData(client, '/w');
    await children.watch.first;
    await data.watch.first;
    await Promise.all(
      Array.from({ length: 300 }, (_, i) =>
        i % 3 === 2 ? writer.setData('/w', String(i)) : writer.create(`/w/${i}`, '', 'persistent'),
      ),
    );
    await expect.poll(() => children.all.at(-1)?.split(',').length).toBe(200);
    await expect.poll(() => data.all.at(-1)).toBe('=299');
    for (const { all } of [children, data])
      for (const [i, state] of all.entries()) expect(state).not.toBe(all[i - 1]);
  });

  it('is not disturbed by a reconnect when nothing has changed', async () => {
    const { client, proxy } = await openThroughProxy();
    await writer.create('/w', 'x', 'persistent');
    const children = followChildren(client, '/w');
    const data = followData(client, '/w');
    await data.watch.first;
    await children.watch.first;
    for (let i = 0; i < 3; i += 1) {
      const suspended = new Promise<void>((resolve) =>
        client.onState(({ status }) => status === 'suspended' && resolve()),
      );
      proxy.reset();
      await suspended;
      await client.whenConnected();
    }
    // A change behind the reads of the last reconnect.
    await writer.create('/w/a', '', 'persistent');
    await becomes(children, ['', 'a']);
    await writer.setData('/w', 'y');
    await becomes(data, ['=x', '=y']);
  });

  it('reports nothing after it was closed, not even what is being read', async () => {
    const client = open();
    await writer.create('/w', '', 'persistent');
    await client.whenConnected();
    const early = followChildren(client, '/w');
    early.watch.close();
    const late = followData(client, '/w');
    await late.watch.first;
    late.watch.close();
    late.watch.close();
    const standing = followData(client, '/w');
    await standing.watch.first;
    await writer.setData('/w', '2');
    await writer.create('/w/a', '', 'persistent');
    await expect.poll(() => standing.all.length).toBe(2);
    expect(early.all).toEqual([]);
    expect(late.all).toEqual(['=']);
    expect(
      await Promise.race([early.watch.first.then(() => 'resolved'), clock.sleep(20).then(() => 'never')]),
    ).toBe('never');
  });

  it('may be opened and closed ten thousand times without leaving anything behind', async () => {
    const client = open();
    await writer.create('/w', '', 'persistent');
    for (let i = 0; i < 100; i += 1) {
      const some = Array.from({ length: 100 }, () => client.watchData('/w', () => {}));
      await Promise.all(some.map(({ first }) => first));
      for (const watch of some) watch.close();
    }
    expect(client.openWatches).toBe(0);
    const reported = followData(client, '/w');
    await reported.watch.first;
    await writer.setData('/w', '1');
    await becomes(reported, ['=', '=1']);
    expect(client.openWatches).toBe(1);
  });

  it('notifies each of its listeners where there are many watches on one path', async () => {
    const client = open();
    const all = Array.from({ length: 20 }, (_, i) => (i % 2 ? followChildren : followData)(client, '/w'));
    await Promise.all(all.map(({ watch }) => watch.first));
    await writer.create('/w', 'x', 'persistent');
    await Promise.all(all.map((reported, i) => becomes(reported, ['absent', i % 2 ? '' : '=x'])));
  });

  it('is refused on a path that cannot be one', () => {
    expect(() => open().watchChildren('w', () => {})).toThrow(expect.objectContaining({ fault: 'refused' }));
    expect(() => open().watchData('/w/', () => {})).toThrow(expect.objectContaining({ fault: 'refused' }));
  });
});

type Fault = (proxy: FaultProxy, client: ZooKeeperClient) => Promise<void>;

const FAULTS: readonly [string, Fault][] = [
  [
    'three resets in succession',
    async (proxy) => {
      for (let i = 0; i < 3; i += 1) {
        proxy.reset();
        await clock.sleep(120);
      }
    },
  ],
  [
    'a cut shorter than the session',
    async (proxy) => {
      proxy.cut();
      await clock.sleep(SESSION_MS / 2);
    },
  ],
  [
    'a cut longer than the session',
    async (proxy) => {
      proxy.cut();
      await clock.sleep(SESSION_MS * 2);
    },
  ],
  [
    'a stall of what comes from the server',
    async (proxy) => {
      proxy.stall('to-client');
      await clock.sleep(SESSION_MS);
    },
  ],
  [
    'a stall of what goes to the server',
    async (proxy) => {
      proxy.stall('to-server');
      await clock.sleep(SESSION_MS * 2);
    },
  ],
  [
    'a slow network',
    async (proxy) => {
      proxy.delay(150);
      await clock.sleep(1_000);
    },
  ],
  [
    'an expired session',
    async (_, client) => {
      const { state } = client;
      if (state.status === 'connected')
        await expireSession({ connect: inject('zookeeper').connect, sessionId: state.sessionId });
    },
  ],
];

describe('all standing watches', () => {
  it.each(FAULTS)('report the newest state after %s, whatever has changed meanwhile', async (_, fault) => {
    const { client, proxy } = await openThroughProxy();
    const parents = Array.from({ length: 12 }, (_, i) => `/p${i}`);
    for (const path of parents.slice(0, 8)) {
      await writer.create(path, '0', 'persistent');
      await writer.create(`${path}/old`, '', 'persistent');
    }
    const watched = parents.map((path) => ({
      path,
      children: followChildren(client, path),
      data: followData(client, path),
    }));
    await Promise.all(watched.flatMap(({ children, data }) => [children.watch.first, data.watch.first]));

    let isOver = false;
    const changing = (async () => {
      for (let i = 0; !isOver || i < 40; i += 1) await change(parents[i % parents.length] ?? '', i);
    })();
    await fault(proxy, client);
    isOver = true;
    await changing;
    proxy.heal();
    await client.whenConnected({ timeoutMs: 30_000 });

    for (const { path, children, data } of watched) {
      const names = await writer.children(path);
      const znode = await writer.read(path);
      await expect.poll(() => children.all.at(-1)).toBe(names ? [...names].sort().join() : 'absent');
      await expect.poll(() => data.all.at(-1)).toBe(znode ? `=${znode.data}` : 'absent');
    }
    // And they still stand.
    for (const { path } of watched) await change(path, 1);
    for (const { path, data } of watched) {
      const znode = await writer.read(path);
      await expect.poll(() => data.all.at(-1)).toBe(znode ? `=${znode.data}` : 'absent');
    }
  });

  it('two thousand of them are right within two seconds of a reconnect', async () => {
    const { client, proxy } = await openThroughProxy();
    const paths = Array.from({ length: 2_000 }, (_, i) => `/n${i}`);
    await Promise.all(paths.map((path) => writer.create(path, 'old', 'persistent', { timeoutMs: 30_000 })));
    const newest = new Map<string, string | undefined>();
    const old = new Set(paths);
    let allRight = () => {};
    const right = new Promise<void>((resolve) => {
      allRight = resolve;
    });
    const watches = paths.map((path) =>
      client.watchData(path, (znode) => {
        newest.set(path, znode?.data.toString());
        if (newest.get(path) !== 'old') old.delete(path);
        if (old.size === 0) allRight();
      }),
    );
    await Promise.all(watches.map(({ first }) => first));
    const begun = performance.now();
    await Promise.all(paths.map((path) => writer.read(path, { timeoutMs: 30_000 })));
    const readMs = performance.now() - begun;

    proxy.cut();
    await expect.poll(() => client.state.status).toBe('suspended');
    await Promise.all(
      paths.map((path, i) =>
        i % 10 === 0
          ? writer.remove(path, -1, { timeoutMs: 30_000 })
          : writer.setData(path, 'new', -1, { timeoutMs: 30_000 }),
      ),
    );
    expect(new Set(newest.values())).toEqual(new Set(['old']));
    proxy.heal();
    await client.whenConnected({ timeoutMs: 30_000 });
    const since = performance.now();
    await right;
    expect(performance.now() - since).toBeLessThan(Math.max(RIGHT.withinMs, RIGHT.reads * readMs));
    expect([...newest.values()].filter((data) => data === undefined)).toHaveLength(200);
  });
});

async function change(path: string, i: number): Promise<void> {
  if (i % 7 === 3) {
    for (const name of (await writer.children(path)) ?? []) await writer.remove(`${path}/${name}`);
    await writer.remove(path);
  } else if (await writer.read(path)) {
    await writer.setData(path, String(random.next()));
    await writer.create(`${path}/c${random.hex(4)}`, '', 'persistent');
  } else await writer.create(path, String(random.next()), 'persistent');
}
