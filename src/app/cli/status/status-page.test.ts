import { describe, expect, it } from 'vitest';
import { capturedIo } from '../../../../test/support/captured-io.js';
import { seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { ConfigError } from '../../../core/base/errors.js';
import { encodeCluster, newCluster } from '../../../core/lease/model/cluster-config.js';
import { nativeCodec } from '../../../core/lease/model/lease-codec.js';
import { acquired, leaseKey, retired } from '../../../core/lease/model/lease-state.js';
import { initializeCluster } from '../../../core/lease/operate/initialize.js';
import { StoreSession } from '../../../core/lease/session/store-session.js';
import { MemoryBucket } from '../../../core/store/memory/memory-bucket.js';
import { type MemoryIntercept, MemoryLeaseStore } from '../../../core/store/memory/memory-lease-store.js';
import type { StatusReport } from '../../../node/wire/status-report.js';
import { type StatusRequest, showStatus, statusRequest } from './status-command.js';

const once: StatusRequest = { json: false, watch: false, all: false };
const terminal = { columns: 80, rows: 24, color: false };

/** A cluster, some ids of which are held, and what is asked of its store. */
async function scene(nodes: number, held: readonly number[] = []) {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1);
  let reads = 0;
  const intercept: MemoryIntercept = async (call, apply) => {
    if (call.operation === 'read') {
      reads += 1;
      await clock.sleep(10);
    }
    return apply();
  };
  const client = new MemoryLeaseStore({ clock }, bucket);
  const session = new StoreSession(client.connect(intercept), clock, 60_000);
  const wanted = { nodes, durationMs: 15_000, graceMs: 1_000 };
  await initializeCluster({
    session: new StoreSession(client, clock, 1_000),
    clock,
    random: seededRandom(1),
    wanted,
  });
  const hold = (id: number, knownNodes: Readonly<Record<number, number>> = {}) => {
    const claim = {
      taskId: `task-${id}`,
      nonce: 'n',
      durationMs: 15_000,
      storeNow: 5,
      stampedUntil: 0,
      idWidth: 14,
    };
    const { body, metadata } = nativeCodec.encode({ ...acquired({ kind: 'vacant' }, claim), knownNodes });
    bucket.replace(leaseKey(id), body, metadata, bucket.read(leaseKey(id))?.etag ?? '');
  };
  for (const id of held) hold(id);
  /** Shows the cluster once: what was answered and complained of, and how many objects were read. */
  const status = async (options: Partial<StatusRequest> = {}, screen?: typeof terminal) => {
    const io = capturedIo(screen, clock);
    reads = 0;
    let code: number | undefined;
    const ended = showStatus(
      session,
      { ...once, ...options },
      { ...io, logFormat: screen ? 'plain' : 'json' },
    ).then((exit) => {
      code = exit;
    });
    ended.catch(() => undefined);
    for (let step = 0; step < 1_000 && code === undefined; step += 1) await clock.advance(10);
    await ended;
    return {
      code,
      reads,
      answer: io.answer(),
      lines: io.answer().trimEnd().split('\n'),
      complaints: io.complaints(),
    };
  };
  return { clock, bucket, session, hold, status };
}

describe('nodelease status of a large cluster', () => {
  it('has the most important ids on a terminal, and the totals by a LIST', async () => {
    const { status } = await scene(10_000, [17, 9_876]);
    const { lines, reads } = await status({}, terminal);
    expect(lines.length).toBeLessThan(terminal.rows);
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(terminal.columns);
    expect(lines.some((line) => /^ {2}17 {2}held +1 {2}task-17/.test(line))).toBe(true);
    expect(lines.some((line) => /^9876 {2}held +1 {2}task-9876/.test(line))).toBe(true);
    expect(lines.slice(-2)).toEqual([
      '… 16 of 10000 node ids (--from ID shows those from there on, --all all of them)',
      'by a LIST: held 2, free 9998 (9998 never held), expired 0, damaged 0',
    ]);
    expect(reads).toBe(17);
  });

  it('is the lowest hundred where it is piped, and says how to get to the next', async () => {
    const { status } = await scene(1_000);
    const { lines, reads } = await status();
    expect(lines).toHaveLength(103);
    expect(lines[100]).toMatch(/^99 /);
    expect(lines.slice(-2)).toEqual([
      '… 100 of 1000 node ids (--from 100 shows the next, --all all of them)',
      'by a LIST: held 0, free 1000 (1000 never held), expired 0, damaged 0; duration 15s, grace 1s, node ids 10 bits wide',
    ]);
    expect(reads).toBe(101);
  });

  it('shows as many as were asked for, also where they do not fit the terminal', async () => {
    const { status } = await scene(1_000);
    const { lines, reads } = await status({ from: 900, limit: 40 }, terminal);
    expect(lines.filter((line) => /^9\d\d {2}vacant/.test(line))).toHaveLength(40);
    expect(reads).toBe(41);
  });

  it('shows the held ones only to who wants those', async () => {
    const { status } = await scene(1_000, [3, 999]);
    const { lines } = await status({ only: 'held' });
    expect(lines.slice(1, -2).map((line) => line.trim().split(/ +/)[0])).toEqual(['3', '999']);
    expect((await status({ only: 'held', all: true })).lines.slice(1, -1)).toHaveLength(2);
  });

  it('says how to get to the next of the held ones on a terminal, too', async () => {
    const held = Array.from({ length: 40 }, (_, index) => index * 20);
    const { status } = await scene(1_000, held);
    const first = await status({ only: 'held' }, terminal);
    expect(first.lines.at(-2)).toBe('… 16 of 1000 node ids (--from 320 shows the next, --all all of them)');
    const next = await status({ only: 'held', from: 320 }, terminal);
    const shown = [first, next].flatMap(({ lines }) =>
      lines.filter((line) => line.includes('task-')).map((line) => line.trim().split(/ +/)[0]),
    );
    expect(shown).toEqual(held.slice(0, 32).map(String));
  });

  it('states in JSON what it has read, and of everything how many there are', async () => {
    const { status, hold } = await scene(1_000, [3]);
    hold(5, { 3: 9, 7: 0, 900: 2 });
    const report = JSON.parse((await status({ json: true })).answer) as StatusReport;
    expect(Object.keys(report)).toEqual([
      'store',
      'cluster',
      'nodes',
      'discovery',
      'allocation',
      'draining',
      'totals',
      'page',
    ]);
    expect(report.nodes).toHaveLength(100);
    expect(report.page).toEqual({ from: 0, limit: 100, next: 100 });
    expect(report.totals).toEqual({
      ...{ hints: true, held: 2, expired: 0, free: 998, neverHeld: 998 },
      ...{ evicted: null, damaged: 0, retired: 0 },
    });
    // Of a lease that was not read, it is not known whether it is right.
    expect(report.nodes[5]?.knownNodes).toEqual({ 3: 9 });
  });

  it('is everything in JSON for who asks for all, without what everybody knows', async () => {
    const { status, hold } = await scene(1_000);
    const known = Object.fromEntries(Array.from({ length: 1_000 }, (_, id) => [id, id === 500 ? 0 : 1]));
    for (let id = 0; id < 1_000; id += 1) hold(id, known);
    const { answer, reads, complaints } = await status({ json: true, all: true });
    const report = JSON.parse(answer) as StatusReport;
    expect(report.nodes).toHaveLength(1_000);
    expect([report.page, report.totals?.hints, report.totals?.held]).toEqual([null, false, 1_000]);
    expect(report.nodes[0]?.knownNodes).toEqual({ 500: 0 });
    expect(reads).toBe(1_001);
    expect(complaints).toBe('');
  });

  it('shows on a terminal how far it is while it reads everything', async () => {
    const { status } = await scene(10_000);
    const { complaints, lines } = await status({ all: true }, terminal);
    expect(complaints).toMatch(/\rreading lease objects \[#+\.+\] \d+ of 10000, \d+\/s, \d+\.\ds left/);
    expect(complaints).toMatch(/\r +\r$/);
    expect(lines).toHaveLength(10_002);
  });

  it('refuses pages that are none, and those beyond the cluster', async () => {
    const { status } = await scene(1_000);
    for (const from of ['-1', '65528', 'x', '']) expect(() => statusRequest({ from })).toThrow('--from');
    for (const limit of ['0', '10001', '1.5']) expect(() => statusRequest({ limit })).toThrow('--limit');
    expect(statusRequest({})).toMatchObject({ from: undefined, limit: undefined });
    expect(statusRequest({ from: '0', limit: '10000' })).toMatchObject({ from: 0, limit: 10_000 });
    await expect(status({ from: 1_000 })).rejects.toThrow(ConfigError);
  });

  it('reads again in a watch only what was written', async () => {
    const { session, clock, hold } = await scene(10_000, [1]);
    const io = capturedIo(terminal, clock);
    const ended = showStatus(session, { ...once, watch: true }, io);
    await clock.advance(500);
    expect(io.answer()).toContain('task-1');
    const before = session.requests;
    await clock.advance(3_000);
    expect(session.requests - before).toBe(3);
    hold(4_000);
    await clock.advance(1_000);
    expect(session.requests - before).toBe(5);
    expect(io.answer()).toContain('task-4000');
    io.signals.emit('SIGINT');
    await ended;
  });
});

describe('nodelease status of a cluster that has shrunk', () => {
  it('names the holders of ids that it has given up, and counts the ones without a holder', async () => {
    const { status, bucket, hold } = await scene(30);
    const config = {
      ...newCluster({ nodes: 4, durationMs: 15_000, graceMs: 1_000 }),
      bootstrapped: true,
      generation: 1,
      peak: 30,
    };
    bucket.replace('cluster.json', encodeCluster(config), {}, bucket.read('cluster.json')?.etag ?? '');
    for (let id = 4; id < 30; id += 1) {
      const { body, metadata } = nativeCodec.encode(retired({ kind: 'vacant' }, 1));
      if (id % 2 === 0) bucket.replace(leaseKey(id), body, metadata, bucket.read(leaseKey(id))?.etag ?? '');
      else hold(id);
    }
    const { lines } = await status();
    expect(lines).toHaveLength(7);
    expect(lines.slice(-2)).toEqual([
      "draining: 13 node ids beyond the cluster's size held still: 5 (task-5), 7 (task-7), 9 (task-9), 11 (task-11), 13 (task-13), " +
        '15 (task-15), 17 (task-17), 19 (task-19) and 5 more',
      'held 0, free 4, expired 0, damaged 0, retired 13; duration 15s, grace 1s, node ids 8 bits wide',
    ]);
    const small = await status({}, { ...terminal, columns: 60, rows: 6 });
    expect(small.lines).toHaveLength(5);
    expect(Math.max(...small.lines.map(({ length }) => length))).toBeLessThanOrEqual(60);
    const report = JSON.parse((await status({ json: true })).answer) as StatusReport;
    expect(report.draining).toHaveLength(13);
    expect(report.draining[0]).toEqual({ id: 5, version: 1, taskId: 'task-5' });
    expect(report.nodes).toHaveLength(4);
  });
});
