import { describe, expect, it } from 'vitest';
import { type ShardTask, shardFleet } from '../../../test/support/shard-fleet.js';
import { seededRandom } from '../../../test/support/virtual-clock.js';
import { readExistingCluster } from '../../core/lease/session/cluster-store.js';
import { StoreError } from '../../core/store/lease-store.js';
import { findMembers } from './find-members.js';
import { SHARDS_KEY } from './shard-map.js';

const cutOff = (task: ShardTask) => {
  task.network.fault = () => new Promise(() => undefined);
};

/** Members of a map that has settled, and the look of the first one. */
async function scene(timeStepMs = 0) {
  const fleet = shardFleet({ count: 6, timeStepMs });
  const tasks = [await fleet.task(), await fleet.task(), await fleet.task()];
  await fleet.clock.advance(60_000);
  const session = fleet.session();
  const known = await readExistingCluster(session);
  const { members } = fleet.map();
  const me = members[0] ?? expect.unreachable();
  const look = () =>
    findMembers({
      session,
      known,
      members,
      me,
      random: seededRandom(1),
      signal: new AbortController().signal,
    });
  const mine = tasks.findIndex(({ lease }) => lease.id === me.id);
  return { fleet, look, others: tasks.filter((_, at) => at !== mine) };
}

describe('a look for members', () => {
  it('is not asked for again by objects that are no leases, however old', async () => {
    const { fleet, look } = await scene();
    const map = fleet.bucket.read(SHARDS_KEY);
    fleet.bucket.replace(SHARDS_KEY, `${map?.body}${' '.repeat(100)}`, {}, map?.etag ?? '');
    await fleet.clock.advance(12_000);
    expect(await look()).toMatchObject({ dueMs: Number.POSITIVE_INFINITY, members: { length: 3 } });
  });

  it('is asked for again for the moment at which an overdue lease is proven over, and not before', async () => {
    const { fleet, look, others } = await scene();
    cutOff(others[0] as ShardTask);
    await fleet.clock.advance(10_000);
    const { dueMs } = await look();
    await fleet.clock.advance(dueMs - 3);
    const early = await look();
    expect(early.members).toHaveLength(3);
    expect(early.dueMs).toBeLessThan(10);
    await fleet.clock.advance(3);
    expect((await look()).members).toHaveLength(2);
  });

  it('is asked for again while it is uncertain whether an overdue lease is over, as with whole seconds on S3', async () => {
    const { fleet, look, others } = await scene(1_000);
    const [{ lease }] = others as [ShardTask];
    cutOff(others[0] as ShardTask);
    const age = () => fleet.bucket.read(`${lease.id}.json`)?.age ?? expect.unreachable();
    while (age().max <= 16_000) await fleet.clock.advance(100);
    expect(age().min).toBeLessThanOrEqual(16_000);
    const { dueMs } = await look();
    expect(dueMs).toBeLessThan(5_000);
    await fleet.clock.advance(dueMs);
    expect((await look()).members).toHaveLength(2);
  });
});

describe('a member that has seen an overdue lease', () => {
  it.each([
    ['cannot list the leases', 'list'],
    ['cannot write the map', 'replace'],
  ])('looks again when that is over, and once more where it %s then', async (_, operation) => {
    const fleet = shardFleet({ count: 6 });
    // Whether a task is drawn: first each one, and later none.
    let lot = 0.01;
    const tasks: ShardTask[] = [];
    for (let at = 0; at < 4; at += 1)
      tasks.push(await fleet.task({ random: { ...seededRandom(at), next: () => lot } }));
    await fleet.clock.advance(60_000);
    expect(fleet.map().members).toHaveLength(4);
    const [looks, crashed, ...rest] = tasks as [ShardTask, ShardTask, ...ShardTask[]];
    const away = () => new StoreError('away', { fault: 'unreachable', outcome: 'not-applied' });
    cutOff(crashed);
    for (const { network } of rest)
      network.fault = (call) => {
        if (call.operation === 'list') throw away();
      };
    const ageMs = () => fleet.bucket.read(`${crashed.lease.id}.json`)?.age.min ?? 0;
    while (ageMs() < 13_000) await fleet.clock.advance(100);
    lot = 0.99;
    let failed = 0;
    looks.network.fault = (call) => {
      if (call.operation !== operation || ('key' in call && call.key !== SHARDS_KEY) || failed > 0) return;
      failed += 1;
      throw away();
    };
    await fleet.clock.advance(12_000);
    expect(failed).toBe(1);
    expect(fleet.map().members).toHaveLength(3);
  });
});
