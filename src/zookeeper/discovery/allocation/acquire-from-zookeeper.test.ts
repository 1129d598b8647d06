import { expect, it } from 'vitest';
import { ScriptedZooKeeper } from '../../../../test/support/scripted-zookeeper.js';
import { seededRandom, VirtualClock } from '../../../../test/support/virtual-clock.js';
import type { Lease, LeaseEvent } from '../../../core/lease/model/lease.js';
import { acquireFromZooKeeper } from './acquire-from-zookeeper.js';

it('gives 300 tasks that start at once an id each, fills the first group before it opens the next, and takes few requests', async () => {
  const clock = new VirtualClock();
  const sessions: ScriptedZooKeeper[] = [];
  const leases: Lease[] = [];
  const requests: number[] = [];
  const onEvent = (event: LeaseEvent) => event.type === 'acquired' && requests.push(event.requests);
  for (let task = 0; task < 300; task += 1) {
    const zookeeper = new ScriptedZooKeeper(clock, sessions.at(-1));
    // All number their transactions together, as servers do.
    zookeeper.zxid = BigInt(1_000 * task);
    sessions.push(zookeeper);
    void acquireFromZooKeeper({
      zookeeper,
      clock,
      random: seededRandom(task),
      taskId: `task-${task}`,
      onEvent,
    }).then((lease) => leases.push(lease));
  }
  for (let second = 0; second < 30 && leases.length < 300; second += 1) {
    await clock.advance(1_000);
    for (const zookeeper of sessions) zookeeper.fireWatches();
  }
  const ids = leases.map(({ id }) => id).sort((a, b) => a - b);
  expect(new Set(ids).size).toBe(300);
  expect(ids.slice(0, 248)).toEqual(Array.from({ length: 248 }, (_, id) => id));
  expect(ids.at(-1)).toBeLessThan(504);
  // One task looks at the claims of the first group for all others.
  const [, ...others] = requests.sort((a, b) => b - a);
  expect(others.reduce((a, b) => a + b, 0) / others.length).toBeLessThan(20);
});
