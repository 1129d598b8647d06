import { describe, expect, it } from 'vitest';
import { type ShardFault, type ShardTask, shardFleet } from '../../../test/support/shard-fleet.js';
import { inVirtualTime } from '../../../test/support/virtual-clock.js';
import { staticLease } from '../../core/lease/hold/static-lease.js';
import { encodeCluster, newCluster } from '../../core/lease/model/cluster-config.js';
import { evictHolder } from '../../core/lease/operate/evict.js';
import { StoreSession } from '../../core/lease/session/store-session.js';
import { StoreError } from '../../core/store/lease-store.js';
import { MemoryLeaseStore } from '../../core/store/memory/memory-lease-store.js';
import { ownShards } from './own-shards.js';
import { encodeMap, SHARDS_KEY } from './shard-map.js';

const lost = () => new StoreError('lost', { fault: 'unreachable', outcome: 'unknown' });
const mapWrites = ({ calls }: ShardTask) =>
  calls.filter((call) => call.operation === 'replace' && call.key === SHARDS_KEY).length;
const leave = async ({ shards }: Pick<ShardTask, 'shards'>) => shards[Symbol.asyncDispose]();
const newest = <T>(list: readonly T[]): T => list.at(-1) as T;

describe('shards', () => {
  it('all run on a task that is alone, within one renewal period', async () => {
    const fleet = shardFleet({ count: 16 });
    const { shards } = await fleet.task();
    expect(await fleet.untilAllRun()).toBeLessThan(5_000);
    expect(shards.owned.map(({ shard }) => shard)).toEqual(Array.from({ length: 16 }, (_, at) => at));
    expect([shards.count, shards.epoch, shards.owned[0]?.token]).toEqual([16, 2, 2]);
    expect(['a', 'b', 17n].map((key) => shards.owns(key))).toEqual([true, true, true]);
  });

  it('move to a task that joins once the map has settled, as few as possible, each stopped before it starts', async () => {
    const fleet = shardFleet({ count: 16 });
    await fleet.task();
    await fleet.untilAllRun();
    await fleet.task();
    await fleet.clock.advance(14_000);
    expect(fleet.counts()).toEqual([16, 0]);
    await fleet.clock.advance(20_000);
    expect(fleet.counts()).toEqual([8, 8]);
    expect(fleet.runs).toHaveLength(24);
    expect(fleet.violations).toEqual([]);
    // What moves is down for its stop, a write, and a poll of the new owner.
    const gaps = fleet.runs.slice(16).map((run) => {
      const before = fleet.runs.find(({ shard }) => shard === run.shard);
      return run.from - (before?.to ?? 0);
    });
    expect(Math.max(...gaps)).toBeLessThan(1_500);
    // Two joins, the plan, and what was handed on.
    expect(fleet.map().epoch).toBe(5);
  });

  it('are handed on by a task that leaves, in one write, and run elsewhere in one renewal period', async () => {
    const fleet = shardFleet({ count: 16 });
    const first = await fleet.task();
    await fleet.task();
    await fleet.task();
    await fleet.clock.advance(40_000);
    expect(fleet.counts()).toEqual([6, 5, 5]);
    const before = mapWrites(first);
    await inVirtualTime(fleet.clock, leave(first));
    expect(mapWrites(first) - before).toBe(1);
    expect(fleet.map().members).toHaveLength(2);
    await fleet.untilAllRun();
    expect(fleet.counts()).toEqual([0, 8, 8]);
    expect(await fleet.untilAllRun()).toBeLessThanOrEqual(5_500);
    expect(fleet.violations).toEqual([]);
  });

  it('run elsewhere a duration, a grace and 10 s after a crash, and not before the lease is over', async () => {
    const fleet = shardFleet({ count: 16 });
    const first = await fleet.task();
    await fleet.task();
    await fleet.clock.advance(40_000);
    first.network.fault = () => new Promise(() => undefined);
    const signals = fleet.runs.filter(
      ({ task, to }) => task === first.name && to === Number.POSITIVE_INFINITY,
    );
    await fleet.clock.advance(15_000);
    expect(signals).toHaveLength(8);
    expect(signals.every(({ signal }) => signal.reason?.code === 'LEASE_LOST')).toBe(true);
    expect(first.shards.owns(0n)).toBe(false);
    await fleet.clock.advance(11_000);
    expect(fleet.counts()).toEqual([0, 16]);
    expect(fleet.violations).toEqual([]);
  });

  it('come back with new tokens to a task that takes the node id of one that has crashed', async () => {
    const fleet = shardFleet({ count: 12, nodes: 2 });
    const first = await fleet.task();
    await fleet.task();
    await fleet.clock.advance(40_000);
    const owned = first.shards.owned.map(({ shard }) => shard);
    first.network.fault = () => new Promise(() => undefined);
    await fleet.clock.advance(12_000);
    const again = await fleet.task();
    expect(again.lease).toMatchObject({ id: first.lease.id, version: 2 });
    await fleet.clock.advance(40_000);
    expect(again.shards.owned).toHaveLength(6);
    expect(fleet.violations).toEqual([]);
    expect(owned).toHaveLength(6);
  });

  it('are handed on by a task whose look is due and fails: what has stopped does not wait for it', async () => {
    const fleet = shardFleet({ count: 9 });
    const first = await fleet.task();
    await fleet.task();
    const third = await fleet.task();
    await fleet.clock.advance(40_000);
    third.network.fault = () => new Promise(() => undefined);
    await fleet.clock.advance(8_000);
    // It sees that the lease is overdue, and no listing after that one.
    let looks = 0;
    first.network.fault = async ({ operation }) => {
      if (operation !== 'list') return;
      looks += 1;
      if (looks > 1) throw lost();
    };
    await fleet.clock.advance(34_000);
    await fleet.task();
    await fleet.clock.advance(40_000);
    expect(fleet.counts()).toEqual([3, 3, 0, 3]);
    expect(fleet.violations).toEqual([]);
  });

  it('stay with an owner that is slow to stop, which blocks no other shard', async () => {
    const fleet = shardFleet({ count: 8 });
    const slow = await fleet.task({ stopMs: 40_000, stopTimeoutMs: 30_000 });
    await fleet.untilAllRun();
    const joiner = await fleet.task();
    await fleet.clock.advance(30_000);
    expect(slow.shards.stopping).toHaveLength(4);
    expect(joiner.shards.owned).toEqual([]);
    // A third task is served meanwhile, by what is not being stopped.
    await fleet.task();
    await fleet.clock.advance(60_000);
    const { type, error } = newest(slow.events.filter((event) => event.type === 'failed'));
    expect([type, String(error)]).toEqual([
      'failed',
      expect.stringContaining('has not stopped within 30000 ms'),
    ]);
    await fleet.clock.advance(60_000);
    expect(fleet.running()).toBe(8);
    expect(Math.max(...fleet.counts()) - Math.min(...fleet.counts())).toBeLessThanOrEqual(1);
    expect(fleet.violations).toEqual([]);
  });

  it('have one owner whatever replies of map writes are lost, and each token is used once', async () => {
    const fleet = shardFleet({ count: 16 });
    let writes = 0;
    const lossy: ShardFault = async (call, apply) => {
      if (call.operation !== 'replace' || call.key !== SHARDS_KEY) return;
      writes += 1;
      if (writes % 3 === 0) throw lost();
      if (writes % 3 === 1) {
        apply();
        throw lost();
      }
    };
    for (let at = 0; at < 4; at += 1) (await fleet.task()).network.fault = lossy;
    await fleet.clock.advance(120_000);
    expect(fleet.counts()).toEqual([4, 4, 4, 4]);
    const first = fleet.tasks[0] as ShardTask;
    await inVirtualTime(fleet.clock, leave(first));
    await fleet.clock.advance(60_000);
    expect(fleet.running()).toBe(16);
    await inVirtualTime(fleet.clock, leave(fleet.tasks[1] as ShardTask));
    await fleet.clock.advance(60_000);
    expect(fleet.running()).toBe(16);
    expect(writes).toBeGreaterThan(8);
    expect(fleet.violations).toEqual([]);
  });

  it.each<[string, (body: string) => string | undefined]>([
    ['is gone', () => undefined],
    ['is garbage', () => '{"epoch":'],
    [
      'goes back',
      (body) => body.replace(/"epoch":\d+/, '"epoch":1').replace(/"token":\[[^\]]*]/, '"token":[1,1,1,1]'),
    ],
  ])('run on when the map %s, and nothing else begins or moves, until it is back', async (_, damaged) => {
    const fleet = shardFleet({ count: 4 });
    await fleet.task();
    await fleet.untilAllRun();
    const good = fleet.bucket.read(SHARDS_KEY)?.body ?? '';
    const bad = damaged(good);
    fleet.bucket.remove(SHARDS_KEY);
    if (bad !== undefined) fleet.bucket.create(SHARDS_KEY, bad, {});
    // A task that has seen no later epoch cannot know that this one is old.
    const isOld = bad?.endsWith('}') === true;
    if (!isOld) await fleet.task();
    await fleet.clock.advance(40_000);
    expect(fleet.counts()[0]).toBe(4);
    for (const { events } of fleet.tasks)
      expect(events.filter(({ type }) => type === 'damaged')).toHaveLength(1);
    expect(fleet.bucket.read(SHARDS_KEY)?.body).toBe(bad);
    fleet.bucket.remove(SHARDS_KEY);
    fleet.bucket.create(SHARDS_KEY, good, {});
    if (isOld) await fleet.task();
    await fleet.clock.advance(60_000);
    expect(fleet.counts()).toEqual([2, 2]);
    expect(fleet.violations).toEqual([]);
  });

  it('are not begun by a late map of an earlier series (T10)', async () => {
    const fleet = shardFleet({ count: 4 });
    const shards = { count: 4, floor: 5, created: true };
    fleet.bucket.create('cluster.json', encodeCluster({ ...newCluster({ nodes: 4 }), shards }), {});
    const none = Array.from({ length: 4 }, () => ({ owner: undefined, token: 0, next: undefined }));
    fleet.bucket.create(SHARDS_KEY, encodeMap({ epoch: 1, members: [], shards: none }), {});
    const { events } = await fleet.task();
    await fleet.clock.advance(40_000);
    expect(fleet.counts()).toEqual([0]);
    expect(events.map(({ type }) => type)).toEqual(['damaged']);
  });

  it('stop at once where an epoch takes them from their owner, and that is reported', async () => {
    const fleet = shardFleet({ count: 4 });
    const first = await fleet.task();
    await fleet.untilAllRun();
    const map = fleet.map();
    const shards = map.shards.map((shard, at) => (at === 1 ? { ...shard, owner: undefined } : shard));
    fleet.bucket.remove(SHARDS_KEY);
    fleet.bucket.create(SHARDS_KEY, encodeMap({ ...map, epoch: map.epoch + 1, shards }), {});
    const [taken] = fleet.runs.filter(({ shard }) => shard === 1);
    await fleet.clock.advance(6_000);
    expect(taken?.signal.aborted).toBe(true);
    expect(first.events.find(({ type }) => type === 'damaged')).toMatchObject({
      problem: expect.stringContaining('takes shard 1'),
    });
    await fleet.clock.advance(15_000);
    expect(fleet.counts()).toEqual([4]);
    expect(fleet.violations).toEqual([]);
  });

  it('are stopped and handed on by the release of the lease, which is renewed until they have ended', async () => {
    const fleet = shardFleet({ count: 4 });
    const first = await fleet.task({ stopMs: 20_000 });
    const second = await fleet.task();
    await fleet.untilAllRun();
    let isReleased = false;
    const releasing = first.lease.release().then(() => {
      isReleased = true;
    });
    first.calls.length = 0;
    await fleet.clock.advance(19_000);
    expect([first.lease.isValid(), isReleased]).toEqual([true, false]);
    expect(first.calls.length).toBeLessThan(30);
    await fleet.clock.advance(1_500);
    await releasing;
    expect(first.lease.isValid()).toBe(false);
    await fleet.clock.advance(5_500);
    expect(second.shards.owned).toHaveLength(4);
    expect(fleet.violations).toEqual([]);
  });

  it('delay the release by 2 s at most where the map cannot be written', async () => {
    const fleet = shardFleet({ count: 4 });
    const first = await fleet.task();
    await fleet.untilAllRun();
    first.network.fault = async ({ operation, ...call }) => {
      if (operation === 'replace' && 'key' in call && call.key === SHARDS_KEY) throw lost();
    };
    const begun = fleet.clock.monotonic();
    await inVirtualTime(fleet.clock, first.lease.release());
    expect(fleet.clock.monotonic() - begun).toBeLessThan(2_500);
    const second = await fleet.task();
    await fleet.clock.advance(10_000);
    expect(second.shards.owned).toHaveLength(4);
    expect(fleet.violations).toEqual([]);
  });

  it('leave a node id that is being retired', async () => {
    const fleet = shardFleet({ count: 4, nodes: 2 });
    const tasks = [await fleet.task(), await fleet.task()];
    await fleet.clock.advance(40_000);
    const cluster = fleet.bucket.read('cluster.json');
    const body = (cluster?.body ?? '').replace('"size":2', '"size":1');
    fleet.bucket.replace('cluster.json', body, {}, cluster?.etag ?? '');
    await fleet.clock.advance(30_000);
    const [stays, goes] = [0, 1].map((id) => tasks.find(({ lease }) => lease.id === id));
    expect(goes?.lease.retiring.aborted).toBe(true);
    expect([stays?.shards.owned.length, goes?.shards.owned.length]).toEqual([4, 0]);
    expect(fleet.map().members).toHaveLength(1);
    expect(fleet.violations).toEqual([]);
  });

  it('whose stop rejects stay with their owner until its lease ends, since the work may still run', async () => {
    const fleet = shardFleet({ count: 4 });
    const signals: AbortSignal[] = [];
    const failing = await fleet.task({
      start: (_, { signal }) => {
        signals.push(signal);
        return () => Promise.reject(new Error('cannot close'));
      },
    });
    await fleet.clock.advance(10_000);
    const other = await fleet.task();
    await fleet.clock.advance(60_000);
    expect(fleet.map().shards.filter(({ next }) => next !== undefined)).toHaveLength(2);
    expect(failing.shards.stopping).toHaveLength(2);
    expect(other.shards.owned).toEqual([]);
    expect(signals.filter(({ aborted }) => aborted)).toHaveLength(2);
    expect(failing.events.filter(({ type }) => type === 'failed')).toHaveLength(2);
  });

  it.each<[string, (task: ShardTask) => Promise<void>]>([
    ['the release of the lease', ({ lease }) => lease.release()],
    [
      'the end of a block with `await using`',
      async ({ lease, shards }) => {
        await shards[Symbol.asyncDispose]();
        await lease[Symbol.asyncDispose]();
      },
    ],
    [
      'a loss of the lease, and its release',
      async (task) => {
        task.network.fault = () => new Promise(() => undefined);
        await new Promise((resolve) => task.lease.signal.addEventListener('abort', resolve));
        await task.lease.release();
      },
    ],
  ])(
    'whose stop rejects run elsewhere only when the lease has expired, also after %s (T5)',
    async (_, end) => {
      const fleet = shardFleet({ count: 4 });
      const failing = await fleet.task({
        start: (shard) => () => (shard === 0 ? Promise.resolve() : Promise.reject(new Error('cannot close'))),
      });
      await fleet.clock.advance(10_000);
      const other = await fleet.task();
      const { id, deadline } = failing.lease;
      await inVirtualTime(fleet.clock, end(failing));
      expect(failing.lease.isValid()).toBe(false);
      expect(fleet.clock.monotonic()).toBeLessThan(deadline);
      expect(JSON.parse(fleet.bucket.read(`${id}.json`)?.body ?? '')).not.toHaveProperty('released');
      await fleet.clock.advance(60_000);
      expect(other.shards.owned).toHaveLength(4);
      const starts = fleet.runs.flatMap(({ task, shard, from }) =>
        task === other.name && shard > 0 ? [from] : [],
      );
      expect(Math.min(...starts)).toBeGreaterThan(deadline);
    },
  );

  it('may be released by a listener of the stop, which stops each once', async () => {
    const fleet = shardFleet({ count: 4 });
    const releases: Promise<void>[] = [];
    const task: ShardTask = await fleet.task({
      onEvent: ({ type }) => void (type === 'stopping' && releases.push(task.lease.release())),
    });
    await fleet.untilAllRun();
    const begun = fleet.clock.monotonic();
    await inVirtualTime(fleet.clock, task.lease.release());
    expect(fleet.clock.monotonic() - begun).toBeLessThan(1_000);
    expect(releases).toHaveLength(4);
    await Promise.all(releases);
    expect(fleet.map().members).toEqual([]);
  });

  it('are written of in the lease by its renewals, with the address, and not once the task has left', async () => {
    const fleet = shardFleet({ count: 4 });
    const { lease, shards } = await fleet.task();
    const object = () => JSON.parse(fleet.bucket.read(`${lease.id}.json`)?.body ?? '');
    // Before it has read the map.
    expect(object()).toMatchObject({ shards: { epoch: 0 } });
    await fleet.clock.advance(11_000);
    expect(object()).toMatchObject({ shards: { epoch: 2 }, address: 'task-0:80' });
    await inVirtualTime(fleet.clock, leave({ shards }));
    await fleet.clock.advance(6_000);
    expect(object()).not.toHaveProperty('shards');
    expect(object()).not.toHaveProperty('address');
  });

  it('are not given to tasks that do not take part, and are taken from a tenure whose node id such a task has', async () => {
    const fleet = shardFleet({ count: 4, nodes: 3 });
    const first = await fleet.task();
    const second = await fleet.task();
    const plain = await fleet.plainTask();
    await fleet.clock.advance(40_000);
    expect(fleet.counts()).toEqual([2, 2]);
    expect(fleet.map().members.map(({ id }) => id)).not.toContain(plain.id);
    // It ends without a word, and its node id is taken before anybody has looked.
    first.network.fault = () => new Promise(() => undefined);
    const key = `${first.lease.id}.json`;
    const object = fleet.bucket.read(key);
    const body = JSON.stringify({
      ...JSON.parse(object?.body ?? ''),
      version: 2,
      nonce: 'x',
      shards: undefined,
    });
    fleet.bucket.replace(key, body, {}, object?.etag ?? '');
    const renewing = fleet.clock.advance(60_000);
    for (let second_ = 0; second_ < 12; second_ += 1) {
      await fleet.clock.sleep(5_000);
      const now = fleet.bucket.read(key);
      fleet.bucket.replace(key, `${(now?.body ?? '').trim()} `, {}, now?.etag ?? '');
    }
    await renewing;
    expect(second.shards.owned).toHaveLength(4);
  });

  it('of a holder that is evicted wait until it cannot trust its lease any more', async () => {
    const fleet = shardFleet({ count: 4 });
    const first = await fleet.task();
    const second = await fleet.task();
    await fleet.clock.advance(40_000);
    first.network.fault = () => new Promise(() => undefined);
    await evictHolder(
      new StoreSession(new MemoryLeaseStore({ clock: fleet.clock }, fleet.bucket), fleet.clock, 1_000),
      first.lease.id,
    );
    const evictedAt = fleet.clock.monotonic();
    await fleet.clock.advance(45_000);
    expect(second.shards.owned).toHaveLength(4);
    const taken = fleet.runs.filter(({ task, from }) => task === second.name && from > evictedAt);
    expect(Math.min(...taken.map(({ from }) => from - evictedAt))).toBeGreaterThan(16_000);
    expect(fleet.violations).toEqual([]);
  });

  it('start at once elsewhere where the store reports changes', async () => {
    const fleet = shardFleet({ count: 4, watches: true });
    const first = await fleet.task({ stopMs: 0 });
    await fleet.task();
    await fleet.clock.advance(40_000);
    expect(fleet.counts()).toEqual([2, 2]);
    await inVirtualTime(fleet.clock, leave(first));
    expect(await fleet.untilAllRun()).toBeLessThanOrEqual(200);
    expect(fleet.violations).toEqual([]);
  });

  it.each([false, true])(
    'that are not stopped for long cost the nodes that wait for them no further reads; watches: %s',
    async (watches) => {
      const fleet = shardFleet({ count: 4, watches });
      await fleet.task({ stopMs: 3_600_000, stopTimeoutMs: 3_600_000 });
      await fleet.untilAllRun();
      const { calls } = await fleet.task();
      const reads = () => calls.filter((call) => call.operation === 'read' && call.key === SHARDS_KEY).length;
      await fleet.clock.advance(21_000);
      expect(fleet.map().shards.filter(({ next }) => next !== undefined)).toHaveLength(2);
      const [soon] = [reads(), await fleet.clock.advance(5_000)];
      // At once elsewhere: by a poll, or by a watch.
      if (watches) expect(reads() - soon).toBeLessThanOrEqual(2);
      else expect(reads() - soon).toBeGreaterThanOrEqual(3);
      await fleet.clock.advance(15_000);
      const before = reads();
      await fleet.clock.advance(60_000);
      expect(reads() - before).toBeLessThanOrEqual(13);
    },
  );

  it('cost a GET at each renewal, however many they are, and no write, in the steady state', async () => {
    const cost = async (count: number) => {
      const fleet = shardFleet({ count });
      for (let at = 0; at < 8; at += 1) await fleet.task();
      await fleet.clock.advance(90_000);
      expect(fleet.running()).toBe(count);
      for (const { calls } of fleet.tasks) calls.length = 0;
      await fleet.clock.advance(600_000);
      const calls = fleet.tasks.flatMap((one) => one.calls);
      expect(calls.filter((call) => call.operation === 'replace' && call.key === SHARDS_KEY)).toEqual([]);
      const perMinute = (wanted: (call: (typeof calls)[number]) => boolean) =>
        calls.filter(wanted).length / 8 / 10;
      const isCluster = (call: (typeof calls)[number]) => 'key' in call && call.key === 'cluster.json';
      return {
        reads: perMinute((call) => call.operation === 'read' && !isCluster(call)),
        lists: perMinute(({ operation }) => operation === 'list'),
        writes: perMinute(({ operation }) => operation === 'replace'),
      };
    };
    const [few, many] = [await cost(8), await cost(256)];
    for (const { reads, lists, writes } of [few, many]) {
      expect(writes).toBeLessThanOrEqual(12);
      // A look reads two members.
      expect(reads).toBeLessThanOrEqual(12 + (2 * 24) / 8);
      expect(lists).toBeLessThanOrEqual(24 / 8);
    }
    expect(Math.abs(few.reads - many.reads)).toBeLessThan(1);
  });
});

describe('ownShards', () => {
  it('refuses another number of shards than the cluster has, and says why', async () => {
    const fleet = shardFleet({ count: 4 });
    await fleet.task();
    await expect(fleet.task({ count: 8 })).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      setting: 'count',
      message: expect.stringContaining(
        "4, the cluster's number of shards (keys belong to shards by that number",
      ),
    });
  });

  it('refuses a static id in one line, and a second part of the same lease', async () => {
    const start = () => undefined;
    await expect(ownShards(staticLease({ id: 1, taskId: 'a' }), { count: 4, start })).rejects.toMatchObject({
      message:
        'lease: expected the lease of a node id in a store, once, got "a static id, or one from ZooKeeper"',
    });
    const fleet = shardFleet({ count: 4 });
    const { lease } = await fleet.task();
    await expect(ownShards(lease, { count: 4, start })).rejects.toMatchObject({
      setting: 'lease',
      message: expect.stringContaining('"one that takes part already"'),
    });
    const plain = await fleet.plainTask();
    const first = ownShards(plain, { count: 4, start });
    await expect(ownShards(plain, { count: 4, start })).rejects.toMatchObject({ setting: 'lease' });
    await inVirtualTime(fleet.clock, first);
  });

  it('says that the lease has been released', async () => {
    const fleet = shardFleet({ count: 4 });
    const lease = await fleet.plainTask();
    await inVirtualTime(fleet.clock, lease.release());
    await expect(ownShards(lease, { count: 4, start: () => undefined })).rejects.toMatchObject({
      code: 'LEASE_RELEASED',
    });
  });

  it.each<[string, object]>([
    ['count', { count: 0 }],
    ['start', { start: undefined }],
    ['options', { stopTimeout: 5 }],
    ['count', { count: 4_097 }],
    ['count', { count: 1.5 }],
    ['startTimeoutMs', { startTimeoutMs: -1 }],
    ['stopTimeoutMs', { stopTimeoutMs: -1 }],
    ['stopTimeoutMs', { stopTimeoutMs: Number.NaN }],
  ])('names the option that is wrong: %s in %j', async (setting, options) => {
    await expect(shardFleet({ count: 4 }).task(options)).rejects.toMatchObject({ setting });
  });
});
