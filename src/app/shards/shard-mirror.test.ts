import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { COUNT, counts, RIGHT, servedShards, warnings } from '../../../test/support/served-shards.js';
import { inVirtualTime, settled } from '../../../test/support/virtual-clock.js';
import { CLUSTER_KEY, encodeCluster, newCluster } from '../../core/lease/model/cluster-config.js';
import { leapt } from '../../core/lease/model/lease-state.js';
import { decodeMap, encodeMap, ownerless, SHARDS_KEY } from '../../node/shards/shard-map.js';

let { clock, bucket, node, close } = servedShards();
beforeEach(() => {
  ({ clock, bucket, node, close } = servedShards());
});
afterEach(() => close());

describe('the shards of a node', () => {
  it('are reported with their tokens, and nothing else', async () => {
    const first = await node();
    expect(await first.shards()).toEqual({ count: COUNT, epoch: 0, owned: [], stopping: [] });
    await clock.advance(5_000);
    const owned = Array.from({ length: COUNT }, (_, shard) => ({ shard, token: 2 }));
    expect(await first.shards()).toEqual({ count: COUNT, epoch: 2, owned, stopping: [] });
    expect(first.lines.filter(([level]) => level === 'info')).toEqual([
      ['info', expect.stringMatching(/follows \/shards\/events .* without one, they move when the work or/)],
    ]);
  });

  it('are stopped by a program that follows the events, and start elsewhere once it has answered', async () => {
    const first = await node();
    const program = await first.follow();
    await clock.advance(5_000);
    expect(program.news()).toEqual(
      Array.from({ length: COUNT }, (_, shard) => ({
        event: 'start',
        data: { shard, token: 2, deadline: null },
      })),
    );
    const second = await node();
    const other = await second.follow();
    await clock.advance(30_000);
    expect(await counts(first)).toEqual([4, 4]);
    const { stopping } = await first.shards();
    const stops = program.of('stop').map(({ data }) => data);
    expect(stops.map(({ shard, token }) => ({ shard, token }))).toEqual(stopping);
    // They were asked some time in the last 20 s.
    for (const { deadline } of stops) {
      expect(deadline).toBeGreaterThan(clock.now() + 10_000);
      expect(deadline).toBeLessThanOrEqual(clock.now() + 30_000);
    }
    expect(await counts(second)).toEqual([0, 0]);
    for (const each of stopping) expect(await first.stopped(each)).toBe(204);
    await clock.advance(5_000);
    expect(await counts(first)).toEqual([4, 0]);
    const { owned, epoch } = await second.shards();
    expect(owned.map(({ shard }) => shard)).toEqual(stopping.map(({ shard }) => shard));
    expect(Math.min(...owned.map(({ token }) => token))).toBeGreaterThan(2);
    expect(other.news().map(({ data: { deadline: _, ...held } }) => held)).toEqual(owned);
    expect((await first.shards()).epoch).toBe(epoch);
    expect(warnings(first)).toEqual([]);
  });

  it('whose program says that its work has failed start elsewhere, and that node gets no more for now', async () => {
    const first = await node();
    await clock.advance(5_000);
    const second = await node();
    await clock.advance(6_000);
    const [failing] = (await first.shards()).owned;
    expect(await first.failed(0, 'x')).toBe(400);
    expect(await first.failed(0, 17)).toBe(404);
    expect(await first.failed(failing?.shard ?? -1, failing?.token ?? -1)).toBe(204);
    await clock.advance(6_000);
    expect(await counts(first)).toEqual([COUNT - 1, 0]);
    expect((await second.shards()).owned).toEqual([{ shard: failing?.shard, token: expect.any(Number) }]);
    expect(warnings(first)).toEqual([['warn', 'the program says that its work on the shard has failed']]);
  });

  it('whose program fails at once each time begin again ever less often', async () => {
    const first = await node();
    const program = await first.follow();
    await clock.advance(4_000);
    let answered = 0;
    for (let second = 0; second < 120; second += 1) {
      for (const { data } of program.of('start').slice(answered)) {
        answered += 1;
        if (data.shard === 3) expect(await first.failed(3, data.token)).toBe(204);
      }
      await clock.advance(1_000);
    }
    const starts = program.of('start').filter(({ data }) => data.shard === 3);
    expect(starts.length).toBeGreaterThan(3);
    expect(starts.length).toBeLessThan(8);
    expect(await counts(first)).toEqual([COUNT - 1, 0]);
  });

  it('stay as they are where no program follows, and move when the work ends, or when one follows', async () => {
    const first = await node();
    await clock.advance(5_000);
    await node();
    await clock.advance(90_000);
    expect(await counts(first)).toEqual([COUNT, 0]);
    expect(warnings(first)).toEqual([]);
    // One that comes late is asked now, and has all of the time.
    const program = await first.follow();
    await clock.advance(0);
    expect(program.of('stop')).toHaveLength(4);
    expect(program.of('stop')[0]?.data.deadline).toBe(clock.now() + 30_000);
    first.publisher.isWorking = false;
    await clock.advance(5_000);
    expect(await counts(first)).toEqual([4, 0]);
  });

  it('wait for the answer of a program that is late, which the log reports', async () => {
    const first = await node();
    await first.follow();
    await clock.advance(5_000);
    const second = await node();
    await clock.advance(70_000);
    expect(warnings(first)).toEqual([
      ['warn', expect.stringMatching(/^4 shards \(\d, \d, \d, \d\) have not stopped within 30000 ms$/)],
    ]);
    expect([await counts(first), await counts(second)]).toEqual([
      [4, 4],
      [0, 0],
    ]);
    for (const { shard } of (await first.shards()).stopping) await first.stopped({ shard });
    await clock.advance(5_000);
    expect([await counts(first), await counts(second)]).toEqual([
      [4, 0],
      [4, 0],
    ]);
  });

  it('are stopped by an answer for a shard that is to stop, under its token, and by no other', async () => {
    const first = await node();
    await first.follow();
    await clock.advance(5_000);
    await node();
    await clock.advance(30_000);
    const { owned, stopping } = await first.shards();
    const [running, { shard }] = [owned[0]?.shard ?? -1, stopping[0] ?? { shard: -1 }];
    const refused = async (path: string, init: RequestInit = { method: 'POST' }) => {
      const response = await first.ask(path, init);
      const { error } = (await response.json()) as { error: string };
      return [response.status, error];
    };
    expect(await refused(`/shards/${running}/stopped`)).toEqual([404, 'not-found']);
    expect(await refused(`/shards/${shard}/stopped?token=1`)).toEqual([409, 'conflict']);
    for (const path of ['x', '-1', String(COUNT), '1.5'])
      expect(await refused(`/shards/${path}/stopped`)).toEqual([400, 'bad-request']);
    expect(await refused(`/shards/${shard}/stopped?token=x`)).toEqual([400, 'bad-request']);
    expect(await refused(`/shards/${shard}/stopped`, {})).toEqual([405, 'method-not-allowed']);
    // A page of another origin.
    const headers = { origin: 'http://evil.example', host: '127.0.0.1' };
    expect(await refused(`/shards/${shard}/stopped`, { method: 'POST', headers })).toEqual([
      403,
      'forbidden',
    ]);
    await clock.advance(1_000);
    expect((await first.shards()).stopping).toEqual(stopping);
  });

  it('stop and fail under the tokens of a map that was repaired, which are made of the time', async () => {
    const floor = leapt(0, Date.UTC(2027, 0));
    const settings = newCluster({ nodes: 4, durationMs: 15_000, graceMs: 1_000 });
    const shards = { count: COUNT, floor, created: true };
    bucket.create(CLUSTER_KEY, encodeCluster({ ...settings, shards }), {});
    bucket.create(SHARDS_KEY, encodeMap(ownerless(floor + 1, COUNT)), {});
    const first = await node();
    await first.follow();
    await clock.advance(5_000);
    await node();
    await clock.advance(30_000);
    const { owned, stopping } = await first.shards();
    expect(stopping).toHaveLength(4);
    for (const each of stopping) expect(await first.stopped(each)).toBe(204);
    const [{ shard, token } = { shard: -1, token: -1 }] = owned;
    expect(token).toBeGreaterThan(1e15);
    expect(await first.failed(shard, token)).toBe(204);
  });

  it('are not stopped by an answer without a token that may repeat the one to an earlier stop', async () => {
    const first = await node({ stopTimeoutMs: 120_000 });
    await first.follow();
    await clock.advance(5_000);
    /** Another node joins, and shards are to move to it. */
    const join = async () => {
      const other = await node();
      await clock.advance(30_000);
      return { other, stopping: (await first.shards()).stopping };
    };
    const { other, stopping } = await join();
    for (const { shard } of stopping) expect(await first.stopped({ shard })).toBe(204);
    await clock.advance(5_000);
    other.publisher.isWorking = false;
    await inVirtualTime(clock, other.lease.release());
    await clock.advance(6_000);
    const again = await join();
    const [repeated, ...rest] = again.stopping.filter(({ shard }) =>
      stopping.some((each) => each.shard === shard),
    );
    expect(rest.length).toBeGreaterThan(0);
    const { shard, token } = repeated ?? expect.unreachable();
    expect(await first.stopped({ shard })).toBe(409);
    expect((await first.shards()).stopping).toEqual(again.stopping);
    expect(await first.stopped({ shard, token })).toBe(204);
    // Once the deadline of the earlier stop has passed, it is clear.
    await clock.advance(90_000);
    expect(await first.stopped({ shard: rest[0]?.shard ?? -1 })).toBe(204);
  });

  it('are shown to programs with the token only, and stopped by them only, where there is one', async () => {
    const first = await node({ hasToken: true });
    const headers = { authorization: `Bearer ${RIGHT}` };
    const statuses = async (init: RequestInit) => [
      (await first.ask('/shards', init)).status,
      (await first.ask('/shards/events', { ...init, method: 'HEAD' })).status,
      (await first.ask('/shards/0/stopped', { ...init, method: 'POST' })).status,
    ];
    expect(await statuses({})).toEqual([401, 401, 401]);
    expect(await statuses({ headers })).toEqual([200, 200, 404]);
  });

  it('are not owned in the first answer after a pause that has outlasted the lease', async () => {
    const first = await node();
    await clock.advance(5_000);
    clock.freeze(15_000);
    expect(await counts(first)).toEqual([0, 0]);
  });

  it('are no events after such a pause but for a stop of each, once', async () => {
    const first = await node();
    const program = await first.follow();
    await clock.advance(5_000);
    expect(program.of('start')).toHaveLength(COUNT);
    clock.freeze(15_000);
    const late = await first.follow();
    await clock.advance(3_000);
    expect(program.of('stop')).toHaveLength(COUNT);
    expect([...late.of('start'), ...late.of('stop')]).toEqual([]);
  });

  it('are to be stopped at once when the lease is lost', async () => {
    const first = await node();
    const program = await first.follow();
    await clock.advance(5_000);
    first.isAway.value = true;
    await clock.advance(15_000);
    expect(first.lease.signal.aborted).toBe(true);
    const deadlines = program.of('stop').map(({ data }) => data.deadline ?? Number.POSITIVE_INFINITY);
    expect(deadlines).toHaveLength(COUNT);
    expect(Math.max(...deadlines)).toBeLessThanOrEqual(clock.now());
    expect(await counts(first)).toEqual([0, 0]);
  });

  it('are to be stopped at once when the lease is lost, also where a stop had more time', async () => {
    const first = await node();
    const program = await first.follow();
    await clock.advance(5_000);
    await node();
    await clock.advance(30_000);
    expect(await counts(first)).toEqual([4, 4]);
    first.isAway.value = true;
    await clock.advance(13_000);
    expect(first.lease.signal.aborted).toBe(true);
    const last = new Map(program.of('stop').map(({ data: { shard, deadline } }) => [shard, deadline]));
    expect(last.size).toBe(COUNT);
    expect(Math.max(...[...last.values()].map(Number))).toBeLessThanOrEqual(clock.now());
  });

  it('are handed on when the work has ended, before the lease is released', async () => {
    const first = await node();
    await clock.advance(5_000);
    const second = await node();
    let isReleased = false;
    const releasing = first.lease.release().then(() => {
      isReleased = true;
    });
    await clock.advance(10_000);
    // Without work that has ended it is renewed, and nothing moves.
    expect([isReleased, await counts(first), await counts(second)]).toEqual([false, [COUNT, 0], [0, 0]]);
    first.publisher.isWorking = false;
    await inVirtualTime(clock, releasing);
    await clock.advance(5_000);
    expect([await counts(first), await counts(second)]).toEqual([
      [0, 0],
      [COUNT, 0],
    ]);
    second.publisher.isWorking = false;
    await inVirtualTime(clock, second.lease.release());
    expect(decodeMap(bucket.read(SHARDS_KEY)?.body ?? '').shards.map(({ owner }) => owner)).toEqual(
      Array.from({ length: COUNT }, () => undefined),
    );
  });

  it('are known to a thread that takes the place of another one, which asks once it is followed', async () => {
    const first = await node();
    await first.follow();
    await clock.advance(5_000);
    first.restartThread();
    await node();
    await clock.advance(30_000);
    expect(await counts(first)).toEqual([COUNT, 0]);
    const program = await first.follow();
    await clock.advance(0);
    expect([program.of('start').length, program.of('stop').length]).toEqual([COUNT, 4]);
    // A further program, or the same again, gets all that there is.
    first.restartThread();
    const again = await first.follow();
    expect([again.of('start').length, again.of('stop').length]).toEqual([4, 4]);
  });
});

describe('pages of another origin', () => {
  it('neither follow the shards nor ask for them, so that nothing stops for them', async () => {
    const first = await node();
    await clock.advance(5_000);
    await node();
    await clock.advance(90_000);
    const host = { host: '127.0.0.1' };
    for (const header of [
      { origin: 'http://evil.example' },
      { origin: 'null' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
    ])
      for (const path of ['/shards/events', '/shards', '/shards/stopped', '/shards/0/stopped'])
        for (const method of path.endsWith('stopped') ? ['POST'] : ['GET', 'HEAD']) {
          const response = await first.ask(path, { method, headers: Object.entries({ ...host, ...header }) });
          expect(response.status, `${method} ${path} ${JSON.stringify(header)}`).toBe(403);
        }
    expect((await first.ask('/shards/events', { method: 'HEAD' })).status).toBe(200);
    await clock.advance(1_000);
    expect(await counts(first)).toEqual([COUNT, 0]);
    for (const site of ['same-origin', 'none'])
      expect((await first.ask('/shards', { headers: { 'sec-fetch-site': site } })).status).toBe(200);
  });
});

describe('many shards', () => {
  it('cost one message for all that changes in a turn, with what has changed, and one line of the log', async () => {
    const first = await node({ count: 1_024 });
    await first.follow();
    await clock.advance(5_000);
    await node({ count: 1_024 });
    first.messages.splice(0);
    await clock.advance(25_000);
    // 512 stops in two turns, and messages of epochs.
    expect(first.messages.filter((changed) => changed > 0)).toEqual([256, 256]);
    const { stopping } = await first.shards();
    first.messages.splice(0);
    for (const each of stopping.slice(0, 100)) void first.stopped(each);
    await settled();
    await clock.advance(0);
    expect(first.messages.reduce((sum, changed) => sum + changed)).toBe(100);
    expect(first.messages.length).toBeLessThan(5);
    first.messages.splice(0);
    await clock.advance(31_000);
    expect(warnings(first).map(([, text]) => text)).toEqual(
      expect.arrayContaining([expect.stringMatching(/^\d+ shards \(.*, and \d+ more\) have not stopped/)]),
    );
    expect(warnings(first).length).toBeLessThanOrEqual(2);
  });
});
