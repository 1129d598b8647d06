import { describe, expect, it } from 'vitest';
import { RewindableStore } from '../../../test/support/stores/rewindable-store.js';
import { inVirtualTime, seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { acquireLease } from '../../core/lease/acquire/acquire-lease.js';
import { StoreSession } from '../../core/lease/session/store-session.js';
import { ownShards, type ShardEvent } from './index.js';
import { repairShards } from './repair-shards.js';
import { SHARDS_KEY } from './shard-map.js';

/** Three tasks with six shards, of which one dies, and an operator. */
async function scene() {
  const clock = new VirtualClock();
  const store = new RewindableStore(clock);
  const runs: { task: number; shard: number; token: number; signal: AbortSignal; ended: boolean }[] = [];
  const violations: string[] = [];
  const events: ShardEvent[] = [];
  const isRunning = (run: (typeof runs)[number]) => !run.ended && !run.signal.aborted;
  const tasks = [];
  for (const task of [0, 1, 2]) {
    const network = { isCut: false };
    const connection = new Proxy(store, {
      get: (target, name: keyof RewindableStore) => {
        const value = target[name];
        if (typeof value !== 'function') return value;
        return network.isCut ? () => new Promise(() => undefined) : value.bind(target);
      },
    });
    const lease = await inVirtualTime(
      clock,
      acquireLease({
        ...{ store: connection, clock, random: seededRandom(task), taskId: `task-${task}`, nodes: 4 },
        ...{ durationMs: 15_000, graceMs: 1_000 },
      }),
    );
    const start = (shard: number, { token, signal }: { token: number; signal: AbortSignal }) => {
      for (const other of runs.filter((run) => run.shard === shard)) {
        if (isRunning(other)) violations.push(`shard ${shard} runs on ${other.task} and ${task}`);
        if (other.token >= token) violations.push(`shard ${shard} has token ${token} after ${other.token}`);
      }
      const run = { task, shard, token, signal, ended: false };
      runs.push(run);
      return () => {
        run.ended = true;
      };
    };
    await inVirtualTime(clock, ownShards(lease, { count: 6, start, onEvent: (event) => events.push(event) }));
    tasks.push({ lease, network });
  }
  await clock.advance(60_000);
  const running = () => runs.filter(isRunning);
  const session = new StoreSession(store, clock, 1_000);
  const repair = () => inVirtualTime(clock, repairShards({ session, clock, random: seededRandom(9) }));
  return { clock, store, tasks, running, violations, events, repair };
}

describe('shards in a store that has gone back (T11)', () => {
  it('start nowhere by a map that came back, and everywhere with greater tokens once it is repaired', async () => {
    const { clock, store, tasks, running, violations, events, repair } = await scene();
    expect(running()).toHaveLength(6);
    const [first] = tasks;
    if (first) first.network.isCut = true;
    let copy = store.save();
    let isTaken = false;
    store.before = (operation, key) => {
      if (operation !== 'write' || key !== SHARDS_KEY || isTaken) return;
      isTaken = true;
      copy = store.save();
    };
    while (!isTaken) await clock.advance(100);
    store.goBack(copy);
    await clock.advance(60_000);
    expect(events).toContainEqual({
      type: 'damaged',
      key: SHARDS_KEY,
      problem: expect.stringContaining('restored, promoted or replaced'),
    });
    expect(violations).toEqual([]);
    await repair();
    await clock.advance(60_000);
    expect(new Set(running().map(({ shard }) => shard)).size).toBe(6);
    expect(violations).toEqual([]);
    expect(tasks.map(({ lease }) => lease.isValid())).toEqual([false, true, true]);
  });
});
