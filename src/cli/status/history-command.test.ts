import { describe, expect, it } from 'vitest';
import { capturedIo } from '../../../test/support/captured-io.js';
import { runInProcess } from '../../../test/support/in-process.js';
import { seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { acquireLease } from '../../lease/acquire/acquire-lease.js';
import type { Lease } from '../../lease/model/lease.js';
import { evictHolder } from '../../lease/operate/evict.js';
import { StoreSession } from '../../lease/session/store-session.js';
import { MemoryBucket } from '../../store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../../store/memory/memory-lease-store.js';
import { showHistory } from './history-command.js';

interface Report {
  readonly nodes: readonly {
    readonly id: number;
    readonly tenures: readonly {
      readonly version: number;
      readonly taskId: string;
      readonly acquiredAt: number;
      readonly endedAt: number | null;
      readonly end: string | null;
    }[];
  }[];
}

/** A tenure, as the test has seen it. */
interface Seen {
  readonly id: number;
  readonly version: number;
  readonly taskId: string;
  readonly from: number;
  until: number;
  end: string | null;
}

/** How long requests take, here and back, in milliseconds. */
const REQUEST_MS = 40;

/** Five ids, and forty tenures on them that end in every way. */
async function scene() {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1);
  const random = seededRandom(7);
  const session = new StoreSession(new MemoryLeaseStore({ clock }, bucket), clock, 1_000);
  const seen: Seen[] = [];
  const held: { lease: Lease; record: Seen; kill: () => void }[] = [];
  const start = async () => {
    let isDead = false;
    const intercept = async <T>(_: unknown, apply: () => T) => {
      await clock.sleep(REQUEST_MS / 2);
      if (isDead) return new Promise<T>(() => undefined);
      const reply = apply();
      await clock.sleep(REQUEST_MS / 2);
      return reply;
    };
    const taskId = `task-${seen.length + 1}`;
    const acquiring = acquireLease({
      ...{ clock, random, taskId, nodes: 5, durationMs: 4_000 },
      store: new MemoryLeaseStore({ clock, intercept }, bucket),
    });
    await clock.advance(6_000);
    const lease = await acquiring;
    const { id, version } = lease;
    const record: Seen = { id, version, taskId, from: clock.now() - 6_000, until: Infinity, end: null };
    seen.push(record);
    held.push({ lease, record, kill: () => (isDead = true) });
  };
  const endOne = async (end: string) => {
    const [one] = held.splice(Math.floor(random.next() * held.length), 1);
    if (one === undefined) return;
    const { lease, record, kill } = one;
    if (end === 'evicted') await evictHolder(session, record.id);
    if (end === 'expired') kill();
    const released = end === 'released' ? lease.release() : undefined;
    Object.assign(record, { until: clock.now(), end });
    await clock.advance(end === 'released' ? 1_000 : 9_000);
    await released;
  };
  for (let tenure = 0; tenure < 40; tenure += 1) {
    if (held.length === 5 || (held.length > 0 && random.next() < 0.4))
      await endOne(['released', 'expired', 'evicted'][tenure % 3] as string);
    await start();
  }
  const history = async (request: Parameters<typeof showHistory>[1] = {}) => {
    const io = capturedIo(undefined, clock);
    expect(await showHistory(session, request, { options: { json: true }, io })).toBe(0);
    return (JSON.parse(io.answer()) as Report).nodes;
  };
  return { clock, random, seen, session, history };
}

describe('nodelease history', () => {
  it('shows the last tenures of each id, the newest first, and how they ended', async () => {
    const { seen, history } = await scene();
    const nodes = await history();
    expect(nodes.map(({ id }) => id)).toEqual([0, 1, 2, 3, 4]);
    for (const { id, tenures } of nodes) {
      const all = seen.filter((each) => each.id === id).reverse();
      const kept = all.slice(0, all[0]?.end === null ? 9 : 8);
      expect(tenures.map(({ version, taskId, end }) => [version, taskId, end])).toEqual(
        kept.map(({ version, taskId, end }) => [version, taskId, end]),
      );
    }
    expect(await history({ only: 3 })).toEqual(nodes.filter(({ id }) => id === 3));
  });

  it('shows who held what at a time', async () => {
    const { clock, random, seen, history } = await scene();
    const nodes = await history();
    const known = Math.max(...nodes.map(({ tenures }) => tenures.at(-1)?.acquiredAt ?? 0));
    let held = 0;
    for (let look = 0; look < 100; look += 1) {
      const at = Math.floor(known + random.next() * (clock.now() - known));
      // Who has it when is told to the second.
      const near = seen.some(
        ({ from, until, end }) =>
          Math.abs(at - from) < 1_000 || Math.abs(at - until - (end === 'expired' ? 3_000 : 0)) < 3_000,
      );
      if (near) continue;
      const expected = seen
        .filter(({ from, until, end }) => from <= at && at < until + (end === 'expired' ? 3_000 : 0))
        .map(({ id, version }) => [id, version])
        .sort();
      const found = (await history({ at })).flatMap(({ id, tenures }) =>
        tenures.map(({ version }) => [id, version]),
      );
      expect(found.sort()).toEqual(expected);
      held += found.length;
    }
    expect(held).toBeGreaterThan(20);
  });

  it('is a table for people', async () => {
    const { session } = await scene();
    const io = capturedIo();
    await showHistory(session, { only: 0 }, { options: {}, io });
    expect(io.answer()).toMatch(/^ID +VERSION +TASK +FROM +UNTIL +END\n 0 +\d+ +task-\d+ +20\d\d-.*Z/);
    const nothing = capturedIo();
    await showHistory(session, { at: 5 }, { options: {}, io: nothing });
    expect(nothing.answer()).toMatch(
      /^no tenure is known at 1970-01-01T00:00:00.005Z\nnode id \d: earlier tenures are forgotten; what is known begins at 20.*Z, version \d+\n/,
    );
    await expect(showHistory(session, { only: 5 }, { options: {}, io })).rejects.toThrow(
      /^node id: expected a node id from 0 to 4, got 5$/,
    );
  });

  it.each([
    [['--at', '25:00'], /--at: expected a time such as 02:14 in UTC, or 2026-.*, got "25:00"/],
    [['--at', 'yesterday'], /--at: expected a time/],
    [['--at', '2999-01-01T00:00:00Z'], /--at: expected a time that has passed/],
    [['x'], /node id: expected a whole number/],
  ])('refuses %j', async (args, complaint) => {
    expect(await runInProcess(['history', ...args, '--store', 'memory:'], {})).toMatchObject({
      code: 64,
      complaints: expect.stringMatching(complaint),
    });
  });

  it('ends with 69 where there is no cluster', async () => {
    expect(await runInProcess(['history', '--json', '--store', 'memory:'], {})).toEqual({
      code: 69,
      answer: '',
      complaints: 'nodelease: there is no cluster at memory:\n',
    });
  });
});
