import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { S3StandIn } from '../../../../test/support/s3-stand-in.js';
import { standInStore } from '../../../../test/support/stand-in-store.js';
import { systemClock } from '../../base/system.js';
import type { S3LeaseStore } from './s3-lease-store.js';

// A server whose clock is far from this host's, or the other way round: it refuses what is signed with this
// host's time.

const HOURS_MS = 3_600_000;
let server: S3StandIn;
let store: S3LeaseStore;
let close: () => Promise<void>;

beforeEach(async () => {
  ({ server, store, close } = await standInStore());
});

afterEach(() => close());

/** A refusal as S3 words it, by a server whose clock is off by so much. */
const refusal = (offsetMs: number) => ({
  status: 403,
  code: 'RequestTimeTooSkewed',
  headers: { date: new Date(systemClock.now() + offsetMs).toUTCString() },
});

const calls = {
  read: () => store.read('0.json'),
  list: () => store.list(),
  create: () => store.create('0.json', 'new', {}),
  replace: () => store.replace('0.json', 'new', {}, '"etag"'),
  discard: () => store.discardProbe('probe-1.json'),
};

describe('a host whose clock is hours off', () => {
  it.each(Object.keys(calls) as (keyof typeof calls)[])(
    'gets its answer to %s all the same, signed by the server’s time',
    async (call) => {
      for (const offsetMs of [10 * HOURS_MS, -10 * HOURS_MS]) {
        server.requests.length = 0;
        server.next(refusal(offsetMs));
        await calls[call]();
        expect(server.requests).toHaveLength(2);
        const signed = String(server.requests[1]?.headers['x-amz-date']).slice(0, 'yyyymmddThhmm'.length);
        const around = [0, 60_000].map((later) =>
          new Date(systemClock.now() + offsetMs - later).toISOString().replace(/[-:]/g, '').slice(0, 13),
        );
        expect(around).toContain(signed);
      }
    },
  );

  it('is refused once, not at every call', async () => {
    server.next(refusal(10 * HOURS_MS));
    await store.list();
    server.requests.length = 0;
    server.next({ status: 404, code: 'NoSuchKey', headers: refusal(10 * HOURS_MS).headers });
    await store.read('9.json');
    expect(server.requests).toHaveLength(1);
  });

  it('gets the refusal when the server refuses it again, and nothing was applied', async () => {
    server.next(refusal(10 * HOURS_MS), refusal(-10 * HOURS_MS));
    await expect(calls.create()).rejects.toMatchObject({ fault: 'denied', outcome: 'not-applied' });
    expect(server.requests).toHaveLength(2);
    expect(server.keys).toEqual([]);
  });

  it('does not take a lost reply to its second attempt for a refusal', async () => {
    server.next(refusal(10 * HOURS_MS), 'drop-reply');
    await expect(calls.create()).rejects.toMatchObject({ fault: 'unreachable', outcome: 'unknown' });
    expect(server.keys).toEqual(['p/0.json']);
  });
});
