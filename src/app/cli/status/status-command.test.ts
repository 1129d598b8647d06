import { once as onceOf } from 'node:events';
import { type AddressInfo, connect, createServer } from 'node:net';
import { describe, expect, it } from 'vitest';
import { capturedIo } from '../../../../test/support/captured-io.js';
import { timeless } from '../../../../test/support/timeless-store.js';
import { seededRandom, settled, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { encodeCluster, newCluster } from '../../../core/lease/model/cluster-config.js';
import { nativeCodec } from '../../../core/lease/model/lease-codec.js';
import type { HeldLease } from '../../../core/lease/model/lease-state.js';
import { initializeCluster } from '../../../core/lease/operate/initialize.js';
import { inspectCluster } from '../../../core/lease/operate/inspect.js';
import { StoreSession } from '../../../core/lease/session/store-session.js';
import { StoreError } from '../../../core/store/lease-store.js';
import { MemoryBucket } from '../../../core/store/memory/memory-bucket.js';
import { type MemoryIntercept, MemoryLeaseStore } from '../../../core/store/memory/memory-lease-store.js';
import { observedAge } from '../../../core/store/observed-age.js';
import { discoveryComparison } from '../../../node/monitor/discovery/discovery-comparison.js';
import { wholeCluster } from '../../../node/monitor/listed-cluster.js';
import { statusReport } from '../../../node/monitor/status-report.js';
import type { DiscoveryStatusReport, StatusReport } from '../../../node/wire/status-report.js';
import type { ZooKeeper } from '../../../zookeeper/client/zookeeper.js';
import { openZooKeeper } from '../../../zookeeper/client/zookeeper-client.js';
import { encodeAssignment } from '../../../zookeeper/discovery/layout.js';
import type { Screen } from '../../kit/io.js';
import { showStatus } from './status-command.js';
import { statusTable } from './status-table.js';

const once = { json: false, watch: false, all: false };
const terminal: Screen = { columns: 80, rows: 24, color: true };

async function scene({ nodes = 5, screen }: { nodes?: number; screen?: Screen } = {}) {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1);
  let fail: (() => never) | undefined;
  const intercept: MemoryIntercept = async (_, apply) => (fail ? fail() : apply());
  const session = new StoreSession(new MemoryLeaseStore({ clock, intercept }, bucket), clock, 1_000);
  const io = capturedIo(screen, clock);
  const hold = (id: number, lease: Partial<HeldLease>) => {
    const held: HeldLease = {
      kind: 'held',
      taskId: 'task',
      version: 1,
      timestamp: 5,
      durationMs: 15_000,
      knownNodes: {},
      nonce: 'n',
      renewal: 0,
      acquiredAt: 0,
      idWidth: 8,
      narrowIdsUntil: 0,
      ...lease,
    };
    const { body, metadata } = nativeCodec.encode(held);
    bucket.replace(`${id}.json`, body, metadata, bucket.read(`${id}.json`)?.etag ?? '');
  };
  if (nodes > 0)
    await initializeCluster({
      session,
      clock,
      random: seededRandom(1),
      wanted: { nodes, durationMs: 15_000, graceMs: 1_000 },
    });
  return {
    io,
    session,
    bucket,
    clock,
    hold,
    setFailure: (error: Error | undefined) => {
      fail =
        error &&
        (() => {
          throw error;
        });
    },
  };
}

/** One id of every kind: expired, held, overdue, deleted, vacant. */
async function mixed(screen?: Screen) {
  const it = await scene(screen ? { screen } : {});
  it.hold(0, { taskId: 'dead', version: 3, durationMs: 1_000 });
  it.hold(2, { taskId: 'late', version: 7, durationMs: 4_000 });
  await it.clock.advance(2_500);
  it.hold(1, { taskId: 'alive', version: 2, knownNodes: { 2: 7 } });
  it.bucket.remove('3.json');
  await it.clock.advance(1_600);
  return it;
}

describe('nodelease status', () => {
  it('asks again where the store is too busy for a moment, and fails where it stays so', async () => {
    const { session, io, clock, setFailure } = await mixed();
    const busy = new StoreError('memory: answered HTTP 503', { fault: 'unavailable', outcome: 'unknown' });
    setFailure(busy);
    const passing = showStatus(session, once, io);
    await clock.advance(50);
    setFailure(undefined);
    await clock.advance(1_000);
    expect(await passing).toBe(0);
    setFailure(busy);
    const staying = expect(showStatus(session, once, io)).rejects.toBe(busy);
    await clock.advance(30_000);
    await staying;
  });

  it('shows by the store’s clock how old each lease is and when it expires', async () => {
    const { session, io } = await mixed();
    expect(await showStatus(session, once, io)).toBe(0);
    expect(io.answer().split('\n')).toEqual([
      'ID  STATE    VERSION  TASK    AGE  EXPIRES IN  PROBLEM',
      ' 0  expired        3  dead   4.0s     expired',
      ' 1  held           2  alive  1.5s       13.4s',
      ' 2  held           7  late   4.0s    in grace',
      ' 3  absent         -                           lease object is absent although the cluster is bootstrapped',
      ' 4  vacant         -         4.0s',
      '1 holder with another duration still: 2 (late, 4.0s)',
      'held 2, free 1, expired 1, damaged 1; duration 15s, grace 1s, node ids 8 bits wide',
      '',
    ]);
  });

  it('has one word for a node id that was never held, whether it has its object already or not: vacant, which is free', async () => {
    const { session, io, bucket, hold } = await scene({ nodes: 0 });
    bucket.create('cluster.json', encodeCluster(newCluster({ nodes: 3 })), {});
    for (const id of [0, 1]) bucket.create(`${id}.json`, '', {});
    hold(0, { taskId: 'first' });
    await showStatus(session, once, io);
    const [, ...rows] = io.answer().trimEnd().split('\n');
    const summary = rows.pop();
    expect(rows.map((line) => line.trim().split(/ +/).slice(0, 3))).toEqual([
      ['0', 'held', '1'],
      ['1', 'vacant', '-'],
      ['2', 'vacant', '-'],
    ]);
    expect(summary).toMatch(/^held 1, free 2, expired 0, damaged 0;/);
  });

  it('says what is certain where the store has no times of writing', async () => {
    const { io, clock, bucket } = await mixed();
    const session = new StoreSession(
      observedAge(timeless(new MemoryLeaseStore({ clock }, bucket)), clock),
      clock,
      1_000,
    );
    await showStatus(session, once, io);
    await clock.advance(3_000);
    await showStatus(session, once, io);
    const rows = io.answer().split('\n');
    const row = (text: string | undefined) => text?.trim().split(/ {2,}/);
    expect(row(rows[2])).toEqual(['1', 'held', '2', 'alive', '>0.0s', '<15.0s']);
    expect(row(rows[10])).toEqual(['1', 'held', '2', 'alive', '>3.0s', '<12.0s']);
  });

  it('is not misled by this host’s wall clock', async () => {
    const { session, io, clock } = await mixed();
    clock.wallOffset -= 86_400_000;
    await showStatus(session, once, io);
    expect(io.answer()).toMatch(/ 1 {2}held {11}2 {2}alive {2}1\.5s {7}13\.4s/);
  });

  it('gives JSON in which no field is ever left out', async () => {
    const { session, io } = await mixed();
    await showStatus(session, { ...once, json: true }, io);
    const report = JSON.parse(io.answer()) as StatusReport;
    expect(report).toMatchObject({
      store: 'memory:',
      cluster: { size: 5, durationMs: 15_000, graceMs: 1_000, idWidth: 8, bootstrapped: true },
      discovery: null,
      allocation: null,
    });
    expect(report.nodes[1]).toEqual({
      id: 1,
      state: 'held',
      version: 2,
      taskId: 'alive',
      ageMs: [1_599, 1_601],
      expiresInMs: 13_401,
      timestamp: 5,
      knownNodes: { 2: 7 },
      idWidth: 8,
      problem: null,
    });
    expect(report.nodes[2]).toMatchObject({ state: 'held', expiresInMs: -99 });
    expect(report.nodes[3]).toEqual({
      id: 3,
      state: 'absent',
      version: 0,
      taskId: null,
      ageMs: null,
      expiresInMs: null,
      timestamp: null,
      knownNodes: {},
      idWidth: null,
      problem: 'lease object is absent although the cluster is bootstrapped',
    });
  });

  it('says that no task has used a lock yet, and nothing of init', async () => {
    const { io, session } = await scene({ nodes: 0 });
    Object.assign(session.store, { url: 's3://bucket/locks/report' });
    expect(await showStatus(session, once, io)).toBe(69);
    expect(io.answer()).toBe(
      'No task has used lock report yet: there is nothing at s3://bucket/locks/report. [CLUSTER_MISSING]\n',
    );
  });

  it('says that there is no cluster yet and how to get one, and ends with 69', async () => {
    const { session, io } = await scene({ nodes: 0 });
    expect(await showStatus(session, once, io)).toBe(69);
    expect(io.answer()).toMatch(/^There is no cluster at memory: yet: .*nodelease init.*nodelease run.*\n$/);
    const json = capturedIo();
    expect(await showStatus(session, { ...once, json: true }, json)).toBe(69);
    expect(JSON.parse(json.answer())).toEqual({
      ...{ store: 'memory:', cluster: null, nodes: [], discovery: null, allocation: null },
      ...{ draining: [], totals: null, page: null },
    });
  });

  it('uses colours on a terminal that has them, and nowhere else', async () => {
    const colored = await mixed(terminal);
    await showStatus(colored.session, once, colored.io);
    expect(colored.io.answer()).toContain('\x1b[32mheld\x1b[39m');
    const plain = await mixed({ ...terminal, color: false });
    await showStatus(plain.session, once, plain.io);
    expect(plain.io.answer()).not.toContain('\x1b');
  });

  it('says above the table, while the cluster grows, who has not gone over to wider unique ids yet', async () => {
    const { session, io, hold, bucket, clock } = await scene({ nodes: 4 });
    hold(0, { taskId: 'narrow' });
    hold(1, { taskId: 'wide', idWidth: 9 });
    hold(2, { taskId: 'old' });
    hold(3, { taskId: 'dead', durationMs: 1_000 });
    await clock.advance(3_000);
    await showStatus(session, once, io);
    expect(io.answer()).toMatch(/^ID {2}STATE/);
    const cluster = bucket.read('cluster.json');
    bucket.replace(
      'cluster.json',
      (cluster?.body ?? '').replace('"idWidth":8', '"idWidth":9'),
      {},
      cluster?.etag ?? '',
    );
    const growing = capturedIo(undefined, clock);
    await showStatus(session, once, growing);
    const [head, titles] = growing.answer().split('\n');
    expect(head).toBe(
      'growing: node ids are to take 9 bits in unique ids, 2 holders not there yet: 0 (narrow, 8 bits), 2 (old, 8 bits)',
    );
    expect(titles).toMatch(/^ID {2}STATE/);
    const small = capturedIo({ columns: 60, rows: 7, color: false }, clock);
    await showStatus(session, once, small);
    const lines = small.answer().trimEnd().split('\n');
    expect(lines).toHaveLength(6);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(60);
    const json = capturedIo(undefined, clock);
    await showStatus(session, { ...once, json: true }, json);
    const { nodes } = JSON.parse(json.answer()) as StatusReport;
    expect(nodes.map(({ idWidth }) => idWidth)).toEqual([8, 9, 8, 8]);
  });

  it('keeps within a terminal, with the most important ids, and shows all of them on request', async () => {
    const { session, io, hold } = await scene({
      nodes: 300,
      screen: { columns: 60, rows: 12, color: false },
    });
    hold(250, { taskId: 'x'.repeat(100), idWidth: 9 });
    hold(17, { idWidth: 9 });
    await showStatus(session, once, io);
    const lines = io.answer().trimEnd().split('\n');
    expect(lines).toHaveLength(11);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(60);
    expect(lines.at(-2)).toBe('… and 292 more (nodelease status --all shows them)');
    expect(lines.at(-1)).toMatch(/^held 2, free 298,/);
    expect(lines.some((line) => line.startsWith('250  held'))).toBe(true);
    expect(lines.some((line) => line.startsWith(' 17  held'))).toBe(true);
    const all = capturedIo({ columns: 60, rows: 12, color: false });
    await showStatus(session, { ...once, all: true }, all);
    expect(all.answer().trimEnd().split('\n')).toHaveLength(302);
  });

  it.each([
    [80, 'held 0, free 300, expired 0, damaged 0; duration 15s, grace 1s, node ids 9 bits'],
    [120, 'held 0, free 300, expired 0, damaged 0; duration 15s, grace 1s, node ids 9 bits wide'],
    [62, 'held 0, free 300, expired 0, damaged 0; duration 15s, grace 1s'],
    [60, 'held 0, free 300, expired 0, damaged 0; duration 15s, grace…'],
  ])(
    'ends with how wide node ids are in unique ids, as far as a terminal of %i columns has room for it',
    async (columns, line) => {
      const { session, io } = await scene({ nodes: 300, screen: { columns, rows: 12, color: false } });
      await showStatus(session, once, io);
      expect(io.answer().trimEnd().split('\n').at(-1)).toBe(line);
    },
  );

  it('leaves nothing out where it is piped', async () => {
    const { session, io, hold } = await scene({ nodes: 300 });
    hold(250, { taskId: 'x'.repeat(100), idWidth: 9 });
    await showStatus(session, once, io);
    expect(io.answer().trimEnd().split('\n')).toHaveLength(302);
    expect(io.answer()).toContain('x'.repeat(100));
  });
});

describe('nodelease status with discovery', () => {
  const discovery: DiscoveryStatusReport = {
    state: 'degraded',
    problem: 'of 2 held node ids 1 shown with another version',
    nodes: [
      { id: 1, state: 'ok', version: 2 },
      { id: 2, state: 'other-version', version: 6 },
    ],
  };

  it('has a column for how the tree shows each held id, and a line on discovery below', async () => {
    const status = await inspectCluster((await mixed()).session);
    expect(status && statusTable(wholeCluster(status), { screen: undefined, discovery })).toEqual([
      'ID  STATE    VERSION  TASK    AGE  EXPIRES IN  DISCOVERY  PROBLEM',
      ' 0  expired        3  dead   4.0s     expired',
      ' 1  held           2  alive  1.5s       13.4s  ok',
      ' 2  held           7  late   4.0s    in grace  version 6',
      ' 3  absent         -                                      lease object is absent although the cluster is bootstrapped',
      ' 4  vacant         -         4.0s',
      '1 holder with another duration still: 2 (late, 4.0s)',
      'held 2, free 1, expired 1, damaged 1; duration 15s, grace 1s, node ids 8 bits wide',
      'discovery: degraded (of 2 held node ids 1 shown with another version)',
    ]);
  });

  it.each([
    ['missing', 'missing'],
    ['unreadable', 'unreadable'],
    ['?', 'unknown'],
  ] as const)('shows %s where it is that', async (text, state) => {
    const status = await inspectCluster((await mixed()).session);
    const shown: DiscoveryStatusReport = {
      state: 'ok',
      problem: null,
      nodes: [{ id: 1, state, version: null }],
    };
    const lines =
      (status && statusTable(wholeCluster(status), { screen: undefined, discovery: shown })) ?? [];
    expect(lines[2]?.endsWith(`13.4s  ${text}`)).toBe(true);
    expect(lines.at(-1)).toBe('discovery: ok');
  });

  it('keeps within a terminal with it', async () => {
    const { session, hold } = await scene({ nodes: 300 });
    hold(250, { taskId: 'x'.repeat(100) });
    const status = await inspectCluster(session);
    const screen = { columns: 70, rows: 12, color: false };
    const lines =
      (status &&
        statusTable(wholeCluster(status), {
          screen,
          maxLines: 11,
          discovery: { ...discovery, problem: 'y'.repeat(100) },
        })) ??
      [];
    expect(lines).toHaveLength(11);
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(70);
    expect(lines.at(-1)).toMatch(/^discovery: degraded \(y+…$/);
  });

  it('lets nothing of a server reach the terminal as a command', async () => {
    const status = await inspectCluster((await mixed()).session);
    const lines =
      (status &&
        statusTable(wholeCluster(status), {
          screen: terminal,
          discovery: { ...discovery, problem: 'a\x1b[2Jb' },
        })) ??
      [];
    expect(lines.at(-1)).toContain('a\ufffd[2Jb');
  });

  it('is degraded where the tree has another task at the same version, as of a second cluster', async () => {
    const { session, clock, io, hold } = await scene();
    for (const id of [1, 2]) hold(id, { taskId: 'own', timestamp: 60_000 });
    const shown = (id: number) =>
      encodeAssignment({ taskId: id === 1 ? 'own' : 'foreign', nodeId: id, version: 1 });
    const zookeeper = {
      whenConnected: async () => undefined,
      read: async (path: string) => ({ data: Buffer.from(shown(path.endsWith('09') ? 1 : 2)) }),
    } as unknown as ZooKeeper;
    await showStatus(session, once, io, discoveryComparison(zookeeper, clock));
    expect(io.answer()).toMatch(/\n 1 {2}held .* {2}ok\n 2 {2}held .* {2}other-task\n/);
    expect(io.answer()).toContain('discovery: degraded (of 2 held node ids 1 shown for another task)');
  });

  it('does not fail, and takes two seconds, when ZooKeeper gives no answer', async () => {
    // It is loaded late, and that takes real time.
    await import('../../../zookeeper/client/connection/library-session.js');
    const silent = createServer(() => undefined).listen(0, '127.0.0.1');
    await onceOf(silent, 'listening');
    const { port } = silent.address() as AddressInfo;
    for (const [server, why] of [
      ['127.0.0.1:1', 'ECONNREFUSED'],
      [`127.0.0.1:${port}`, 'timeout'],
    ] as const) {
      const { session, clock, io } = await mixed();
      const zookeeper = openZooKeeper({ connect: server, clock, random: seededRandom(1) });
      const begun = clock.monotonic();
      let ended = false;
      const shown = showStatus(
        session,
        { ...once, json: true },
        io,
        discoveryComparison(zookeeper, clock),
      ).finally(() => {
        ended = true;
      });
      while (!ended) {
        await clock.advance(100);
        // What the server says to a connection that was begun before this one is there by its end.
        const probe = connect(Number(server.split(':')[1]), '127.0.0.1');
        await onceOf(probe, 'connect').catch(() => undefined);
        probe.destroy();
      }
      expect(await shown).toBe(0);
      expect(clock.monotonic() - begun).toBeLessThan(2_500);
      const { discovery } = JSON.parse(io.answer()) as StatusReport;
      expect(discovery).toMatchObject({
        state: 'degraded',
        problem: expect.stringContaining(why),
        nodes: [1, 2].map((id) => ({ id, state: 'unknown', version: null })),
      });
      const closed = zookeeper.close();
      await clock.advance(10_000);
      await closed;
    }
    silent.close();
  });

  it('gives JSON in which no field is ever left out', () => {
    const fields = ['store', 'cluster', 'nodes', 'discovery', 'allocation', 'draining', 'totals', 'page'];
    const asJson = (report: StatusReport) => JSON.parse(JSON.stringify(report));
    expect(Object.keys(asJson(statusReport('memory:')))).toEqual(fields);
    expect(asJson(statusReport('memory:')).discovery).toBeNull();
    expect(asJson(statusReport('memory:', undefined, discovery)).discovery).toEqual(discovery);
  });
});

describe('nodelease status --watch', () => {
  const watch = { ...once, watch: true };

  it('appends a picture every second where it is piped, and ends with 0 at SIGINT or SIGTERM', async () => {
    for (const signal of ['SIGINT', 'SIGTERM']) {
      const { session, io, clock } = await scene();
      const ended = showStatus(session, watch, io);
      await clock.advance(2_999);
      expect(io.answer().match(/^ID /gm)).toHaveLength(3);
      io.signals.emit(signal);
      expect(await ended).toBe(0);
      expect(clock.sleepers).toBe(0);
      expect(io.signals.listenerCount(signal)).toBe(0);
    }
  });

  it('gives one JSON object a line', async () => {
    const { session, io, clock } = await scene();
    const ended = showStatus(session, { ...watch, json: true }, io);
    await clock.advance(1_500);
    io.signals.emit('SIGTERM');
    await ended;
    const reports = io
      .answer()
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as StatusReport);
    expect(reports.map(({ nodes }) => nodes.length)).toEqual([5, 5]);
  });

  it('keeps nothing for a reader that pauses', async () => {
    const { session, io, clock } = await scene();
    const ended = showStatus(session, watch, { ...io, written: () => new Promise(() => undefined) });
    await clock.advance(10_000);
    expect(io.answer().match(/^ID /gm)).toHaveLength(1);
    io.signals.emit('SIGINT');
    expect(await ended).toBe(0);
  });

  it('draws in one place on a terminal, and gives the cursor back', async () => {
    const { session, io, clock } = await scene({ screen: terminal });
    const ended = showStatus(session, watch, io);
    await clock.advance(1_500);
    io.signals.emit('SIGINT');
    await ended;
    expect(io.answer().split('\x1b[2J')).toHaveLength(2);
    expect(io.answer().split('\x1b[H')).toHaveLength(3);
    expect(io.answer().endsWith('\x1b[?25h')).toBe(true);
  });

  it('survives failures of the store, and shows them', async () => {
    for (const screen of [undefined, terminal]) {
      const { session, io, clock, setFailure } = await scene(screen ? { screen } : {});
      const ended = showStatus(session, watch, io);
      await clock.advance(500);
      setFailure(new StoreError('memory: no answer', { fault: 'unreachable', outcome: 'unknown' }));
      await clock.advance(1_000);
      expect(screen ? io.answer() : io.complaints()).toContain('no answer');
      setFailure(undefined);
      const before = io.answer().length;
      await clock.advance(1_000);
      expect(io.answer().slice(before)).toMatch(/held 0, free 5/);
      expect(io.answer().slice(before)).not.toContain('no answer');
      io.signals.emit('SIGINT');
      expect(await ended).toBe(0);
    }
  });

  it('ends at once when the very first look fails', async () => {
    const { session, io, setFailure } = await scene();
    setFailure(new StoreError('memory: access denied', { fault: 'denied', outcome: 'not-applied' }));
    await expect(showStatus(session, watch, io)).rejects.toThrow('access denied');
  });

  it('can be interrupted while the store does not answer', async () => {
    const clock = new VirtualClock();
    const intercept: MemoryIntercept = () => new Promise(() => {});
    const session = new StoreSession(new MemoryLeaseStore({ clock, intercept }), clock, 60_000);
    const io = capturedIo(undefined, clock);
    const ended = showStatus(session, watch, io);
    await settled();
    io.signals.emit('SIGINT');
    expect(await ended).toBe(0);
  });
});
