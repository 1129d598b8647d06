import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { afterEach, describe, expect, it, onTestFinished, vi } from 'vitest';
import { newRoot, removeRoot } from '../../../test/support/data-dirs.js';
import { systemClock } from '../../core/base/system.js';
import type { DataDirEvent } from '../../core/data-dir/data-dir-options.js';
import { MemoryLeaseStore } from '../../core/store/memory/index.js';
import { type AcquireOptions, acquire } from './acquire.js';
import { type MonitorEvent, NodeMonitor } from './node-monitor.js';

afterEach(() => void vi.unstubAllEnvs());

describe('acquire', () => {
  it('requires the store in a container, where the default would be a separate cluster', async () => {
    vi.stubEnv('KUBERNETES_SERVICE_HOST', '10.0.0.1');
    await expect(acquire({ nodes: 2 })).rejects.toThrow(
      'store: expected one that all tasks reach, such as s3://bucket/prefix (in a container (',
    );
    // There it is of no use.
    await expect(acquire({ provider: 'zookeeper' })).rejects.toMatchObject({ setting: 'provider' });
  });

  it.each<[string, object]>([
    ['options', { nods: 3 }],
    ['options', { duration: '15s' }],
    ['keeper', { keeper: 'bogus' }],
    ['onLost', { onLost: 'bogus' }],
    ['acquireTimeoutMs', { acquireTimeoutMs: '0s' }],
    ['waitPollMs', { waitPollMs: 99 }],
    ['waitPollMs', { waitPollMs: 86_400_001 }],
    ['waitPollMs', { waitPollMs: '1s' }],
    ['settingsIntervalMs', { settingsIntervalMs: 0 }],
    ['settingsIntervalMs', { settingsIntervalMs: 3_600_001 }],
    ['settingsIntervalMs', { settingsIntervalMs: '1m' }],
    ['durationMs', { durationMs: 10 }],
    ['monitor', { monitor: {} }],
    ['nodes', { nodes: 0 }],
    ['store', { store: 'ftp://x' }],
    ['store', { store: 'file:absent/locks/report' }],
    ['store', { store: null }],
    ['store', { store: 5 }],
    ['store', { store: {} }],
    ['store', { store: 'file:leases\r' }],
    ['store', { store: 'etcd://h1/p,h2/q' }],
    ['zookeeper', { zookeeper: 'zk1/ids,zk2' }],
    ['zookeeper.connect', { zookeeper: { connect: 'zk1/ids,zk2/other' } }],
    ['zookeeper.auth', { zookeeper: { connect: 'zk1', auth: 'digest:me:secret ' } }],
    ['etcd.auth', { store: 'etcd://h1/p', etcd: { auth: 'me:secret\r' } }],
    ['dataDir.exclude', { dataDir: { root: '/no/such/directory', exclude: ['runtime '] } }],
    ['sticky', { sticky: 'volume-1\n' }],
    ['sticky', { sticky: 5 }],
    ['sticky', { sticky: '' }],
    ['stickyWaitMs', { stickyWaitMs: 1_000 }],
    ['region', { region: 5 }],
    ['onEvent', { onEvent: 5 }],
    ['signal', { signal: 5 }],
    ['signal', { signal: new AbortController() }],
    ['store', { store: 'memory:', keeper: 'worker' }],
    ['dataDir', { dataDir: '/data' }],
    ['dataDir', { dataDir: { root: '' } }],
    ['dataDir', { dataDir: { root: '/data', keep: 3 } }],
    ['dataDir.retention', { dataDir: { root: '/data', retention: 0 } }],
    ['dataDir.exclude', { dataDir: { root: '/no/such/directory', exclude: ['a//b'] } }],
    ['dataDir.exclude', { dataDir: { root: '/no/such/directory', exclude: 'runtime' } }],
    ['dataDir.copy', { dataDir: { root: '/no/such/directory', copy: 'false' } }],
    ['dataDir.local', { dataDir: { root: '/no/such/directory', local: 'false' } }],
    ['dataDir.local', { dataDir: { root: '/no/such/directory', local: true } }],
    [
      'dataDir.local',
      { provider: 'zookeeper', sticky: 'a', dataDir: { root: '/no/such/directory', local: true } },
    ],
    ['dataDir.root', { dataDir: { root: '/no/such/directory' } }],
  ])('names the option that is wrong: %s in %j', async (setting, options) => {
    await expect(acquire({ store: 'memory:', ...options } as AcquireOptions)).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      setting,
    });
  });

  it.each<[object | string, string]>([
    [{ nods: 3 }, 'signal (the nearest is nodes), got "nods"'],
    [{ duration: '15s' }, 'signal (the nearest is durationMs), got "duration"'],
    [{ kubernetes: true }, 'signal, got "kubernetes"'],
    ['s3://bucket/orders', 'options: expected an object, got "s3://bucket/orders"'],
  ])('says what was most likely meant by %j', async (options, said) => {
    await expect(acquire(options as AcquireOptions)).rejects.toThrow(said);
  });

  const zookeeper = { connect: '127.0.0.1:1', service: 'orders', address: 'host', port: 80, required: true };
  it.each<[string, object]>([
    ['zookeeper', { zookeeper: null }],
    ['zookeeper', { zookeeper: 'zk1:no' }],
    ['zookeeper', { zookeeper: { connect: 'zk1', conect: 'zk2' } }],
    ['zookeeper.connect', { zookeeper: { connect: 7 } }],
    ['zookeeper.connect', { zookeeper: { connect: '' } }],
    ['zookeeper.auth', { zookeeper: { connect: 'zk1', auth: 'digest:me' } }],
    ['zookeeper.sessionTimeoutMs', { zookeeper: { connect: 'zk1', sessionTimeoutMs: 10 } }],
    ['zookeeper', { zookeeper: { ...zookeeper, adress: 'host' } }],
    ['zookeeper.service', { zookeeper: { ...zookeeper, service: 'a/b' } }],
    ['zookeeper.address', { zookeeper: { ...zookeeper, address: 'http://host' } }],
    ['zookeeper.port', { zookeeper: { ...zookeeper, port: 0 } }],
    ['zookeeper.sslPort', { zookeeper: { ...zookeeper, sslPort: 70_000 } }],
    ['zookeeper.basePath', { zookeeper: { ...zookeeper, basePath: '/discovery' } }],
    ['zookeeper.payload', { zookeeper: { ...zookeeper, payload: { a: 'x'.repeat(900_000) } } }],
    ['zookeeper.payload', { zookeeper: { ...zookeeper, payload: { '@class': 'com.acme.Order' } } }],
    ['zookeeper.payload.a', { zookeeper: { ...zookeeper, payload: { a: 1n } } }],
    ['zookeeper.payloadType', { zookeeper: { ...zookeeper, payloadType: 'xml' } }],
    ['zookeeper.endpoints', { zookeeper: { ...zookeeper, endpoints: 'pay' } }],
    ['zookeeper.endpoints[0]', { zookeeper: { ...zookeeper, endpoints: ['pay'] } }],
    ['zookeeper.endpoints[0]', { zookeeper: { ...zookeeper, endpoints: [{ name: 'pay' }] } }],
    [
      'zookeeper.endpoints[0].key',
      { zookeeper: { ...zookeeper, endpoints: [{ endpoint: 'pay', key: '' }] } },
    ],
    ['taskId', { zookeeper, taskId: 'a/b' }],
    ['provider', { provider: 'etcd' }],
    ['provider', { provider: 'zookeeper', zookeeper: 'zk1' }],
  ])(
    'names an option that cannot be announced, and contacts neither store nor ZooKeeper: %s',
    async (setting, options) => {
      const asked: string[] = [];
      const store = new Proxy<object>(
        { read: undefined },
        { get: (_, name) => void asked.push(String(name)) },
      );
      const acquired = acquire({ store, ...options } as AcquireOptions);
      await expect(acquired).rejects.toMatchObject({ code: 'CONFIG_INVALID', setting });
      expect(asked).toEqual([]);
    },
  );

  it.each<[string, object]>([
    ['provider', { provider: 'zookeeper' }],
    ['keeper', { provider: 'zookeeper', zookeeper: 'zk1', keeper: 'worker' }],
  ])(
    'names the option that is wrong if ZooKeeper gives out the node id: %s in %j',
    async (setting, options) => {
      await expect(acquire(options as AcquireOptions)).rejects.toMatchObject({
        code: 'CONFIG_INVALID',
        setting,
      });
    },
  );

  it('gives a lease on a store that lives in this process, and gives it back', async () => {
    const lease = await acquire({ store: 'memory:', nodes: 2, taskId: 'me' });
    expect([lease.id, lease.version, lease.taskId, lease.isValid()]).toEqual([0, 1, 'me', true]);
    await lease.release();
    expect([lease.isValid(), lease.signal.aborted]).toEqual([false, false]);
  });

  it('refuses a keeper that could not kill this process', async () => {
    const pid = vi.spyOn(process, 'pid', 'get').mockReturnValue(1);
    onTestFinished(() => pid.mockRestore());
    const options = { store: 'file:leases', keeper: 'worker' } as const;
    await expect(acquire(options)).rejects.toThrow('keeper: expected inline in process 1 of a container');
  });

  it('refuses options that are getters of a class, which a copy would not have', async () => {
    class Options {
      get store() {
        return 'memory:';
      }
    }
    await expect(acquire(new Options())).rejects.toThrow('not a getter of a class, got "store"');
  });

  it('keeps to the options as they were when it was called', async () => {
    const seen: string[] = [];
    const options: { -readonly [Key in keyof AcquireOptions]: AcquireOptions[Key] } = { store: 'memory:' };
    const acquiring = ['a', 'b'].map((taskId) => {
      options.onEvent = ({ type }) => type === 'acquired' && seen.push(taskId);
      return acquire(options);
    });
    for (const lease of await Promise.all(acquiring)) await lease.release();
    expect(seen.sort()).toEqual(['a', 'b']);
  });
});

describe('acquire with a monitor', () => {
  /** Its reports since then, without renewals. */
  function watched() {
    const monitor = new NodeMonitor();
    const reports: string[] = [];
    monitor.onEvent((event: MonitorEvent) => {
      if (event.type === 'phase') reports.push(event.phase);
      else if (event.event.type !== 'renewed') reports.push(`${event.type}: ${event.event.type}`);
    });
    return { monitor, reports };
  }

  it('notifies it from the acquisition to the release, and is stopping as soon as the release is called', async () => {
    const { monitor, reports } = watched();
    const events: string[] = [];
    const lease = await acquire({
      store: 'memory:',
      nodes: 2,
      taskId: 'me',
      monitor,
      onEvent: ({ type }) => events.push(type),
    });
    expect(monitor.health()).toMatchObject({
      state: 'held',
      ready: true,
      nodeId: lease.id,
      version: 1,
      taskId: 'me',
      discovery: null,
    });
    const releasing = lease.release();
    expect(monitor.health()).toMatchObject({ live: true, ready: false });
    await releasing;
    expect(monitor.health()).toMatchObject({ state: 'released', live: true, ready: false });
    expect(reports.filter((news) => news !== 'lease: bootstrapped')).toEqual([
      'lease: cluster-created',
      'lease: acquired',
      'held',
      'stopping',
      'lease: released',
      'released',
    ]);
    expect(events).toContain('released');
  });

  it('notifies it that no node id was acquired, whatever the reason', async () => {
    const bad = watched();
    const invalid = acquire({ store: 'memory:', taskId: 'a b', monitor: bad.monitor });
    await expect(invalid).rejects.toMatchObject({ code: 'CONFIG_INVALID', setting: 'taskId' });
    expect(bad.monitor.health()).toMatchObject({ state: 'failed', live: false, ready: false });
    const unknown = watched();
    await expect(acquire({ store: 'ftp://x', monitor: unknown.monitor })).rejects.toMatchObject({
      setting: 'store',
    });
    expect(unknown.reports).toEqual(['failed']);
    const late = watched();
    await using first = await acquire({ store: 'memory:', nodes: 1, taskId: 'first' });
    expect(first.isValid()).toBe(true);
    const signal = AbortSignal.abort(new Error('shut down'));
    await expect(
      acquire({ store: 'memory:', nodes: 1, taskId: 'late', signal, monitor: late.monitor }),
    ).rejects.toThrow('shut down');
    expect(late.monitor.health()).toMatchObject({ state: 'failed', reason: 'shut down' });
    expect(late.reports).toEqual(['failed']);
  });

  it('refuses one that has reported another node id: its end would count for this one', async () => {
    const { monitor } = watched();
    const lease = await acquire({ store: 'memory:', nodes: 2, taskId: 'me', monitor });
    const again = { store: 'memory:', nodes: 2, taskId: 'me', monitor } as const;
    await expect(acquire(again)).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      setting: 'monitor',
      value: 'one that is held',
    });
    expect(monitor.health().state).toBe('held');
    await lease.release();
    await expect(acquire(again)).rejects.toMatchObject({ setting: 'monitor', value: 'one that is released' });
  });
});

describe('a data directory', () => {
  const copied = expect.stringMatching(/copy|clone/);
  it.each([
    ['linked', 0, {}, 'link'],
    ['linked', 2, {}, 'link'],
    ['copied, where work may have been left then,', 0, { copy: true }, copied],
    ['copied, where work may have been left then,', 2, { copy: true }, copied],
  ])(
    'is %s after an ordered end, and after %i starts since then that were refused',
    async (_, refusals, first, mode) => {
      const root = newRoot();
      const prepared: DataDirEvent[] = [];
      const onEvent = (event: DataDirEvent) => event.type === 'prepared' && prepared.push(event);
      const store = new MemoryLeaseStore({ clock: systemClock });
      const start = (options: object = {}) =>
        acquire({ store, nodes: 1, taskId: 'me', onLost: 'signal', dataDir: { root, onEvent, ...options } });
      try {
        const { dataDir = '', release } = await start(first);
        writeFileSync(join(dataDir, 'a'), 'data');
        await release();
        symlinkSync('/etc/passwd', join(dataDir, 'out'));
        for (let refused = 0; refused < refusals; refused += 1)
          await expect(start()).rejects.toThrow(/out is a symbolic link that leads out/);
        rmSync(join(dataDir, 'out'));
        await (await start()).release();
        expect(prepared.at(-1)).toMatchObject({ from: 1, mode });
      } finally {
        removeRoot(root);
      }
    },
  );

  it('belongs to the folder of its leases, which the same text does not name in another working directory', async () => {
    const folder = newRoot();
    const root = join(folder, 'data');
    mkdirSync(root);
    try {
      const store = `file:${relative(process.cwd(), folder)}/leases/`;
      await (await acquire({ store, nodes: 1, taskId: 'me', onLost: 'signal', dataDir: { root } })).release();
      expect(readFileSync(join(root, 'nodelease.json'), 'utf8')).toBe(`{"store":"file:${folder}/leases"}\n`);
    } finally {
      removeRoot(folder);
    }
  });

  it('does not record the end of its work where work on the lease is left, which then expires', async () => {
    const root = newRoot();
    const store = new MemoryLeaseStore({ clock: systemClock });
    try {
      const lease = await acquire({ store, nodes: 1, taskId: 'me', onLost: 'signal', dataDir: { root } });
      lease.home?.attach({ end: async () => false });
      await lease.release();
      expect(lease.isValid()).toBe(false);
      expect(JSON.parse((await store.read('0.json'))?.body ?? '')).toMatchObject({
        taskId: 'me',
        version: 1,
      });
      expect(readdirSync(lease.dataDir ?? '')).toEqual(['directory-initialized.json']);
    } finally {
      removeRoot(root);
    }
  });

  it('does not record the end of its work if the lease was lost before', async () => {
    const root = newRoot();
    const store = new MemoryLeaseStore({ clock: systemClock });
    try {
      const lease = await acquire({
        store,
        nodes: 1,
        taskId: 'me',
        durationMs: 1_000,
        onLost: 'signal',
        dataDir: { root },
      });
      const lost = once(lease.signal, 'abort');
      const { etag = '' } = (await store.read('0.json')) ?? {};
      await store.replace('0.json', 'another task', {}, etag);
      await lost;
      await lease.release();
      expect(readdirSync(lease.dataDir ?? '')).toEqual(['directory-initialized.json']);
    } finally {
      removeRoot(root);
    }
  });
});
