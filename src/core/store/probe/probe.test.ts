import { describe, expect, it } from 'vitest';
import { timeless } from '../../../../test/support/timeless-store.js';
import { systemClock, systemRandom } from '../../base/system.js';
import { type LeaseStore, StoreError } from '../lease-store.js';
import { MemoryBucket } from '../memory/memory-bucket.js';
import { MemoryLeaseStore } from '../memory/memory-lease-store.js';
import { observedAge } from '../observed-age.js';
import { probeStore } from './probe.js';

const quickly = { clock: systemClock, random: systemRandom, watchAgeMs: 0 };

describe('the probe of a store that is not S3', () => {
  it('finds no fault in one that keeps its promises, and leaves nothing behind', async () => {
    const store = new MemoryLeaseStore({ clock: systemClock });
    const report = await probeStore(store, quickly);
    expect(report.checks.filter(({ status }) => status !== 'ok')).toEqual([]);
    expect(report.ok).toBe(true);
    expect((await store.list()).objects).toEqual([]);
  });

  it.each([false, true])(
    'has patience with one that fails the first write of each key, which is applied: %s',
    async (isApplied) => {
      const seen = new Set<string>();
      const store = new MemoryLeaseStore({
        clock: systemClock,
        intercept: async (call, apply) => {
          if (!('key' in call) || !('body' in call) || seen.has(call.key)) return apply();
          seen.add(call.key);
          if (isApplied) apply();
          throw new StoreError('slow down', { fault: 'unavailable', outcome: 'unknown' });
        },
      });
      expect((await probeStore(store, quickly)).ok).toBe(true);
    },
  );

  it('names a broken condition in the words of stores, not of S3', async () => {
    const report = await probeStore(careless(new MemoryLeaseStore({ clock: systemClock })), quickly);
    expect(report.ok).toBe(false);
    const faults = report.checks
      .filter(({ status }) => status === 'fault')
      .map(({ id, detail }) => `${id}: ${detail}`);
    expect(faults).toEqual([
      'replace-bogus: ignores replace-if-unchanged: a replace with a wrong etag was accepted',
      'replace-stale: ignores replace-if-unchanged: a replace with a stale etag was accepted',
      'races: replace-if-unchanged is not atomic: 12 of 12 races were lost, the first one since 8 of 8 concurrent writes were accepted',
    ]);
  });

  it.each([
    ['trusts', false, 'as old as it has been seen unchanged'],
    ['refuses', true, 'gives a content that comes back its old etag'],
  ])(
    '%s one without times of writing, where a content that comes back has its old etag: %s',
    async (_, isRepeating, detail) => {
      const etagOf = (body: string) => (isRepeating ? body : systemRandom.hex(12));
      const memory = new MemoryLeaseStore({ clock: systemClock }, new MemoryBucket(systemClock, 0, etagOf));
      const report = await probeStore(observedAge(timeless(memory), systemClock), quickly);
      const age = report.checks.find(({ id }) => id === 'age');
      expect(report.ok).toBe(!isRepeating);
      expect(age?.detail).toContain(detail);
    },
  );

  it('refuses one whose ages are not even observed: no lease would ever expire', async () => {
    const report = await probeStore(timeless(new MemoryLeaseStore({ clock: systemClock })), quickly);
    expect(report.checks.find(({ status }) => status === 'fault')?.detail).toContain(
      'tells no age of an object just written',
    );
  });

  it('lets as many writers race as configured', async () => {
    let replaces = 0;
    const inner = new MemoryLeaseStore({ clock: systemClock });
    const store = careless(inner, () => {
      replaces++;
    });
    const report = await probeStore(store, { ...quickly, writers: 3 });
    expect(report.checks.find(({ id }) => id === 'races')?.detail).toContain('3 of 3');
    expect(replaces).toBeGreaterThan(3);
  });

  it('leaves nothing behind of a write that was under way when it was interrupted', async () => {
    const inner = new MemoryLeaseStore({ clock: systemClock });
    const interrupt = new AbortController();
    const store: LeaseStore = Object.create(inner, {
      create: {
        // As on a file system: what was begun continues after the abort.
        value: async (key: string, body: string, metadata: Record<string, string>) => {
          interrupt.abort(new Error('interrupted'));
          await systemClock.sleep(20);
          return inner.create(key, body, metadata);
        },
      },
      discardProbe: { value: (key: string) => inner.discardProbe(key) },
    });
    await expect(probeStore(store, { ...quickly, signal: interrupt.signal })).rejects.toThrow('interrupted');
    await systemClock.sleep(40);
    expect((await inner.list()).objects).toEqual([]);
  });

  it('gives up the clean-up of a store that removes one object and then none', async () => {
    let removals = 0;
    const store = new MemoryLeaseStore({
      clock: systemClock,
      intercept: async ({ operation }, apply) => {
        if (operation === 'discardProbe') removals += 1;
        if (removals > 1 && operation === 'discardProbe')
          throw new StoreError('denied', { fault: 'denied', outcome: 'not-applied' });
        return apply();
      },
    });
    const report = await probeStore(store, { ...quickly, rounds: 40 });
    expect((await store.list()).objects.length).toBeGreaterThan(30);
    expect(report.checks.at(-1)).toMatchObject({ id: 'clean-up', status: 'warning' });
    // One success, eight failures in a row, and the seven removals that were under way by then.
    expect(removals).toBeLessThanOrEqual(16);
  });
});

/** A store that replaces whatever there is. */
function careless(inner: LeaseStore, onReplace = () => {}): LeaseStore {
  return {
    url: 'file:leases',
    remote: false,
    pollMs: inner.pollMs,
    timeStepMs: inner.timeStepMs,
    read: (key, options) => inner.read(key, options),
    list: (options) => inner.list(options),
    create: (key, body, metadata, options) => inner.create(key, body, metadata, options),
    replace: async (key, body, metadata, etag, options) => {
      onReplace();
      for (;;) {
        const current = await inner.read(key);
        const result = await inner.replace(key, body, metadata, current?.etag ?? etag, options);
        if (result.status === 'written' || current === undefined) return result;
      }
    },
    discardProbe: (key, options) => inner.discardProbe(key, options),
    close: () => inner.close(),
  };
}
