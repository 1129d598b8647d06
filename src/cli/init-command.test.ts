import { describe, expect, it } from 'vitest';
import { capturedIo } from '../../test/support/captured-io.js';
import { seededRandom, VirtualClock } from '../../test/support/virtual-clock.js';
import { StoreUnusableError } from '../errors.js';
import { acquireLease } from '../lease/acquire-lease.js';
import { StoreSession } from '../lease/store-session.js';
import { MemoryBucket } from '../store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../store/memory/memory-lease-store.js';
import { initialize, parseAboveVersion, repair } from './init-command.js';

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
    return { code, answer: io.answer().slice(before.answer), complaints: io.complaints().slice(before.complaints) };
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
  for (let step = 0; step < 100 && !ended; step += 1) await clock.advance(100);
  return watched;
}

describe('nodelease init', () => {
  it('says what it created, and the next time that there is nothing to do', async () => {
    const { session, io, said } = scene();
    expect(await said(initialize(session, settings, io))).toEqual({
      code: 0,
      answer: 'created a cluster of 4 node ids at memory: (duration 15s, grace 1s)\n4 lease objects written\n',
      complaints: '',
    });
    expect(await said(initialize(session, settings, io))).toEqual({
      code: 0,
      answer: 'the cluster at memory: has 4 node ids (duration 15s, grace 1s): nothing to do\n',
      complaints: '',
    });
  });

  it('warns of settings that the stored ones overrule', async () => {
    const { session, io, said } = scene();
    await initialize(session, settings, io);
    expect((await said(initialize(session, { nodes: 9, durationMs: 20_000, graceMs: 1_000 }, io))).complaints.trim().split('\n')).toEqual([
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
    expect(lines[0]).toBe('nodelease: node id 1: lease object is absent although the cluster is bootstrapped');
    expect(lines[1]).toMatch(/^nodelease: node id 3: lease object is not JSON/);
    expect(lines[2]).toContain('nodelease init --repair');
    expect(complaints).not.toContain('\x1b');
    expect(bucket.read('3.json')?.body).toBe('gar\x1bbage');
  });

  it('refuses a remote store that ignores conditions, before it has written anything that lasts', async () => {
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
    expect(bucket.list().objects).toEqual([]);
  });

  it('creates a cluster in a remote store that keeps its conditions, and leaves no scratch object there', async () => {
    const clock = new VirtualClock();
    const bucket = new MemoryBucket(clock, 1_000);
    const session = new StoreSession(new MemoryLeaseStore({ clock, remote: true }, bucket), clock, 1_000);
    expect(await inTime(clock, initialize(session, settings, capturedIo(undefined, clock)))).toBe(0);
    expect(bucket.list().objects.map(({ key }) => key)).toEqual(['0.json', '1.json', '2.json', '3.json', 'cluster.json']);
  });
});

describe('nodelease init --repair', () => {
  it('says of each damaged object at which version it is restored', async () => {
    const { session, io, bucket, clock, said } = scene();
    await initialize(session, settings, io);
    const lease = await acquireLease({ store: session.store, clock, random: seededRandom(1), taskId: 'task' });
    lease.setKnownNodes({ 1: 41 });
    await clock.advance(5_000);
    bucket.remove('1.json');
    expect(await said(repair(session, undefined, io))).toEqual({
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
    expect(complaints).toMatch(/^nodelease: node id 1: lease object is absent: not restored, .* add --above-version N.*\n$/);
    expect(await said(repair(session, 9, io))).toEqual({
      code: 0,
      answer: 'node id 1: lease object is absent: restored at version 10\n',
      complaints: '',
    });
    expect((await said(repair(session, 9, io))).answer).toMatch(/nothing to do/);
  });

  it('fails where there is no cluster', async () => {
    const { session, io } = scene();
    await expect(repair(session, undefined, io)).rejects.toThrow(/there is no cluster/);
  });

  it('takes a whole number as --above-version and nothing else', () => {
    expect(parseAboveVersion(undefined)).toBeUndefined();
    expect(parseAboveVersion('7')).toBe(7);
    for (const text of ['', '-1', '1.5', 'x', '1e3', '9999999999999999']) expect(() => parseAboveVersion(text)).toThrow(/--above-version/);
  });
});
