import { afterEach, describe, expect, inject, it } from 'vitest';
import type { Clock } from '../../../../src/core/base/clock.js';
import { systemClock } from '../../../../src/core/base/system.js';
import { type UniqueIdGenerator, uniqueIds } from '../../../../src/core/id/index.js';
import type { Lease, LeaseEvent } from '../../../../src/core/lease/model/lease.js';
import type { ZooKeeperClient } from '../../../../src/zookeeper/client/index.js';
import { evictAllocated } from '../../../../src/zookeeper/discovery/allocation/evict-allocated.js';
import { ProcessHandle } from '../../../support/process-handle.js';
import { runProcess } from '../../../support/processes.js';
import { pathOf } from '../../../support/scripted-zookeeper.js';
import { startZooKeeperProcess } from '../../../support/servers/zookeeper-process.js';
import { expireSession, uniqueChroot } from '../../../support/zookeeper.js';
import { acquire, atEnd, endAll, openSession } from './allocation-support.js';

// Unique ids whose node ids come from ZooKeeper alone, on real servers.

const SESSION_MS = 15_000;
/** Of a process whose session is waited for to expire. */
const SHORT_SESSION_MS = 5_000;
/** Runs ahead to the very end of what the tenure may stamp. */
const GREEDY = { lagMs: 0, advanceMs: 600_000 };
const HOUR = 3_600_000;

afterEach(endAll);

const open = (chroot: string, connect?: string, sessionTimeoutMs = SESSION_MS) =>
  openSession(chroot, sessionTimeoutMs, connect);

/** A host's clock that is off by so much. */
const off = (ms: number): Clock => ({ ...systemClock, now: () => systemClock.now() + ms });

/** Why there is no id; undefined where there is one. */
function codeOf(ids: UniqueIdGenerator): string | undefined {
  try {
    ids.next();
    return undefined;
  } catch (error) {
    return (error as { code: string }).code;
  }
}

/** As many ids as `count`, as soon as there are. */
async function some(ids: UniqueIdGenerator, count: number): Promise<bigint[]> {
  const made: bigint[] = [];
  while (made.length < count) made.push(await ids.nextAsync());
  return made;
}

const msOf = (id: bigint) => Number(id >> 16n);

/** Makes ids until there are none for now: the first and the last of them. */
async function useUp(ids: UniqueIdGenerator): Promise<[bigint, bigint]> {
  const first = await ids.nextAsync();
  const many = new BigUint64Array(1 << 16);
  for (let last = first; ; last = many.at(-1) as bigint) {
    try {
      ids.fill(many);
    } catch (error) {
      const { code, filled } = error as { code: string; filled: number };
      if (code !== 'IDS_EXHAUSTED') throw error;
      return [first, filled > 0 ? (many[filled - 1] as bigint) : last];
    }
  }
}

/** Fills ids up to and including `to` with claims of this client, all saying this. */
async function occupy(
  client: ZooKeeperClient,
  from: number,
  to: number,
  idWidth: number | undefined,
): Promise<void> {
  await client.ensurePath('/discovery/nodes/00');
  const ids = Array.from({ length: to - from + 1 }, (_, i) => from + i);
  const data = (id: number) =>
    JSON.stringify({ taskId: `other-${id}`, nodeId: id - 8, version: 1, idWidth, nonce: `of-${id}` });
  await Promise.all(ids.map((id) => client.createWithParents(pathOf(id), data(id), 'ephemeral')));
}

const widthAt = async (client: ZooKeeperClient, id: number) =>
  (JSON.parse(String((await client.read(pathOf(id)))?.data)) as { idWidth?: number }).idWidth;

describe('tenures of one node id', () => {
  it('make ids that increase from one to the next, however each of them ends, on hosts whose clocks are hours off', async () => {
    const chroot = uniqueChroot('tenures');
    const operator = open(chroot);
    const { connect } = inject('zookeeper');
    const ended: [string, (lease: Lease, client: ZooKeeperClient) => Promise<unknown>][] = [
      ['released', (lease) => lease.release()],
      [
        'expired',
        async (_, client) => {
          const { sessionId } = await client.whenConnected();
          await expireSession({ connect, sessionId });
        },
      ],
      [
        'evicted',
        async (lease, client) => {
          await evictAllocated({ zookeeper: operator, clock: systemClock }, lease.id);
          await expect.poll(() => lease.signal.aborted).toBe(true);
          await client.close();
        },
      ],
      ['released again', (lease) => lease.release()],
    ];
    let last = 0n;
    for (const [index, [how, end]] of ended.entries()) {
      const client = open(chroot);
      const lease = await acquire(client, { clock: off((index % 2 === 0 ? 5 : -5) * HOUR) });
      expect(lease.id).toBe(0);
      const ids = await uniqueIds(lease, GREEDY);
      const [first, newest] = await useUp(ids);
      expect(first > last, `after one that was ${how}`).toBe(true);
      // Store time, not the host's.
      expect(Math.abs(msOf(first) - systemClock.now())).toBeLessThan(60_000);
      await end(lease, client);
      const code = how.startsWith('released') ? 'LEASE_RELEASED' : 'LEASE_LOST';
      await expect.poll(() => codeOf(ids)).toBe(code);
      last = newest;
    }
    expect(await operator.children('/discovery/stamps/00')).toEqual(['08']);
  });

  it('lose nothing by a release: the next one goes on right after the last millisecond that was reserved', async () => {
    const chroot = uniqueChroot('released');
    const lease = await acquire(open(chroot));
    const ids = await uniqueIds(lease, { lagMs: 0, advanceMs: 0 });
    const id = ids.next();
    await lease.release();
    const next = await acquire(open(chroot));
    const begun = systemClock.monotonic();
    const follower = (await uniqueIds(next, { lagMs: 0, advanceMs: 100 })).nextAsync();
    expect((await follower) > id).toBe(true);
    expect(systemClock.monotonic() - begun).toBeLessThan((SESSION_MS * 2) / 3);
    expect(next.tenureTime.after - msOf(id)).toBeLessThan(1_000);
  });

  it.each(['SIGKILL', 'SIGSTOP'] as const)(
    'of a process that gets %s in the middle of making them never overlap with the next one’s',
    async (signal) => {
      const chroot = uniqueChroot('process');
      const program = 'test/fixtures/programs/zookeeper-id-maker.mjs';
      const maker = runProcess(process.execPath, [
        program,
        `${inject('zookeeper').connect}${chroot}`,
        String(SHORT_SESSION_MS),
        String(24 * HOUR),
      ]);
      const lines = () => maker.stdout().split('\n').length;
      await expect.poll(lines, { timeout: 30_000 }).toBeGreaterThan(20);
      const handle = new ProcessHandle(maker.pid);
      if (signal === 'SIGSTOP') await handle.pause();
      else handle.signal(signal);
      const watcher = open(chroot);
      await expect.poll(() => watcher.children('/discovery/nodes/00'), { timeout: 30_000 }).toEqual([]);
      const next = await acquire(open(chroot), { clock: off(-24 * HOUR) });
      expect(next.id).toBe(0);
      const [first] = await useUp(await uniqueIds(next, GREEDY));
      if (signal === 'SIGSTOP') {
        handle.signal('SIGCONT');
        await maker.waitForOutput(/end LEASE_LOST\n/);
      }
      const made = [...maker.stdout().matchAll(/^made (\d+) (\d+)$/gm)].flatMap(([, a, b]) => [
        BigInt(a as string),
        BigInt(b as string),
      ]);
      expect(made.length).toBeGreaterThan(20);
      expect(made.filter((id, i) => i > 0 && id < (made[i - 1] as bigint))).toEqual([]);
      expect(first > (made.at(-1) as bigint)).toBe(true);
    },
  );
});

describe('while the server hangs', () => {
  it('ids are made within the bounds, then none, and again as soon as it goes on', async () => {
    const server = await startZooKeeperProcess();
    atEnd(() => server.dispose());
    // The deadline is a third of it away at the least.
    const sessionMs = 36_000;
    const lease = await acquire(open('/paused', server.connect, sessionMs));
    const { tenureTime } = lease;
    const ids = await uniqueIds(lease, GREEDY);
    await new ProcessHandle(server.pid ?? 0).pause();
    const bound = tenureTime.before();
    const [, last] = await useUp(ids);
    // A heartbeat may have been under way.
    expect(msOf(last)).toBeLessThanOrEqual(tenureTime.before());
    expect(msOf(last)).toBeGreaterThanOrEqual(bound - 1);
    await systemClock.sleep(1_000);
    expect(() => ids.next()).toThrow(expect.objectContaining({ code: 'IDS_EXHAUSTED' }));
    server.resume();
    expect((await ids.nextAsync()) > last).toBe(true);
    expect(lease.isValid()).toBe(true);
  });
});

describe('ids of a wider group', () => {
  it('are claimed only when all below make wide ones, and are stamped after every narrow one', async () => {
    const chroot = uniqueChroot('wider');
    // Two that make ids, and one that never adopts another width; the rest of the group does.
    const first = await acquire(open(chroot), { clock: off(-3 * HOUR) });
    const second = await acquire(open(chroot), { clock: off(3 * HOUR) });
    const narrow = await uniqueIds(first, GREEDY);
    const idle = await uniqueIds(second, GREEDY);
    const stubborn = open(chroot);
    await occupy(stubborn, 10, 10, undefined);
    const others = open(chroot);
    await occupy(others, 11, 255, 9);
    expect([narrow.layout.nodeBits, idle.layout.nodeBits]).toEqual([8, 8]);
    const [, lastNarrow] = await useUp(narrow);

    const events: LeaseEvent[] = [];
    const claimer = open(chroot);
    const pending = acquire(claimer, { onEvent: (event) => events.push(event) });
    const whys = () => events.flatMap((event) => (event.type === 'waiting' ? [event.why] : []));
    await expect.poll(() => whys().at(-1)).toBe('others do not use 9 bits for a node id yet: node id 2');
    // The holders that are there adopt it at once, and say so.
    expect(await Promise.all([8, 9].map((id) => widthAt(others, id)))).toEqual([9, 9]);
    expect([narrow.layout.nodeBits, idle.layout.nodeBits]).toEqual([9, 9]);
    await systemClock.sleep(1_500);
    expect(await others.children('/discovery/nodes/01')).toEqual([]);

    await occupy(others, 0x100, 0x107, 9);
    // Its end frees its id too: somebody else has it at once.
    await others.multi([
      { type: 'remove', path: pathOf(10) },
      { type: 'create', path: pathOf(10), data: '{"taskId":"other-10","idWidth":9}', mode: 'ephemeral' },
    ]);
    const lease = await pending;
    expect(lease.id).toBe(0x100);
    const wide = await uniqueIds(lease, GREEDY);
    const [firstWide, lastWide] = await useUp(wide);
    expect(msOf(firstWide)).toBeGreaterThan(msOf(lastNarrow));
    expect(wide.decode(lastWide)).toMatchObject({ node: 0x108 });
    // The node that could be mistaken for it goes on in the same milliseconds, and both make different ids.
    const made = (await Promise.all([narrow, wide, idle].map((ids) => some(ids, 20_000)))).flat();
    expect(new Set(made).size).toBe(60_000);
    // The next claimer has one look at the group’s mark.
    await claimer
      .read('/discovery/nodes/01')
      .then((znode) =>
        expect(JSON.parse(String(znode?.data))).toEqual({ idWidth: 9, floor: expect.any(Number) }),
      );
    // One that comes when the groups are gone makes wide ids all the same.
    await lease.release();
    await others.close();
    await stubborn.close();
    await first.release();
    await second.release();
    const late = open(chroot);
    await expect
      .poll(async () => (await late.children('/discovery/nodes'))?.length, { timeout: 20_000 })
      .toBeLessThanOrEqual(2);
    expect((await uniqueIds(await acquire(late))).layout.nodeBits).toBe(9);
  });
});
