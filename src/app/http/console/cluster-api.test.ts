import { describe, expect, it } from 'vitest';
import { seededRandom, settled, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { ConfigError } from '../../../core/base/errors.js';
import { StoreSession } from '../../../core/lease/session/store-session.js';
import { StoreError } from '../../../core/store/lease-store.js';
import { MemoryBucket } from '../../../core/store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../../../core/store/memory/memory-lease-store.js';
import {
  ClusterFollower,
  type ClusterView,
  type CurrentCluster,
} from '../../../node/monitor/cluster-follower.js';
import type { MonitorEvent } from '../../../node/runtime/node-monitor.js';
import type { ClusterEvent, ClusterSnapshot, NodeTenures } from '../../../node/wire/cluster-snapshot.js';
import type { NodeHealthJson } from '../../../node/wire/node-health.js';
import type { StatusReport } from '../../../node/wire/status-report.js';
import { OpenStreams } from '../server/open-streams.js';
import { clusterApi } from './cluster-api.js';

const EMPTY: ClusterSnapshot = {
  report: {
    store: 'memory:',
    cluster: null,
    nodes: [],
    discovery: null,
    allocation: null,
    draining: [],
    totals: null,
    page: null,
  },
  store: { state: 'ok', problem: null, latencyMs: 1, clockOffsetMs: null, lookedAt: 5 },
  tree: null,
  events: [],
};

const happened: ClusterEvent = {
  ...{
    id: 7,
    at: 1,
    since: null,
    kind: 'acquired',
    nodeId: 0,
    version: 1,
    taskId: 'a',
    previousTaskId: null,
  },
  text: 'a acquired node id 0 at version 1',
};

/** A cluster that does what a test wants it to. */
class ScriptedView implements ClusterView {
  readonly epoch = 'e1';
  answer: (signal?: AbortSignal) => Promise<ClusterSnapshot> = async () => EMPTY;
  now: CurrentCluster = { ...EMPTY, revision: 1 };
  readonly listeners = new Set<() => void>();
  snapshots = 0;
  /** How often {@link current} was called. */
  reads = 0;

  snapshot(signal?: AbortSignal): Promise<ClusterSnapshot> {
    this.snapshots += 1;
    return this.answer(signal);
  }

  current(): CurrentCluster {
    this.reads += 1;
    return this.now;
  }

  tenures(ids: ReadonlySet<number>): readonly NodeTenures[] {
    return [...ids].map((id) => ({ id, tenures: [], knownSince: 0 }));
  }

  follow(listener: () => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  /** Something is different now. */
  set(facts: Partial<CurrentCluster>): void {
    this.now = { ...this.now, ...facts };
    for (const listener of this.listeners) listener();
  }

  async close(): Promise<void> {}
}

function scene({ withInstance = false } = {}) {
  const clock = new VirtualClock();
  const view = new ScriptedView();
  const monitors = new Set<(event: MonitorEvent) => void>();
  const health = { status: 'ok', state: 'held', validForMs: 15_000 };
  const monitor = {
    onEvent: (listener: (event: MonitorEvent) => void) => {
      monitors.add(listener);
      return () => monitors.delete(listener);
    },
  };
  let opened = 0;
  let failure: Error | undefined;
  const cluster = async () => {
    opened += 1;
    if (failure) throw failure;
    return view;
  };
  const instance = withInstance
    ? { monitor, json: () => ({ ...health }) as object as NodeHealthJson }
    : undefined;
  const api = clusterApi({ clock, cluster, streams: new OpenStreams(), instance });
  return {
    clock,
    view,
    api,
    health,
    monitors,
    opened: () => opened,
    fail: (error: Error | undefined) => {
      failure = error;
    },
    notifyMonitor: () => {
      for (const listener of monitors) listener({ type: 'phase', phase: 'held' });
    },
    get: (path: 'leases' | 'events') => api[path](new Request(`http://localhost/api/${path}`)),
  };
}

/** What a client reads, event by event. */
class Client {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #decoder = new TextDecoder();
  text = '';
  ended = false;

  constructor(response: Response) {
    if (response.body === null) throw new Error('no body');
    this.#reader = response.body.getReader();
  }

  /** Reads on and on, until the stream ends. */
  async read(): Promise<void> {
    for (;;) {
      const { done, value } = await this.#reader.read();
      if (done) break;
      this.text += this.#decoder.decode(value, { stream: true });
    }
    this.ended = true;
  }

  async readOnce(): Promise<void> {
    const { value } = await this.#reader.read();
    this.text += this.#decoder.decode(value, { stream: true });
  }

  /** The events since this was last called: the names, and the data. */
  take(): [event: string, data: unknown][] {
    const events = [...this.text.matchAll(/^event: (.*)\n((?:data: .*\n)+)\n/gm)].map(
      ([, event = '', data = '']): [string, unknown] => [event, JSON.parse(data.replaceAll(/^data: /gm, ''))],
    );
    this.text = '';
    return events;
  }

  cancel(): Promise<void> {
    return this.#reader.cancel();
  }
}

const store = (latencyMs: number) => ({ store: { ...EMPTY.store, latencyMs } });
const UNKNOWN = { report: null, store: { ...EMPTY.store, state: 'unknown' } } as const;

/** A report with these node ids. */
function reportOf(ids: readonly number[], version = 0): StatusReport {
  const unknown = {
    taskId: null,
    ageMs: null,
    expiresInMs: null,
    timestamp: null,
    knownNodes: {},
    idWidth: null,
    problem: null,
  };
  return { ...EMPTY.report, nodes: ids.map((id) => ({ ...unknown, id, state: 'vacant', version })) };
}
const upTo = (size: number) => Array.from({ length: size }, (_, id) => id);

describe('/api/leases', () => {
  it('is the report, as status --json shows it', async () => {
    const { get } = scene();
    const response = await get('leases');
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(await response.json()).toEqual(EMPTY.report);
    expect(response.headers.has('age')).toBe(false);
  });

  it('has its age while the cluster cannot be read', async () => {
    const { clock, view, get } = scene();
    view.answer = async () => ({
      ...EMPTY,
      store: { ...EMPTY.store, state: 'failing', lookedAt: clock.now() - 4_100 },
    });
    expect((await get('leases')).headers.get('age')).toBe('5');
  });

  describe('in pages', () => {
    const unknown = {
      taskId: null,
      ageMs: null,
      expiresInMs: null,
      timestamp: null,
      knownNodes: {},
      idWidth: null,
      problem: null,
    };
    const nodes = Array.from({ length: 250 }, (_, index) => ({
      ...unknown,
      id: 2 * index,
      state: 'vacant' as const,
      version: 0,
    }));

    async function page(query: string) {
      const { view, api } = scene();
      view.answer = async () => ({ ...EMPTY, report: { ...EMPTY.report, nodes } });
      const response = await api.leases(new Request(`http://localhost/api/leases?${query}`));
      return (await response.json()) as StatusReport;
    }

    it('is a hundred node ids, or as many as were asked for, and says where the next page begins', async () => {
      const first = await page('from=0');
      expect([first.nodes.length, first.nodes[99]?.id, first.page]).toEqual([
        100,
        198,
        { from: 0, limit: 100, next: 200 },
      ]);
      const second = await page('from=401&limit=2');
      expect([second.nodes.map(({ id }) => id), second.page]).toEqual([
        [402, 404],
        { from: 401, limit: 2, next: 406 },
      ]);
      const last = await page('from=400&limit=50');
      expect([last.nodes.length, last.page?.next]).toEqual([50, null]);
      expect((await page('limit=1')).nodes.map(({ id }) => id)).toEqual([0]);
      expect(await page('from=60000')).toMatchObject({ nodes: [], page: { next: null } });
    });

    it('is everything where no page is asked for', async () => {
      expect(await page('other=1')).toMatchObject({ nodes, page: null });
    });

    it.each([
      'from=-1',
      'from=',
      'from=x',
      'from=65528',
      'from=1&from=2',
      'limit=0',
      'limit=1001',
      'limit=1e2',
    ])('refuses %s without a look at the cluster', async (query) => {
      const { opened, api } = scene();
      await expect(api.leases(new Request(`http://localhost/api/leases?${query}`))).rejects.toThrow(
        ConfigError,
      );
      expect(opened()).toBe(0);
    });
  });

  it('asks for the cluster once, and again after that failed', async () => {
    const { get, opened, fail } = scene();
    fail(new Error('not now'));
    await expect(get('leases')).rejects.toThrow('not now');
    fail(undefined);
    await Promise.all([get('leases'), get('leases'), get('events')]);
    expect(opened()).toBe(2);
  });
});

describe('/api/history', () => {
  const ask = (api: ReturnType<typeof scene>['api'], query: string) =>
    api.history(new Request(`http://localhost/api/history?${query}`));

  it('is who held the node ids that are asked for', async () => {
    const { api } = scene();
    const response = await ask(api, 'ids=3,17');
    expect(response.headers.get('cache-control')).toBe('no-store');
    expect(await response.json()).toEqual({
      nodes: [
        { id: 3, tenures: [], knownSince: 0 },
        { id: 17, tenures: [], knownSince: 0 },
      ],
    });
  });

  it.each(['', 'ids=', 'ids=x', 'ids=1,', 'ids=65528'])(
    'refuses %s without a look at the cluster',
    async (query) => {
      const { opened, api } = scene();
      await expect(ask(api, query)).rejects.toThrow(ConfigError);
      expect(opened()).toBe(0);
    },
  );
});

describe('/api/events', () => {
  it('begins with everything, and continues with what is different', async () => {
    const { view, get } = scene();
    const response = await get('events');
    expect(response.headers.get('content-type')).toBe('text/event-stream');
    const client = new Client(response);
    void client.read();
    await settled();
    expect(client.text).toMatch(/^retry: 1000\n/);
    expect(client.take()).toEqual([['hello', { epoch: 'e1', instance: null, ...EMPTY }]]);
    const report = reportOf([0]);
    view.set({ revision: 2, report, tree: null, events: [happened], ...store(3) });
    await settled();
    expect(client.text).toContain(`id: 7\nevent: change\n`);
    expect(client.take()).toEqual([
      ['store', { ...EMPTY.store, latencyMs: 3 }],
      ['report', report],
      ['change', happened],
    ]);
    view.set(store(4));
    await settled();
    expect(client.take()).toEqual([['store', { ...EMPTY.store, latencyMs: 4 }]]);
  });

  it('has the shards of a cluster that has some, and again when their map is another one', async () => {
    const { view, get } = scene();
    const shards = {
      epoch: 2,
      problem: null,
      members: [{ id: 0, version: 1 }],
      shards: [[0, 2, -1]] as const,
      failed: [],
      limits: [],
    };
    view.now = { ...view.now, shards };
    const client = new Client(await get('events'));
    void client.read();
    await settled();
    expect(client.take()).toEqual([['hello', { epoch: 'e1', instance: null, ...EMPTY, shards }]]);
    view.set(store(2));
    view.set({ revision: 2, shards: { ...shards, epoch: 3 } });
    await settled();
    expect(client.take()).toEqual([
      ['store', { ...EMPTY.store, latencyMs: 2 }],
      ['report', EMPTY.report],
      ['shards', { ...shards, epoch: 3 }],
    ]);
    view.set({ revision: 3, shards: undefined });
    await settled();
    expect(client.take().at(-1)).toEqual(['shards', null]);
  });

  it('sends more than a thousand node ids in pages', async () => {
    const { view, get } = scene();
    view.now = { ...view.now, report: reportOf(upTo(2_500)) };
    const client = new Client(await get('events'));
    void client.read();
    await settled();
    const pages = (events: [string, unknown][]) =>
      events.map(([event, data]) => {
        const { nodes, page } = (
          event === 'hello' ? (data as { report: StatusReport }).report : data
        ) as StatusReport;
        return [event, page, nodes[0]?.id, nodes.length, nodes[0]?.version];
      });
    const expectedPages = (first: string, version: number) => [
      [first, { from: 0, limit: 1_000, next: 1_000 }, 0, 1_000, version],
      ['page', { from: 1_000, limit: 1_000, next: 2_000 }, 1_000, 1_000, version],
      ['page', { from: 2_000, limit: 1_000, next: null }, 2_000, 500, version],
    ];
    expect(pages(client.take())).toEqual(expectedPages('hello', 0));
    view.set({ revision: 2, report: reportOf(upTo(2_500), 1) });
    await settled();
    expect(pages(client.take())).toEqual(expectedPages('report', 1));
    view.set({ revision: 3, report: reportOf(upTo(1_000), 2) });
    await settled();
    expect(pages(client.take())).toEqual([['report', null, 0, 1_000, 2]]);
  });

  it('begins with what there is when the first scan has ended', async () => {
    const { view, get, clock } = scene();
    view.now = { ...view.now, ...UNKNOWN };
    view.answer = async () => {
      await clock.sleep(500);
      view.set({ ...EMPTY, revision: 2 });
      return EMPTY;
    };
    const client = new Client(await get('events'));
    void client.read();
    await clock.advance(499);
    expect(client.take()).toEqual([]);
    await clock.advance(1);
    expect(client.take()).toEqual([['hello', { epoch: 'e1', instance: null, ...EMPTY }]]);
  });

  it('says that nothing is known yet, and everything once it is', async () => {
    const { view, get, clock } = scene();
    view.now = { ...view.now, ...UNKNOWN };
    view.answer = (signal) => clock.sleep(5_000, signal).then(() => EMPTY);
    const client = new Client(await get('events'));
    void client.read();
    await clock.advance(1_000);
    expect(client.take()).toMatchObject([
      ['hello', { epoch: 'e1', report: null, store: { state: 'unknown' }, tree: null, events: [] }],
    ]);
    view.set({ ...EMPTY, revision: 2 });
    await settled();
    expect(client.take()).toEqual([
      ['store', EMPTY.store],
      ['report', EMPTY.report],
    ]);
  });

  it('says why nothing can be known', async () => {
    const { view, get } = scene();
    view.now = {
      ...view.now,
      report: null,
      store: { ...EMPTY.store, state: 'failing', problem: 'no connection' },
    };
    view.answer = async () => {
      throw new StoreError('no connection', { fault: 'unreachable', outcome: 'not-applied' });
    };
    const client = new Client(await get('events'));
    void client.read();
    await settled();
    expect(client.take()).toMatchObject([
      ['hello', { report: null, store: { state: 'failing', problem: 'no connection' } }],
    ]);
    view.set(store(3));
    await settled();
    expect(client.take()).toMatchObject([['store', { latencyMs: 3 }]]);
  });

  it('shows every ten seconds that the connection is alive', async () => {
    const { get, clock } = scene();
    const client = new Client(await get('events'));
    void client.read();
    await clock.advance(35_000);
    expect(client.text.match(/^:$/gm)).toHaveLength(3);
  });

  it('reports the process’ own node id: when something happens, and when its time has passed', async () => {
    const { get, clock, health, notifyMonitor } = scene({ withInstance: true });
    const client = new Client(await get('events'));
    void client.read();
    await settled();
    expect(client.take()).toMatchObject([['hello', { instance: health }]]);
    health.validForMs = 14_000;
    await clock.advance(5_000);
    expect(client.take()).toEqual([]);
    notifyMonitor();
    await settled();
    expect(client.take()).toEqual([['instance', health]]);
    health.state = 'lost';
    await clock.advance(1_000);
    expect(client.take()).toEqual([['instance', health]]);
    await clock.advance(5_000);
    expect(client.take()).toEqual([]);
  });

  it('reads the cluster for news only, not on every tick', async () => {
    const { view, get, clock, health } = scene({ withInstance: true });
    const client = new Client(await get('events'));
    void client.read();
    await settled();
    view.reads = 0;
    health.validForMs = 10_000;
    await clock.advance(5_000);
    expect(view.reads).toBe(0);
    health.state = 'lost';
    await clock.advance(5_000);
    expect(view.reads).toBe(1);
  });

  it('follows the cluster for as long as there are clients, and no longer', async () => {
    const { view, get, clock, monitors } = scene({ withInstance: true });
    const clients = await Promise.all(Array.from({ length: 5 }, async () => new Client(await get('events'))));
    for (const client of clients) void client.read();
    await settled();
    expect([view.listeners.size, monitors.size]).toEqual([5, 5]);
    for (const client of clients.slice(1)) await client.cancel();
    expect([view.listeners.size, monitors.size]).toEqual([1, 1]);
    await clients[0]?.cancel();
    expect([view.listeners.size, monitors.size, clock.sleepers]).toEqual([0, 0, 0]);
    const again = new Client(await get('events'));
    void again.read();
    await settled();
    expect(view.listeners.size).toBe(1);
  });

  it('scans the cluster once a second, however many clients there are', async () => {
    const clock = new VirtualClock();
    let lists = 0;
    const store = new MemoryLeaseStore({ clock }, new MemoryBucket(clock, 1)).connect(
      async ({ operation }, apply) => {
        if (operation === 'list') lists += 1;
        return apply();
      },
    );
    const view = new ClusterFollower({
      clock,
      random: seededRandom(1),
      session: new StoreSession(store, clock, 1_000),
    });
    const api = clusterApi({ clock, cluster: async () => view, streams: new OpenStreams() });
    const answers = Array.from({ length: 5 }, () => api.events(new Request('http://localhost/api/events')));
    const clients = (await Promise.all(answers)).map((response) => new Client(response));
    for (const client of clients) void client.read();
    await clock.advance(10_000);
    expect(clients.map((client) => client.take()[0]?.[0])).toEqual(Array(5).fill('hello'));
    expect(lists).toBeGreaterThan(5);
    expect(lists).toBeLessThan(13);
    for (const client of clients) await client.cancel();
    await view.close();
  });

  it('does not wait for a snapshot that no client wants any more', async () => {
    const { view, get, clock } = scene();
    let given: AbortSignal | undefined;
    view.answer = async (signal) => {
      given = signal;
      await clock.sleep(60_000, signal);
      return EMPTY;
    };
    const client = new Client(await get('events'));
    void client.read();
    await settled();
    await client.cancel();
    await settled();
    expect(given?.aborted).toBe(true);
    expect(clock.sleepers).toBe(0);
  });

  it('buffers nothing for a slow client, which gets the current state when it reads again; the others do not notice', async () => {
    const { view, get } = scene();
    const [slow, quick] = [new Client(await get('events')), new Client(await get('events'))];
    void quick.read();
    await slow.readOnce();
    for (let revision = 2; revision <= 20; revision += 1) {
      view.set({ revision, report: reportOf(upTo(5), revision), ...store(revision) });
      await settled();
    }
    expect(quick.take().filter(([event]) => event === 'report')).toHaveLength(19);
    void slow.read();
    await settled();
    // All of the first message, although most of it was taken late, and then the latest of each part.
    expect(slow.take()).toMatchObject([
      ['hello', EMPTY],
      ['store', { latencyMs: 20 }],
      ['report', { nodes: reportOf(upTo(5), 20).nodes }],
    ]);
    await slow.cancel();
    expect(view.listeners.size).toBe(1);
    await quick.cancel();
    expect(view.listeners.size).toBe(0);
  });

  it('makes each message of a large cluster once, for any number of clients', async () => {
    const { view, get } = scene();
    view.now = { ...view.now, report: reportOf(upTo(900)) };
    const streams = await Promise.all(
      Array.from({ length: 3 }, async () => (await get('events')).body?.getReader()),
    );
    const large = await Promise.all(
      streams.map(async (stream) => {
        await stream?.read();
        return (await stream?.read())?.value;
      }),
    );
    expect(large[0]?.length).toBeGreaterThan(90_000);
    expect(new Set(large.map((bytes) => bytes?.buffer))).toHaveLength(1);
  });

  it('forgets who leaves, at whatever moment of the first message that is', async () => {
    const { view, get } = scene();
    for (let moment = 0; moment < 30; moment += 1) {
      let answer: (snapshot: ClusterSnapshot) => void = () => undefined;
      view.answer = () => new Promise((resolve) => (answer = resolve));
      const client = new Client(await get('events'));
      await settled();
      answer(EMPTY);
      for (let i = 0; i < moment; i += 1) await Promise.resolve();
      await client.cancel();
      await settled();
      expect([moment, view.listeners.size]).toEqual([moment, 0]);
    }
  });
});
