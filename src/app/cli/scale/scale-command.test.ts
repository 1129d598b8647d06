import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { capturedIo } from '../../../../test/support/captured-io.js';
import { runInProcess } from '../../../../test/support/in-process.js';
import {
  inVirtualTime,
  seededRandom,
  settled,
  VirtualClock,
} from '../../../../test/support/virtual-clock.js';
import { ConfigError } from '../../../core/base/errors.js';
import { systemClock } from '../../../core/base/system.js';
import { acquireLease } from '../../../core/lease/acquire/acquire-lease.js';
import { nativeCodec } from '../../../core/lease/model/lease-codec.js';
import { acquired } from '../../../core/lease/model/lease-state.js';
import { initializeCluster } from '../../../core/lease/operate/initialize.js';
import { StoreSession } from '../../../core/lease/session/store-session.js';
import { StoreError } from '../../../core/store/lease-store.js';
import { MemoryBucket } from '../../../core/store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../../../core/store/memory/memory-lease-store.js';
import type { Settings } from '../../settings/settings.js';
import { runCommandLine } from '../commands/command-line.js';
import { scale, scaleCommand, scaleProgress, scaleTarget } from './scale-command.js';

async function scene(nodes = 3) {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1);
  const store = new MemoryLeaseStore({ clock }, bucket);
  const session = new StoreSession(store, clock, 1_000);
  if (nodes > 0) {
    await initializeCluster({
      session,
      clock,
      random: seededRandom(1),
      wanted: { nodes, durationMs: 15_000, graceMs: 1_000 },
    });
  }
  return { clock, bucket, store, session, io: capturedIo(undefined, clock) };
}

/** A holder of an id that neither renews nor reads the settings. */
function deaf(
  { bucket, clock }: Awaited<ReturnType<typeof scene>>,
  id: number,
  taskId: string,
  idWidth: number,
): void {
  const claim = { taskId, nonce: 'n', durationMs: 15_000, storeNow: clock.now(), stampedUntil: 0, idWidth };
  const { body, metadata } = nativeCodec.encode(acquired({ kind: 'vacant' }, claim));
  bucket.replace(`${id}.json`, body, metadata, bucket.read(`${id}.json`)?.etag ?? '');
}

const options = { size: 300, waitTimeoutMs: 60_000, drainTimeoutMs: 600_000, json: false };

describe('nodelease scale', () => {
  it('asks a store that is busy again, also before it looks for fixed node ids', async () => {
    const { session, store, io, clock } = await scene();
    const read = store.read.bind(store);
    let isBusy = true;
    store.read = async (key, call) => {
      if (!isBusy) return read(key, call);
      isBusy = false;
      throw new StoreError('busy', { fault: 'unavailable', outcome: 'not-applied' });
    };
    const scaling = scale(session, { ...options, size: 10 }, io, async () => undefined);
    expect(await inVirtualTime(clock, scaling)).toBe(0);
  });

  it('says what the cluster has now, and the second time that there is nothing to do', async () => {
    const { session, io } = await scene();
    expect(await scale(session, { ...options, size: 10 }, io)).toBe(0);
    expect(await scale(session, { ...options, size: 10 }, io)).toBe(0);
    expect(io.answer()).toBe(
      'the cluster at memory: has 10 node ids now, and had 3: 7 lease objects written\n' +
        'the cluster at memory: has 10 node ids already: nothing to do\n',
    );
    expect(io.complaints()).toBe('');
  });

  it('says the same as JSON', async () => {
    const { session, io } = await scene();
    expect(await scale(session, { ...options, size: 10, json: true }, io)).toBe(0);
    expect(JSON.parse(io.answer())).toEqual({
      ...{ store: 'memory:', from: 3, to: 10, idWidth: 8, widened: false },
      ...{ created: 7, reopened: 0, retired: 0, forced: [], damaged: [] },
    });
  });

  it('says on standard error which holders it waits for, and when that is over', async () => {
    const { session, store, io, clock } = await scene();
    const lease = await acquireLease({ store, clock, random: seededRandom(1), taskId: 'holder' });
    const ended = scale(session, options, io);
    await settled();
    expect(io.complaints()).toBe(
      'nodelease: waiting for 1 holder to make unique ids with 9 bits for the node id: 0 (holder, 8 bits)\n',
    );
    expect(io.answer()).toBe('');
    await clock.advance(8_000);
    expect(await ended).toBe(0);
    expect(io.complaints()).toMatch(
      /\nnodelease: every holder makes unique ids with 9 bits for the node id now, after 6\.\ds\n$/,
    );
    expect(io.answer()).toBe(
      'the cluster at memory: has 300 node ids now, and had 3: 297 lease objects written\na node id takes 9 bits in unique ids\n',
    );
    await lease.release();
  });

  it('ends with 75 when that takes too long, naming who did not follow, and goes on when it is called again', async () => {
    const it = await scene();
    const { session, io, clock, bucket } = it;
    deaf(it, 0, 'old', 8);
    deaf(it, 2, 'slow', 8);
    const ended = scale(session, { ...options, waitTimeoutMs: 5_000 }, io);
    await clock.advance(5_500);
    expect(await ended).toBe(75);
    expect(io.answer()).toBe('');
    expect(io.complaints()).toMatch(
      /\nnodelease: the cluster at memory: has 3 node ids still: 2 holders did not go over to 9 bits .*: 0 \(old, 8 bits\), 2 \(slow, 8 bits\); .* stays published, nodelease scale 300 goes on from there \[WAIT_TIMEOUT\]\n$/,
    );
    expect(JSON.parse(bucket.read('cluster.json')?.body ?? '')).toMatchObject({ size: 3, idWidth: 9 });
    await clock.advance(20_000);
    expect(await scale(session, options, io)).toBe(0);
    expect(io.answer()).toMatch(/has 300 node ids now/);
  });

  it.each(['SIGINT', 'SIGTERM'])(
    'can be interrupted by %s while it waits, and leaves the cluster as it was but for the width',
    async (signal) => {
      const it = await scene();
      const { session, io, clock, bucket } = it;
      deaf(it, 0, 'old', 8);
      const ended = scale(session, options, io);
      await clock.advance(1_000);
      io.signals.emit(signal);
      await expect(ended).rejects.toMatchObject({ name: 'Interrupted', signal });
      expect(clock.sleepers).toBe(0);
      expect(io.signals.eventNames()).toEqual([]);
      expect(JSON.parse(bucket.read('cluster.json')?.body ?? '')).toMatchObject({ size: 3, idWidth: 9 });
    },
  );

  it('names eight of those it waits for, and counts the others', async () => {
    const it = await scene(20);
    for (let id = 0; id < 11; id += 1) deaf(it, id, `t${id}`, 8);
    expect(await scale(it.session, { ...options, waitTimeoutMs: 0 }, it.io)).toBe(75);
    expect(it.io.complaints()).toMatch(
      /waiting for 11 holders .*: 0 \(t0, 8 bits\), .*, 7 \(t7, 8 bits\) and 3 more\n/,
    );
  });

  it('fails with 69 where there is no cluster, and says how to get one', async () => {
    const { session, io, bucket } = await scene(0);
    expect(await scale(session, options, io)).toBe(69);
    expect(io.complaints()).toBe(
      'nodelease: There is no cluster at memory: yet: nodelease init --nodes 300 creates one, and so does the first nodelease run. If there was one, start nothing: its data is missing. [CLUSTER_MISSING]\n',
    );
    expect(bucket.list().objects).toEqual([]);
  });

  it('takes node ids away that no task holds, and says the second time that there is nothing to do', async () => {
    const { session, io, bucket } = await scene(10);
    expect(await scale(session, { ...options, size: 4 }, io)).toBe(0);
    expect(await scale(session, { ...options, size: 4 }, io)).toBe(0);
    expect(io.answer()).toBe(
      'the cluster at memory: has 4 node ids now, and had 10: 6 lease objects retired\n' +
        'the cluster at memory: has 4 node ids already: nothing to do\n',
    );
    expect(io.complaints()).toBe(
      'nodelease: the cluster has 4 node ids from now on, and had 10: a holder of another one learns of it at its next renewal\n',
    );
    expect(bucket.list().objects).toHaveLength(11);
    expect(await scale(session, { ...options, size: 10 }, io)).toBe(0);
    expect(io.answer()).toMatch(
      /\nthe cluster at memory: has 10 node ids now, and had 4: all lease objects are there\n$/,
    );
  });

  it('waits for the holders of what goes, and names them; no other holder is disturbed', async () => {
    const { session, store, io, clock, bucket } = await scene(3);
    const wanted = { store, clock, random: seededRandom(1), onEvent: () => undefined };
    const staying = await acquireLease({ ...wanted, taskId: 'staying' });
    const going = await acquireLease({ ...wanted, taskId: 'going' });
    const ended = scale(session, { ...options, size: 1 }, io);
    await clock.advance(20_000);
    expect(io.answer()).toBe('');
    expect(io.complaints()).toMatch(
      /had 3: a holder .*\nnodelease: waiting for 1 holder to give a node id back, and for (10m00s|9m59s) at the most: 1 \(going\)\n$/,
    );
    expect([staying.retiring.aborted, going.retiring.aborted, going.isValid()]).toEqual([false, true, true]);
    await going.release();
    await clock.advance(20_000);
    expect(await ended).toBe(0);
    expect(io.answer()).toBe(
      'the cluster at memory: has 1 node id now, and had 3: 2 lease objects retired\n',
    );
    expect(staying.isValid()).toBe(true);
    expect(nativeCodec.decode(bucket.read('1.json')?.body ?? '', {})).toMatchObject({
      kind: 'retired',
      version: 1,
    });
    await staying.release();
  });

  it('takes what is not given back in time by force, and says from whom', async () => {
    const it = await scene(12);
    const { session, io, clock, bucket } = it;
    for (let id = 0; id < 12; id += 1) deaf(it, id, `t${id}`, 8);
    const ended = scale(session, { ...options, size: 2, drainTimeoutMs: 5_000 }, io);
    await clock.advance(6_000);
    expect(await ended).toBe(0);
    expect(io.answer()).toBe(
      'the cluster at memory: has 2 node ids now, and had 12: 10 lease objects retired\n' +
        'taken from their holders by force: 2 (t2), 3 (t3), 4 (t4), 5 (t5), 6 (t6), 7 (t7), 8 (t8), 9 (t9) and 2 more\n',
    );
    expect(io.complaints()).toMatch(
      /waiting for 10 holders to give a node id back, and for 5\.0s at the most: 2 \(t2\), .*, 9 \(t9\) and 2 more\n/,
    );
    expect(io.complaints()).toMatch(
      /\nnodelease: node id 11 is taken away from task t11, which has not given it back in time: .*\n/,
    );
    expect(nativeCodec.decode(bucket.read('11.json')?.body ?? '', {})).toMatchObject({
      kind: 'retired',
      version: 2,
      durationMs: 15_000,
    });
    expect(nativeCodec.decode(bucket.read('1.json')?.body ?? '', {})).toMatchObject({
      kind: 'held',
      taskId: 't1',
      version: 1,
    });
  });

  it('can be interrupted while it waits for them, says what is done already, and goes on when it is called again', async () => {
    const it = await scene(3);
    const { session, io, clock, bucket } = it;
    deaf(it, 2, 'deaf', 8);
    const ended = scale(session, { ...options, size: 2, drainTimeoutMs: 90_000 }, io);
    await clock.advance(3_000);
    io.signals.emit('SIGINT');
    await expect(ended).rejects.toMatchObject({ name: 'Interrupted', signal: 'SIGINT' });
    expect(clock.sleepers).toBe(0);
    const gone =
      'interrupted: the cluster has 2 node ids already, and holders of others know that they are to give them back; ';
    expect(
      io.complaints().endsWith(`nodelease: ${gone}nodelease scale 2 --drain-timeout 90s goes on\n`),
    ).toBe(true);
    expect(nativeCodec.decode(bucket.read('2.json')?.body ?? '', {})).toMatchObject({ kind: 'held' });
    const again = scale(session, { ...options, size: 2 }, io);
    await clock.advance(1_000);
    io.signals.emit('SIGTERM');
    await expect(again).rejects.toMatchObject({ name: 'Interrupted', signal: 'SIGTERM' });
    expect(
      io.complaints().endsWith(`nodelease: ${gone}nodelease scale 2 --drain-timeout 10m goes on\n`),
    ).toBe(true);
    const last = scale(session, { ...options, size: 2 }, io);
    await clock.advance(30_000);
    expect(await last).toBe(0);
    expect(io.answer()).toBe('the cluster at memory: has 2 node ids already: 1 lease object retired\n');
  });

  it('says what is done already where the store goes away on the way down', async () => {
    const it = await scene(3);
    const { session, io, clock } = it;
    deaf(it, 2, 'deaf', 8);
    const down = new StoreError('no answer', { fault: 'denied', outcome: 'not-applied' });
    let isDown = false;
    const store = it.store.connect(async (_call, apply) => {
      if (isDown) throw down;
      return apply();
    });
    const ended = scale(new StoreSession(store, clock, 1_000), { ...options, size: 2 }, io);
    const failed = expect(ended).rejects.toBe(down);
    await clock.advance(3_000);
    isDown = true;
    await clock.advance(3_000);
    await failed;
    const gone =
      'not finished: the cluster has 2 node ids already, and holders of others know that they are to give them back; ';
    expect(
      io.complaints().endsWith(`nodelease: ${gone}nodelease scale 2 --drain-timeout 10m goes on\n`),
    ).toBe(true);
    expect(await scale(session, { ...options, size: 2, drainTimeoutMs: 0 }, io)).toBe(0);
  });

  it('says how many ids that forgotten settings had retired may be acquired again', async () => {
    const { session, io, bucket } = await scene(4);
    const { body, metadata } = nativeCodec.encode({
      ...{ kind: 'retired', version: 3, timestamp: 9, durationMs: 0, stampedUntil: undefined, generation: 2 },
    });
    bucket.replace('3.json', body, metadata, bucket.read('3.json')?.etag ?? '');
    expect(await scale(session, { ...options, size: 4 }, io)).toBe(0);
    expect(io.answer()).toBe(
      'the cluster at memory: has 4 node ids already: 1 retired lease object made acquirable again\n',
    );
  });

  it('leaves a damaged lease object as it is, says so, and ends with 69', async () => {
    const { session, io, bucket } = await scene(4);
    bucket.replace('3.json', '{ not JSON', {}, bucket.read('3.json')?.etag ?? '');
    expect(await scale(session, { ...options, size: 2 }, io)).toBe(69);
    expect(io.answer()).toBe(
      'the cluster at memory: has 2 node ids now, and had 4: 1 lease object retired\n',
    );
    expect(io.complaints()).toMatch(
      /\nnodelease: node id 3: its lease object .*: left as it is \(nodelease init --repair restores it\)\n/,
    );
    expect(io.complaints()).toMatch(
      /\nnodelease: 1 lease object left as damaged: 3; nodelease init --repair restores them \[CLUSTER_DAMAGED\]\n$/,
    );
    expect(bucket.read('3.json')?.body).toBe('{ not JSON');
  });

  it('looks for fixed node ids before anything is written, where there are to be fewer', async () => {
    const { session, io, bucket } = await scene(6);
    const asked: unknown[] = [];
    const refuse = async (ids: readonly [number, number]) => {
      asked.push(ids);
      throw new ConfigError('number of node ids', ids[0], 'at least 6');
    };
    const before = JSON.stringify(bucket.list().objects.map(({ key, etag }) => [key, etag]));
    await expect(scale(session, { ...options, size: 3 }, io, refuse)).rejects.toThrow(
      'number of node ids: expected at least 6, got 3',
    );
    expect(asked).toEqual([[3, 6]]);
    expect(JSON.stringify(bucket.list().objects.map(({ key, etag }) => [key, etag]))).toBe(before);
    expect(await scale(session, { ...options, size: 6 }, io, refuse)).toBe(0);
    expect(await scale(session, { ...options, size: 8 }, io, refuse)).toBe(0);
    expect(asked).toHaveLength(1);
  });

  it('changes nothing, with 69, where ZooKeeper does not answer whether a fixed node id is in use; growing does not ask it', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'nodelease-scale-'));
    const run = (...args: string[]) => runInProcess([...args, '--store', `file:${folder}`]);
    /**
     * Time passes while the command waits for it, twice as fast as it is, so that the files have time, too.
     */
    const runFaster = async (...args: string[]) => {
      const io = capturedIo();
      const command = runCommandLine([...args, '--store', `file:${folder}`], io, '1.2.3');
      let ended = false;
      const watched = command.finally(() => {
        ended = true;
      });
      while (!ended) await Promise.all([io.clock.sleepers > 0 && io.clock.advance(10), systemClock.sleep(5)]);
      return { code: await watched, answer: io.answer(), complaints: io.complaints() };
    };
    try {
      await run('init', '--nodes', '4');
      const contents = async () =>
        Promise.all((await readdir(folder)).map((name) => stat(join(folder, name), { bigint: true })));
      const before = await contents();
      // No program listens there.
      const zookeeper = ['--zookeeper', '127.0.0.1:1'];
      expect(await runFaster('scale', '2', ...zookeeper)).toEqual({
        code: 69,
        answer: '',
        complaints: expect.stringMatching(
          /^nodelease: no check was possible for fixed node ids of 2 and above, and nothing was changed: .* \[ZOOKEEPER_FAILED\]\n$/,
        ),
      });
      expect((await contents()).map(({ mtimeNs, size }) => [mtimeNs, size])).toEqual(
        before.map(({ mtimeNs, size }) => [mtimeNs, size]),
      );
      expect(await run('scale', '6', ...zookeeper)).toMatchObject({ code: 0, complaints: '' });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });

  it('refuses to leave out the node id that is fixed in its own surroundings', () => {
    // A cluster that ZooKeeper keeps is refused after that, before anything is opened.
    const scaled = (size: string, nodeId?: string) => () => {
      const settings = { provider: 'zookeeper' } as Settings;
      const io = { ...capturedIo(), env: { NODELEASE_NODE_ID: nodeId } };
      return scaleCommand({ options: {}, settings, io }, size);
    };
    expect(scaled('9', '9')).toThrow(
      'number of node ids: expected at least 10, for NODELEASE_NODE_ID makes 9 a fixed node id in use, got 9',
    );
    for (const [size, nodeId] of [['10', '9'], ['1', '0'], ['4']] as const)
      expect(scaled(size, nodeId)).toThrow('scale is about lease objects in a store');
  });

  it('reports its progress in few lines, however many node ids and holders there are', () => {
    const clock = new VirtualClock();
    const io = capturedIo(undefined, clock);
    const report = scaleProgress(io);
    report({ type: 'shrunk', from: 60_000, to: 4 });
    for (let retired = 0; retired <= 59_900; retired += 100) {
      clock.freeze(10);
      report({ type: 'retired', retired, total: 59_996 });
      const holders = Array.from({ length: 96 }, (_, index) => ({
        id: 100 + index,
        taskId: 't',
        version: 1,
      }));
      report({ type: 'draining', holders: holders.slice(retired / 1_000), leftMs: 60_000 - retired });
    }
    const lines = io.complaints().split('\n').slice(0, -1);
    expect(lines.length).toBeLessThan(8);
    expect(lines.filter((line) => line.includes('lease objects retired'))).not.toEqual([]);
    expect(lines[1]).toMatch(/^nodelease: waiting for 96 holders/);
  });

  it('understands numbers and times', () => {
    expect(scaleTarget('1', {})).toEqual({ size: 1, waitTimeoutMs: 60_000, drainTimeoutMs: 600_000 });
    expect(scaleTarget('65528', { waitTimeout: 0, drainTimeout: 0 })).toEqual({
      size: 65_528,
      waitTimeoutMs: 0,
      drainTimeoutMs: 0,
    });
    expect(scaleTarget('1', { waitTimeout: 90_000, drainTimeout: 86_400_000 })).toMatchObject({
      waitTimeoutMs: 90_000,
      drainTimeoutMs: 86_400_000,
    });
    for (const text of ['', '0', '65529', '1e3', '0x10', ' 5'])
      expect(() => scaleTarget(text, {})).toThrow(/^number of node ids: expected/);
  });
});
