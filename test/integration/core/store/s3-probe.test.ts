import { afterEach, beforeEach, describe, expect, inject, it, vi } from 'vitest';
import type { Clock } from '../../../../src/core/base/clock.js';
import { systemClock, systemRandom } from '../../../../src/core/base/system.js';
import { MemoryLeaseStore } from '../../../../src/core/store/memory/memory-lease-store.js';
import { probeStore } from '../../../../src/core/store/probe/probe.js';
import type { ProbeCheckId, ProbeReport } from '../../../../src/core/store/probe/probe-report.js';
import { openS3Store } from '../../../../src/core/store/s3/open-s3-store.js';
import type { S3LeaseStore } from '../../../../src/core/store/s3/s3-lease-store.js';
import { createBucket } from '../../../support/bucket.js';
import type { S3StandIn } from '../../../support/s3-stand-in.js';
import { standInStore } from '../../../support/stand-in-store.js';

let server: S3StandIn;
let store: S3LeaseStore;
let close: () => Promise<void>;

/**
 * What a request may take at the least before it is given up, in milliseconds: more than any pause of a
 * probe.
 */
const REQUEST_TIMEOUT_MS = 5_000;

/**
 * A clock by which a pause is over at once, and later by its length, for the stand-in as well. What limits a
 * request takes its time.
 */
const clock: Clock = {
  now: () => systemClock.now() + server.faults.aheadMs,
  monotonic: () => systemClock.monotonic() + server.faults.aheadMs,
  async sleep(ms, signal) {
    if (ms >= REQUEST_TIMEOUT_MS) return systemClock.sleep(ms, signal);
    signal?.throwIfAborted();
    server.faults.aheadMs += ms;
  },
};
const skipping = { clock, random: systemRandom };
/** A race of creates and one of replaces, where more would show no more. */
const oneRace = { ...skipping, rounds: 1 };
const quickly = { ...oneRace, watchAgeMs: 0 };

beforeEach(async () => {
  ({ server, store, close } = await standInStore());
});

afterEach(() => close());

describe('the probe of a store that keeps its promises', () => {
  it('finds no fault in a real S3 server, leaves nothing behind, and reports its latency and clock', async () => {
    const s3 = inject('s3');
    vi.stubEnv('AWS_ACCESS_KEY_ID', s3.accessKeyId);
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', s3.secretAccessKey);
    const bucket = await createBucket(s3);
    const { endpoint, region } = s3;
    const real = await openS3Store({
      bucket: bucket.name,
      prefix: 'p',
      endpoint,
      region,
      clock: systemClock,
      requestTimeoutMs: 5_000,
    });
    const report = await probeStore(real, { clock: systemClock, random: systemRandom });
    await real.close();
    expect(notOk(report)).toEqual([]);
    expect(report.checks.map(({ id }) => id)).toEqual([
      'create',
      'create-once',
      'replace-bogus',
      'replace',
      'replace-stale',
      'read-back',
      'replace-absent',
      'races',
      'listing',
      'age',
      'clean-up',
    ]);
    expect(await bucket.listKeys()).toEqual([]);
    expect(report.latencyMs).toBeGreaterThan(0);
    expect(report.latencyMs).toBeLessThan(1_000);
    expect(report.clockOffsetMs.min).toBeLessThanOrEqual(1_000);
    expect(report.clockOffsetMs.max).toBeGreaterThanOrEqual(-1_000);
    expect(report.clockOffsetMs.max - report.clockOffsetMs.min).toBeLessThan(1_000);
  });

  it('finds no fault in a memory store', async () => {
    expect(notOk(await probeStore(new MemoryLeaseStore({ clock: systemClock }), quickly))).toEqual([]);
  });

  it('finds no fault in the stand-in, whose faults are all off', async () => {
    expect(notOk(await probeStore(store, quickly))).toEqual([]);
    expect(server.keys).toEqual([]);
  });
});

describe('the probe of a store that is not to be trusted', () => {
  interface Bad {
    readonly name: string;
    readonly faults: Partial<S3StandIn['faults']>;
    readonly finds: Partial<Record<ProbeCheckId, string>>;
  }
  const bad: Bad[] = [
    {
      name: 'ignores If-None-Match',
      faults: { ignoreIfNoneMatch: true },
      finds: {
        'create-once': 'ignores If-None-Match: a second create of the same key was accepted',
        races:
          'If-None-Match is not atomic: 12 of 12 races were lost, the first one since 8 of 8 concurrent writes were accepted',
      },
    },
    {
      name: 'ignores If-Match',
      faults: { ignoreIfMatch: true },
      finds: {
        'replace-bogus': 'ignores If-Match: a replace with a wrong etag was accepted',
        'replace-stale': 'ignores If-Match: a replace with a stale etag was accepted',
        'replace-absent': 'ignores If-Match: a replace of an object that is absent was accepted',
        races:
          'If-Match is not atomic: 12 of 12 races were lost, the first one since 8 of 8 concurrent writes were accepted',
      },
    },
    {
      name: 'looks first and writes later',
      faults: { gapMs: 50 },
      finds: { races: 'If-None-Match is not atomic: 12 of 12 races were lost' },
    },
    {
      name: 'gives reads an older state',
      faults: { staleReads: true },
      finds: {
        'read-back': 'a read after a create did not give its content',
        age: 'an object that was written is not there',
      },
    },
    {
      name: 'reports no age',
      faults: { lastModified: false },
      finds: {
        age: 'tells no age of an object just written (on S3: no usable Date and Last-Modified in its replies)',
      },
    },
    {
      name: 'makes objects look old',
      faults: { lastModified: new Date(systemClock.now() - 60_000).toUTCString() },
      finds: { age: 'leases would be taken from their holders' },
    },
    {
      name: 'lists nothing',
      faults: { emptyListings: true },
      finds: { listing: 'a listing does not show an object that was written before' },
    },
  ];

  it.each(bad)('names the fault of one that $name', async ({ faults, finds }) => {
    Object.assign(server.faults, faults);
    const report = await probeStore(store, { ...quickly, ...('races' in finds && { rounds: 12 }) });
    expect(report.ok).toBe(false);
    for (const [id, detail] of Object.entries(finds)) {
      const check = report.checks.find((each) => each.id === id);
      expect(check).toMatchObject({ status: 'fault' });
      expect(check?.detail).toContain(detail);
    }
    expect(server.keys).toEqual([]);
  });

  it('names the fault of one whose objects never grow old', async () => {
    server.faults.neverAges = true;
    const report = await probeStore(store, oneRace);
    expect(report.checks.find(({ id }) => id === 'age')).toMatchObject({
      status: 'fault',
      detail: expect.stringContaining('no older with time: leases would never expire'),
    });
  });

  it.each([
    [
      'the first create',
      [{ status: 501, code: 'NotImplemented' }],
      'create',
      'does not accept If-None-Match: s3://bucket/p: creating probe-',
    ],
    [
      'every first create, as if it were there',
      Array(8).fill({ status: 412, code: 'PreconditionFailed' }),
      'create',
      'misunderstands If-None-Match',
    ],
  ] as const)('names a refusal of %s and tries nothing else', async (_, replies, id, detail) => {
    server.next(...replies);
    const report = await probeStore(store, quickly);
    expect(report.ok).toBe(false);
    expect(report.checks[0]).toMatchObject({ id, status: 'fault' });
    expect(report.checks[0]?.detail).toContain(detail);
    expect(report.checks.map((check) => check.id)).toEqual([id, 'clean-up']);
  });
});

describe('the probe of a store that has its weaknesses', () => {
  it('warns of one that answers 500 to the losers of a race, and accepts it', async () => {
    server.faults.losersGet500 = true;
    const report = await probeStore(store, quickly);
    expect(report.ok).toBe(true);
    expect(report.checks.find(({ id }) => id === 'races')).toMatchObject({
      status: 'warning',
      detail: expect.stringMatching(
        /^7 of 8 racing writers got a server error instead of a refusal: .*HTTP 500 \(InternalError/,
      ),
    });
    expect(notOk(report)).toEqual(['create-once', 'replace-bogus', 'replace-stale', 'races']);
  });

  it.each([2_000, 3_500])(
    'warns of ages that are too low since the Date header is %d ms late, which is the safe side',
    async (lateDateMs) => {
      server.faults.lateDateMs = lateDateMs;
      const report = await probeStore(store, oneRace);
      expect(report.ok).toBe(true);
      expect(report.checks.find(({ id }) => id === 'age')).toMatchObject({
        status: 'warning',
        detail: expect.stringMatching(
          /^makes an object of \d+ ms only .* old: leases are taken over so much later, which is safe/,
        ),
      });
    },
  );

  it('warns of scratch objects that it may not remove, and names them', async () => {
    server.faults.refuseDeletes = true;
    const report = await probeStore(store, quickly);
    expect(report.ok).toBe(true);
    expect(notOk(report)).toEqual(['clean-up']);
    const { detail = '' } = report.checks.at(-1) ?? {};
    for (const key of server.keys) expect(detail).toContain(key.replace('p/', ''));
    expect(detail).toContain('access denied (AccessDenied, needs s3:DeleteObject)');
  });

  it.each([
    ['busy', { status: 503, code: 'SlowDown' }],
    ['silent', 'drop-reply'],
  ] as const)(
    'has patience with one that is %s for a moment, whatever it was asked to do for the first time',
    async (_, reply) => {
      // One create, a second create of a second key, and the replaces of a third.
      for (let before = 1; before < 12; before += 1) {
        server.next(...Array(before).fill('as-usual'), reply);
        const report = await probeStore(store, quickly);
        expect(report.ok).toBe(true);
        // Where a refusal was expected there is none to be seen.
        expect(notOk(report).length).toBeLessThanOrEqual(1);
      }
      expect(server.requests.filter(({ headers }) => headers['if-match'] === '')).toEqual([]);
      expect(server.keys).toEqual([]);
    },
  );

  it('takes another key, or another attempt, where its own one is refused for a moment', async () => {
    for (const before of [0, 1, 5, 9]) {
      server.next(...Array(before).fill('as-usual'), { status: 409, code: 'ConditionalRequestConflict' });
      expect(notOk(await probeStore(store, quickly))).toEqual([]);
    }
    expect(server.requests.filter(({ headers }) => headers['if-match'] === '')).toEqual([]);
  });
});

describe('a store that cannot be probed', () => {
  it.each([
    ['denies access', { status: 403, code: 'AccessDenied' }, 'denied'],
    ['has no such bucket', { status: 404, code: 'NoSuchBucket' }, 'missing'],
    ['is too busy', { status: 503, code: 'SlowDown' }, 'unavailable'],
  ] as const)('that %s is reported as that, not as faulty', async (_, reply, fault) => {
    server.next(...Array(100).fill(reply));
    await expect(probeStore(store, quickly)).rejects.toMatchObject({
      code: `STORE_${fault.toUpperCase()}`,
      fault,
    });
  });

  it('is given up when its caller gives up', async () => {
    server.faults.delayMs = 50;
    const controller = new AbortController();
    const probing = probeStore(store, { ...quickly, clock: systemClock, signal: controller.signal });
    controller.abort(new Error('no longer wanted'));
    await expect(probing).rejects.toThrow('no longer wanted');
  });
});

function notOk(report: ProbeReport): string[] {
  return report.checks.filter(({ status }) => status !== 'ok').map(({ id }) => id);
}
