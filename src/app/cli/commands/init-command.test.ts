import { describe, expect, it } from 'vitest';
import { capturedIo } from '../../../../test/support/captured-io.js';
import { shardFleet } from '../../../../test/support/shard-fleet.js';
import { seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import { StoreUnusableError } from '../../../core/base/errors.js';
import { acquireLease } from '../../../core/lease/acquire/acquire-lease.js';
import { encodeCluster, newCluster } from '../../../core/lease/model/cluster-config.js';
import { leapt } from '../../../core/lease/model/lease-state.js';
import { StoreSession } from '../../../core/lease/session/store-session.js';
import { StoreError } from '../../../core/store/lease-store.js';
import { MemoryBucket } from '../../../core/store/memory/memory-bucket.js';
import { type MemoryIntercept, MemoryLeaseStore } from '../../../core/store/memory/memory-lease-store.js';
import { SHARDS_KEY } from '../../../node/shards/shard-map.js';
import type { Io } from '../../kit/io.js';
import { runCommandLine } from './command-line.js';
import { initialize, repair } from './init-command.js';

const settings = { nodes: 4, durationMs: 15_000, graceMs: 1_000 };

function scene(store?: MemoryLeaseStore) {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1);
  const session = new StoreSession(store ?? new MemoryLeaseStore({ clock }, bucket), clock, 1_000);
  const io = capturedIo(undefined, clock);
  /** What a command said, and no earlier one. */
  const said = async (command: Promise<number>) => {
    const before = { answer: io.answer().length, complaints: io.complaints().length };
    const code = await command;
    return {
      code,
      answer: io.answer().slice(before.answer),
      complaints: io.complaints().slice(before.complaints),
    };
  };
  return { clock, bucket, session, io, said };
}

/** Moves the clock until the command has ended. */
async function inTime<T>(clock: VirtualClock, command: Promise<T>): Promise<T> {
  let ended = false;
  const watched = command.finally(() => {
    ended = true;
  });
  watched.catch(() => undefined);
  for (let step = 0; step < 1_000 && !ended; step += 1) await clock.advance(100);
  return watched;
}

describe('nodelease init', () => {
  it('says what it created, and the next time that there is nothing to do', async () => {
    const { session, io, said } = scene();
    expect(await said(initialize(session, settings, io))).toEqual({
      code: 0,
      answer:
        'created a cluster of 4 node ids at memory: (duration 15s, grace 1s)\n4 lease objects written\n',
      complaints: '',
    });
    expect(await said(initialize(session, settings, io))).toEqual({
      code: 0,
      answer: 'the cluster at memory: has 4 node ids (duration 15s, grace 1s): nothing to do\n',
      complaints: '',
    });
  });

  it('tries again where the store is busy, also to look at a cluster that exists', async () => {
    const { bucket, clock, session, io, said } = scene();
    await initialize(session, settings, io);
    bucket.remove('2.json');
    const seen = new Set<string>();
    const busy = new MemoryLeaseStore({ clock }, bucket).connect(async (call, apply) => {
      const { size } = seen;
      if (seen.add(JSON.stringify(call)).size === size) return apply();
      throw new StoreError('slow down', { fault: 'unavailable', outcome: 'not-applied' });
    });
    const looking = said(initialize(new StoreSession(busy, clock, 1_000), settings, io));
    expect(await inTime(clock, looking)).toMatchObject({
      code: 69,
      complaints: expect.stringContaining('node id 2: '),
    });
  });

  it('says the same as JSON, damage included', async () => {
    const { bucket, session, io, said } = scene();
    const json = async (command: Promise<number>) => {
      const { code, answer, complaints } = await said(command);
      return { code, report: JSON.parse(answer), complaints };
    };
    const cluster = { store: 'memory:', nodes: 4, durationMs: 15_000, graceMs: 1_000 };
    expect(await json(initialize(session, settings, io, { json: true }))).toEqual({
      code: 0,
      report: { ...cluster, created: true, written: 4, damaged: [] },
      complaints: '',
    });
    bucket.remove('2.json');
    const problem = expect.stringContaining('absent');
    expect(await json(initialize(session, settings, io, { json: true }))).toEqual({
      code: 69,
      report: { ...cluster, created: false, written: 0, damaged: [{ id: 2, problem }] },
      complaints: expect.stringContaining('init --repair'),
    });
    expect(await json(repair(session, undefined, io, { json: true }))).toEqual({
      code: 69,
      report: { store: 'memory:', repairs: [{ id: 2, problem, version: null, kept: 'unknown' }] },
      complaints: expect.stringContaining('--above-version'),
    });
    expect(await json(repair(session, 9, io, { json: true }))).toEqual({
      code: 0,
      report: { store: 'memory:', repairs: [{ id: 2, problem, version: 10, kept: null }] },
      complaints: '',
    });
  });

  it('warns of settings that the stored ones overrule', async () => {
    const { session, io, said } = scene();
    await initialize(session, settings, io);
    expect(
      (await said(initialize(session, { nodes: 9, durationMs: 20_000, graceMs: 1_000 }, io))).complaints
        .trim()
        .split('\n'),
    ).toEqual([
      'nodelease: warning: --nodes 9 is overruled: the cluster exists, and its stored 4 counts',
      'nodelease: warning: --duration 20s is overruled: the cluster exists, and its stored 15s counts',
    ]);
  });

  it('names damaged lease objects, says what helps, and fails', async () => {
    const { session, io, bucket, said } = scene();
    await initialize(session, settings, io);
    bucket.remove('1.json');
    bucket.replace('3.json', 'gar\x1bbage', {}, bucket.read('3.json')?.etag ?? '');
    const { code, complaints } = await said(initialize(session, {}, io));
    expect(code).toBe(69);
    const lines = complaints.trim().split('\n');
    expect(lines).toHaveLength(3);
    expect(lines[0]).toBe(
      'nodelease: node id 1: lease object is absent although the cluster is bootstrapped',
    );
    expect(lines[1]).toMatch(/^nodelease: node id 3: lease object is not JSON/);
    expect(lines[2]).toContain('nodelease init --repair');
    expect(complaints).not.toContain('\x1b');
    expect(bucket.read('3.json')?.body).toBe('gar\x1bbage');
  });

  it('refuses a remote store that ignores conditions, and keeps why for the tasks that come after it, and nothing else', async () => {
    const clock = new VirtualClock();
    const bucket = new MemoryBucket(clock, 1);
    // Each replace is made to carry the present etag, so that none is refused.
    const careless = new (class extends MemoryLeaseStore {
      override async replace(key: string, body: string, metadata: Readonly<Record<string, string>>) {
        return bucket.replace(key, body, metadata, bucket.read(key)?.etag ?? '');
      }
    })({ clock, remote: true }, bucket);
    const session = new StoreSession(careless, clock, 1_000);
    const refused = inTime(clock, initialize(session, settings, capturedIo(undefined, clock)));
    await expect(refused).rejects.toThrow(/cannot be trusted with leases: .*a stale etag was accepted/);
    await expect(refused).rejects.toBeInstanceOf(StoreUnusableError);
    expect(bucket.list().objects.map(({ key }) => key)).toEqual(['cluster.json']);
    expect(bucket.read('cluster.json')?.body).toMatch(/"proofFailed":".*a stale etag was accepted/);
    const task = acquireLease({ store: careless, clock, random: seededRandom(1), taskId: 'task' });
    await expect(task).rejects.toThrow(/an earlier probe has found: .*a stale etag was accepted/);
  });

  it('creates a cluster in a remote store that keeps its conditions, and leaves no scratch object there', async () => {
    const clock = new VirtualClock();
    const bucket = new MemoryBucket(clock, 1_000);
    const session = new StoreSession(new MemoryLeaseStore({ clock, remote: true }, bucket), clock, 1_000);
    expect(await inTime(clock, initialize(session, settings, capturedIo(undefined, clock)))).toBe(0);
    expect(bucket.list().objects.map(({ key }) => key)).toEqual([
      '0.json',
      '1.json',
      '2.json',
      '3.json',
      'cluster.json',
    ]);
  });
});

describe('nodelease init --repair', () => {
  it('says of each damaged object at which version it is restored', async () => {
    const { session, io, bucket, clock, said } = scene();
    await initialize(session, settings, io);
    const lease = await acquireLease({
      store: session.store,
      clock,
      random: seededRandom(1),
      taskId: 'task',
    });
    lease.setKnownNodes({ 1: 7 });
    await clock.advance(5_000);
    bucket.remove('1.json');
    expect(await said(repair(session, 41, io))).toEqual({
      code: 0,
      answer: 'node id 1: lease object is absent: restored at version 42\n',
      complaints: '',
    });
    await lease.release();
  });

  it('says which objects it knows no version of, what to add, and fails until that is done', async () => {
    const { session, io, bucket, said } = scene();
    await initialize(session, settings, io);
    bucket.remove('1.json');
    const { code, complaints } = await said(repair(session, undefined, io));
    expect(code).toBe(69);
    expect(complaints).toMatch(
      /^nodelease: node id 1: lease object is absent: not restored, .* add --above-version N.* \[CLUSTER_DAMAGED\]\n$/,
    );
    expect(await said(repair(session, 9, io))).toEqual({
      code: 0,
      answer: 'node id 1: lease object is absent: restored at version 10\n',
      complaints: '',
    });
    expect((await said(repair(session, 9, io))).answer).toMatch(/nothing to do/);
  });

  it('restores above a version of a store that has gone back, which is made of the time', async () => {
    const { session, io, bucket, said } = scene();
    await initialize(session, settings, io);
    bucket.remove('1.json');
    const version = leapt(0, Date.UTC(2100, 0));
    const words = ['init', '--repair', '--above-version', String(version), '--store', 'memory:'];
    // There is no cluster: the version has passed.
    expect(await runCommandLine(words, { ...io, env: {} }, '1.2.3')).toBe(69);
    expect((await said(repair(session, version, io))).answer).toContain(
      `restored at version ${version + 1}\n`,
    );
  });

  it('mends the map of shards after the leases, and names the nodes that it waits for', async () => {
    const fleet = shardFleet({ count: 4 });
    await fleet.task();
    const crashed = await fleet.task();
    await fleet.clock.advance(40_000);
    crashed.network.fault = () => new Promise(() => undefined);
    fleet.bucket.remove(SHARDS_KEY);
    const io = capturedIo(undefined, fleet.clock);
    expect(await inTime(fleet.clock, repair(fleet.session(), undefined, io, { json: true }))).toBe(0);
    expect(JSON.parse(io.answer())).toEqual({
      store: 'memory:',
      shards: { problem: 'is gone', epoch: expect.any(Number) },
      repairs: [],
    });
    const waits = io.complaints().trimEnd().split('\n');
    expect(waits.at(-1)).toBe(
      'nodelease: shards.json: no shard runs until all nodes have stopped theirs: waiting for node id ' +
        `${crashed.lease.id}; nodelease release ID --force ends the wait for a node that hangs`,
    );
    expect(await repair(fleet.session(), undefined, io)).toBe(0);
    expect(io.answer()).toContain('no lease object at memory: is damaged: nothing to do\n');
    fleet.bucket.remove(SHARDS_KEY);
    await inTime(fleet.clock, repair(fleet.session(), undefined, io));
    expect(io.answer()).toMatch(/shards\.json is gone: mended, from epoch \d{16} on\n/);
  });

  it('leaves the map of shards as it is while a lease object cannot be restored', async () => {
    const fleet = shardFleet({ count: 4, nodes: 3 });
    await fleet.task();
    await fleet.clock.advance(40_000);
    fleet.bucket.remove(SHARDS_KEY);
    fleet.bucket.remove('2.json');
    const io = capturedIo(undefined, fleet.clock);
    expect(await inTime(fleet.clock, repair(fleet.session(), undefined, io))).toBe(69);
    expect(fleet.bucket.read(SHARDS_KEY)).toBeUndefined();
    expect(fleet.running()).toBe(4);
  });

  it('fails where there is no cluster', async () => {
    const { session, io } = scene();
    await expect(repair(session, undefined, io)).rejects.toThrow(/There is no cluster/);
  });
});

describe('nodelease init of a large cluster', () => {
  /** A store each write to which takes 10 ms. */
  function slowScene(logFormat: Io['logFormat']) {
    const clock = new VirtualClock();
    const bucket = new MemoryBucket(clock, 1);
    const asked: string[] = [];
    let underWay = { now: 0, most: 0 };
    const intercept: MemoryIntercept = async (call, apply) => {
      asked.push(call.operation);
      if (call.operation !== 'create') return apply();
      underWay = { now: underWay.now + 1, most: Math.max(underWay.most, underWay.now + 1) };
      await clock.sleep(10);
      underWay.now -= 1;
      return apply();
    };
    const session = new StoreSession(new MemoryLeaseStore({ clock, intercept }, bucket), clock, 60_000);
    const io = { ...capturedIo({ columns: 80, rows: 24, color: false }, clock), logFormat };
    return { clock, bucket, session, io, asked, most: () => underWay.most };
  }

  const many = { ...settings, nodes: 10_000 };

  it('shows how far it is on a terminal, and leaves nothing of that behind', async () => {
    const { clock, session, io, most } = slowScene('plain');
    expect(await inTime(clock, initialize(session, many, io))).toBe(0);
    expect(io.complaints()).toMatch(/\rwriting lease objects \[#+\.+\] \d+ of 10000, \d+\/s, \d+\.\ds left/);
    expect(io.complaints()).toMatch(/\r +\r$/);
    expect(io.answer()).toContain('10000 lease objects written\n');
    expect(most()).toBe(16);
  });

  it('says every few seconds how far it is in a log', async () => {
    const { clock, session, io } = slowScene('json');
    await inTime(clock, initialize(session, many, io));
    expect(io.complaints()).toMatch(
      /^nodelease: writing lease objects: 8\d\d\d of 10000, 1\d\d\d\/s, \d\.\ds left\n$/,
    );
  });

  it('ends at once when it is interrupted, gives the signals back, and goes on from there the next time', async () => {
    const { clock, session, io, bucket, asked } = slowScene('plain');
    const ended = initialize(session, many, io);
    ended.catch(() => undefined);
    await clock.advance(2_000);
    io.signals.emit('SIGINT');
    await expect(ended).rejects.toThrow('interrupted by SIGINT');
    expect(io.complaints()).toMatch(/\r +\r$/);
    expect(io.signals.listenerCount('SIGINT')).toBe(0);
    await clock.advance(1_000);
    const written = bucket.list().objects.length - 1;
    expect(written).toBeGreaterThan(1_000);
    expect(written).toBeLessThan(9_000);
    asked.length = 0;
    expect(await inTime(clock, initialize(session, many, io))).toBe(0);
    expect(asked.filter((operation) => operation === 'create')).toHaveLength(10_000 - written);
    expect(io.answer()).toContain(`${10_000 - written} lease objects written\n`);
  });

  it('waits for a LIST longer than for anything else: it may have many pages', async () => {
    const clock = new VirtualClock();
    const intercept: MemoryIntercept = async (call, apply) => {
      if (call.operation === 'list') await clock.sleep(20_000);
      return apply();
    };
    const session = new StoreSession(new MemoryLeaseStore({ clock, intercept }), clock, 1_000);
    const io = capturedIo(undefined, clock);
    expect(await inTime(clock, initialize(session, settings, io))).toBe(0);
  });

  it('names the first hundred of many that are damaged, and counts the others', async () => {
    const { session, io, bucket, said } = scene();
    await initialize(session, { ...settings, nodes: 1_000 }, io);
    for (let id = 300; id < 600; id += 1) bucket.remove(`${id}.json`);
    const { code, complaints } = await said(initialize(session, { ...settings, nodes: 1_000 }, io));
    expect(code).toBe(69);
    const lines = complaints.trimEnd().split('\n');
    expect(lines).toHaveLength(102);
    expect(lines.slice(-3)).toEqual([
      'nodelease: node id 399: lease object is absent although the cluster is bootstrapped',
      'nodelease: and 200 more',
      'nodelease: 300 of 1000 node ids cannot be used: nodelease init --repair restores them [CLUSTER_DAMAGED]',
    ]);
  });

  it('finds damage also among the ids that the cluster had before it shrank', async () => {
    const { session, io, bucket, said } = scene();
    const config = { ...newCluster({ ...settings, nodes: 2 }), bootstrapped: true, generation: 1, peak: 4 };
    bucket.create('cluster.json', encodeCluster(config), {});
    for (const id of [0, 1, 2]) bucket.create(`${id}.json`, '', {});
    const { code, complaints } = await said(initialize(session, { ...settings, nodes: 2 }, io));
    expect(code).toBe(69);
    expect(complaints).toContain(
      'nodelease: node id 3: lease object is absent although the cluster had this node id\n',
    );
  });
});
