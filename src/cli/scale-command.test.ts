import { describe, expect, it } from 'vitest';
import { capturedIo } from '../../test/support/captured-io.js';
import { seededRandom, settled, VirtualClock } from '../../test/support/virtual-clock.js';
import { acquireLease } from '../lease/acquire-lease.js';
import { initializeCluster } from '../lease/initialize.js';
import { nativeCodec } from '../lease/lease-codec.js';
import { acquired } from '../lease/lease-state.js';
import { StoreSession } from '../lease/store-session.js';
import { MemoryBucket } from '../store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../store/memory/memory-lease-store.js';
import { parseSize, parseWaitTimeout, scale } from './scale-command.js';

async function scene(nodes = 3) {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1);
  const store = new MemoryLeaseStore({ clock }, bucket);
  const session = new StoreSession(store, clock, 1_000);
  if (nodes > 0) {
    await initializeCluster({ session, clock, random: seededRandom(1), wanted: { nodes, durationMs: 15_000, graceMs: 1_000 } });
  }
  return { clock, bucket, store, session, io: capturedIo(undefined, clock) };
}

/** A holder of an id that neither renews nor reads the settings. */
function deaf({ bucket, clock }: Awaited<ReturnType<typeof scene>>, id: number, taskId: string, idWidth: number): void {
  const claim = { taskId, nonce: 'n', durationMs: 15_000, storeNow: clock.now(), stampedUntil: 0, idWidth };
  const { body, metadata } = nativeCodec.encode(acquired({ kind: 'vacant' }, claim));
  bucket.replace(`${id}.json`, body, metadata, bucket.read(`${id}.json`)?.etag ?? '');
}

const options = { size: 300, waitTimeoutMs: 60_000 };

describe('nodelease scale', () => {
  it('says what the cluster has now, and the second time that there is nothing to do', async () => {
    const { session, io } = await scene();
    expect(await scale(session, { ...options, size: 10 }, io)).toBe(0);
    expect(await scale(session, { ...options, size: 10 }, io)).toBe(0);
    expect(io.answer()).toBe(
      'the cluster at memory: has 10 node ids now, and had 3: 7 lease objects written\n' +
        'the cluster at memory: has 10 node ids already: nothing to do\n',
    );
    expect(io.complaints()).toBe('');
    await expect(scale(session, { ...options, size: 9 }, io)).rejects.toThrow(
      'number of node ids: expected at least 10, which the cluster has: taking node ids away is not offered yet, got 9',
    );
  });

  it('tells on standard error whom it waits for, and when that is over', async () => {
    const { session, store, io, clock } = await scene();
    const lease = await acquireLease({ store, clock, random: seededRandom(1), taskId: 'holder' });
    const ended = scale(session, options, io);
    await settled();
    expect(io.complaints()).toBe('nodelease: waiting for 1 holder to make unique ids with 9 bits for the node id: 0 (holder, 8 bits)\n');
    expect(io.answer()).toBe('');
    await clock.advance(8_000);
    expect(await ended).toBe(0);
    expect(io.complaints()).toMatch(/\nnodelease: every holder makes unique ids with 9 bits for the node id now, after 6\.\ds\n$/);
    expect(io.answer()).toBe(
      'the cluster at memory: has 300 node ids now, and had 3: 297 lease objects written\na node id takes 9 bits in unique ids\n',
    );
    await lease.release();
  });

  it('ends with 75 when that takes too long, naming who did not follow, and goes on when it is called again', async () => {
    const it = await scene();
    const { session, io, clock, bucket } = it;
    deaf(it, 0, 'old', 0);
    deaf(it, 2, 'slow', 8);
    const ended = scale(session, { ...options, waitTimeoutMs: 5_000 }, io);
    await clock.advance(5_500);
    expect(await ended).toBe(75);
    expect(io.answer()).toBe('');
    expect(io.complaints()).toMatch(
      /\nnodelease: the cluster at memory: has 3 node ids still: 2 holders did not go over to 9 bits .*: 0 \(old, does not say\), 2 \(slow, 8 bits\); .* stays published, nodelease scale 300 goes on from there\n$/,
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
      deaf(it, 0, 'old', 0);
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
    expect(it.io.complaints()).toMatch(/waiting for 11 holders .*: 0 \(t0, 8 bits\), .*, 7 \(t7, 8 bits\) and 3 more\n/);
  });

  it('fails with 69 where there is no cluster, and says how to get one', async () => {
    const { session, io, bucket } = await scene(0);
    expect(await scale(session, options, io)).toBe(69);
    expect(io.complaints()).toBe('nodelease: there is no cluster at memory: yet: nodelease init --nodes 300 makes one\n');
    expect(bucket.list().objects).toEqual([]);
  });

  it('understands numbers and times', () => {
    expect([parseSize('1'), parseSize('65528')]).toEqual([1, 65_528]);
    for (const text of ['', '0', '65529', '1e3', '0x10', ' 5']) expect(() => parseSize(text)).toThrow(/^number of node ids: expected/);
    expect([parseWaitTimeout(undefined), parseWaitTimeout('0s'), parseWaitTimeout('90s')]).toEqual([60_000, 0, 90_000]);
  });
});
