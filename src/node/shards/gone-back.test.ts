import { describe, expect, it } from 'vitest';
import { RewindableStore } from '../../../test/support/stores/rewindable-store.js';
import { inVirtualTime, seededRandom, VirtualClock } from '../../../test/support/virtual-clock.js';
import { acquireLease } from '../../core/lease/acquire/acquire-lease.js';
import type { Lease } from '../../core/lease/model/lease.js';
import { StoreSession } from '../../core/lease/session/store-session.js';
import { ownShards, type ShardEvent } from './index.js';
import { repairShards } from './repair-shards.js';
import { decodeMap, SHARDS_KEY } from './shard-map.js';

interface Network {
  isCut: boolean;
  /** Called before each request of the task. */
  before: (operation: string, key: string) => Promise<void>;
}

/** Three tasks with six shards, of which one dies, and an operator. */
async function scene() {
  const clock = new VirtualClock();
  const store = new RewindableStore(clock);
  const runs: { task: number; shard: number; token: number; signal: AbortSignal; ended: boolean }[] = [];
  const violations: string[] = [];
  const events: ShardEvent[] = [];
  const isRunning = (run: (typeof runs)[number]) => !run.ended && !run.signal.aborted;
  const tasks: { lease: Lease; network: Network }[] = [];
  const join = async () => {
    const task = tasks.length;
    const network: Network = { isCut: false, before: async () => undefined };
    const connection = new Proxy(store, {
      get: (target, name: keyof RewindableStore) => {
        const value = target[name];
        if (typeof value !== 'function') return value;
        if (network.isCut) return () => new Promise(() => undefined);
        return async (...request: [string]) => {
          await network.before(name, request[0]);
          return (value as (...request: [string]) => unknown).apply(target, request);
        };
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
  };
  for (const _ of [0, 1, 2]) await join();
  await clock.advance(60_000);
  const running = () => runs.filter(isRunning);
  const session = new StoreSession(store, clock, 1_000);
  const repair = () => inVirtualTime(clock, repairShards({ session, clock, random: seededRandom(9) }));
  return { clock, store, tasks, join, runs, running, violations, events, repair };
}

describe('shards in a store that has gone back (T11)', () => {
  it('start nowhere by a map that came back, and everywhere with greater tokens once it is repaired', async () => {
    const { clock, store, tasks, join, running, violations, events, repair } = await scene();
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
    // It records that.
    await join();
    await clock.advance(60_000);
    expect(events).toContainEqual(expect.objectContaining({ type: 'damaged', key: SHARDS_KEY }));
    expect(violations).toEqual([]);
    await repair();
    await clock.advance(60_000);
    expect(new Set(running().map(({ shard }) => shard)).size).toBe(6);
    expect(violations).toEqual([]);
    expect(tasks.map(({ lease }) => lease.isValid())).toEqual([false, true, true, true]);
  });

  it('start nowhere by a write that was decided before and applied afterwards', async () => {
    const { clock, store, tasks, runs, running, violations } = await scene();
    const [dead, ...others] = tasks;
    if (dead) dead.network.isCut = true;
    let copy: ReturnType<typeof store.save> | undefined;
    let release: () => void = () => undefined;
    for (const { network } of others)
      network.before = async (operation, key) => {
        if (operation !== 'replace' || key !== SHARDS_KEY || copy !== undefined) return;
        copy = store.save();
        await new Promise<void>((resolve) => {
          release = resolve;
        });
      };
    while (copy === undefined) await clock.advance(100);
    // Another task takes what the slow one is about to take, and the store forgets that.
    const { epoch, shards } = decodeMap(copy.get(SHARDS_KEY)?.body ?? '');
    const { signal } = new AbortController();
    for (const [shard, { owner }] of shards.entries())
      if (owner?.id === dead?.lease.id) runs.push({ task: 9, shard, token: epoch + 1, signal, ended: false });
    store.goBack(copy);
    release();
    await clock.advance(60_000);
    expect(running().filter(({ task }) => task === 9)).toHaveLength(2);
    expect(violations).toEqual([]);
  });

  it('start nowhere before a repair where the map is lost by which others run them', async () => {
    const { clock, store, join, running, violations, repair } = await scene();
    const copy = new Map(store.save());
    const settings = copy.get('cluster.json');
    copy.delete(SHARDS_KEY);
    if (settings) {
      const { shards: _, ...before } = JSON.parse(settings.body);
      copy.set('cluster.json', { ...settings, body: JSON.stringify(before) });
    }
    store.goBack(copy);
    const [last] = running();
    await join();
    await clock.advance(60_000);
    expect(running()).toHaveLength(6);
    expect(running()).toContain(last);
    await repair();
    await clock.advance(60_000);
    expect(new Set(running().map(({ shard, task }) => `${shard} ${task}`)).size).toBe(6);
    expect(running()).not.toContain(last);
    expect(violations).toEqual([]);
  });

  it('get tokens above those of a repair that is lost with another copy', async () => {
    const { clock, store, running, violations, repair } = await scene();
    const copy = store.save();
    for (const _ of [1, 2]) {
      store.goBack(copy);
      await repair();
      await clock.advance(60_000);
      expect(running()).toHaveLength(6);
    }
    expect(violations).toEqual([]);
  });
});
