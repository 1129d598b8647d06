import { describe, expect, it } from 'vitest';
import type { AcquireLeaseOptions } from '../../../src/core/lease/acquire/acquire-lease.js';
import type { Lease, LeaseEvent } from '../../../src/core/lease/model/lease.js';
import { type MemoryIntercept, MemoryLeaseStore } from '../../../src/core/store/memory/memory-lease-store.js';
import { VirtualClock } from '../../support/virtual-clock.js';
import { Dice } from '../world/dice.js';
import { plainProtocol } from './plain-protocol.js';

// What the comparison rests on: the protocol does what its text says, and nothing worse.

const DURATION_MS = 6_000;

class Fleet {
  readonly clock = new VirtualClock();
  readonly store = new MemoryLeaseStore({ clock: this.clock });
  readonly events: LeaseEvent[] = [];

  async acquire(
    taskId: string,
    versionAfterRelease: 'cleared' | 'kept' = 'kept',
    more: Partial<AcquireLeaseOptions> = {},
  ): Promise<Lease> {
    const lease = plainProtocol({ versionAfterRelease }).acquire({
      store: this.store,
      clock: this.clock,
      random: new Dice(1),
      taskId,
      nodes: 2,
      durationMs: DURATION_MS,
      onEvent: (event) => this.events.push(event),
      ...more,
    });
    const [acquired] = await Promise.all([lease, this.clock.advance(0)]);
    return acquired;
  }

  async object(id: number): Promise<{ body: string; metadata: Readonly<Record<string, string>> }> {
    const { body, metadata } = (await this.store.read(`${id}.json`)) ?? { body: 'none', metadata: {} };
    return { body, metadata };
  }
}

/** Ends a lease as a crash does: its client gets no further. */
const dead: MemoryIntercept = () => new Promise(() => undefined);

describe('the plain protocol', () => {
  it('creates an object for every id, takes the first and writes the fields of the text', async () => {
    const fleet = new Fleet();
    const lease = await fleet.acquire('a');
    expect([lease.id, lease.version]).toEqual([0, 1]);
    const timestamp = fleet.clock.now() + DURATION_MS;
    expect(JSON.parse((await fleet.object(0)).body)).toEqual({
      taskId: 'a',
      version: 1,
      timestamp,
      knownNodesMapping: {},
    });
    expect(await fleet.object(1)).toEqual({ body: '', metadata: {} });
    expect((await fleet.acquire('b')).id).toBe(1);
  });

  it('keeps its lease with a renewal every third of the duration', async () => {
    const fleet = new Fleet();
    const lease = await fleet.acquire('a');
    for (let minute = 0; minute < 3; minute += 1) {
      await fleet.clock.advance(60_000);
      expect(lease.isValid()).toBe(true);
    }
    expect(fleet.events.filter(({ type }) => type === 'renewed')).toHaveLength(180_000 / (DURATION_MS / 3));
  });

  it('leaves nothing behind when it releases to the letter, and so begins again at version 1', async () => {
    const fleet = new Fleet();
    await (await fleet.acquire('a', 'cleared')).release();
    expect(await fleet.object(0)).toEqual({ body: '', metadata: {} });
    expect((await fleet.acquire('b', 'cleared')).version).toBe(1);
  });

  it('goes on with the next version where a release keeps it', async () => {
    const fleet = new Fleet();
    await (await fleet.acquire('a', 'kept')).release();
    expect(await fleet.object(0)).toEqual({ body: '', metadata: { version: '1' } });
    expect((await fleet.acquire('b', 'kept')).version).toBe(2);
  });

  it('takes the id of a task that died once its timestamp has passed, and not before', async () => {
    const fleet = new Fleet();
    let cut = false;
    const dying = fleet.store.connect((call, apply) => (cut ? dead(call, apply) : Promise.resolve(apply())));
    await fleet.acquire('a', 'kept', { store: dying, nodes: 1 });
    cut = true;
    let taken: Lease | undefined;
    void fleet.acquire('b', 'kept', { nodes: 1 }).then((lease) => {
      taken = lease;
    });
    await fleet.clock.advance(DURATION_MS);
    expect(taken).toBe(undefined);
    await fleet.clock.advance(1_000);
    expect([taken?.id, taken?.version]).toEqual([0, 2]);
  });

  it('no longer believes in its lease once its own wall clock is past the timestamp, be it after a pause', async () => {
    const fleet = new Fleet();
    const lease = await fleet.acquire('a');
    fleet.clock.freeze(DURATION_MS + 1);
    expect(lease.isValid()).toBe(false);
  });

  it('shuts down at once when its renewal is refused', async () => {
    const fleet = new Fleet();
    const lease = await fleet.acquire('a');
    const object = await fleet.store.read('0.json');
    await fleet.store.replace('0.json', '{"taskId":"b","version":2,"timestamp":1}', {}, object?.etag ?? '');
    await fleet.clock.advance(DURATION_MS / 3);
    expect(lease.signal.aborted).toBe(true);
    expect(lease.isValid()).toBe(false);
  });

  it('shuts down before its timestamp when no renewal gets through, after the three attempts that SDKs make', async () => {
    const fleet = new Fleet();
    let attempts = 0;
    let cut = false;
    const store = fleet.store.connect((call, apply) => {
      if (cut) attempts += 1;
      return cut ? dead(call, apply) : Promise.resolve(apply());
    });
    const lease = await fleet.acquire('a', 'kept', { store });
    cut = true;
    await fleet.clock.advance(DURATION_MS - 1);
    expect(lease.signal.aborted).toBe(true);
    expect(attempts).toBe(3);
  });

  it('gives back what it got when it is asked to end while it acquires', async () => {
    const fleet = new Fleet();
    const ending = new AbortController();
    const store = fleet.store.connect((call, apply) => {
      const reply = apply();
      if (call.operation === 'replace') ending.abort(new Error('asked to end'));
      return Promise.resolve(reply);
    });
    await expect(fleet.acquire('a', 'kept', { store, signal: ending.signal })).rejects.toThrow(
      'asked to end',
    );
    expect(await fleet.object(0)).toEqual({ body: '', metadata: { version: '1' } });
  });
});
