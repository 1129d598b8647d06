import { describe, expect, it } from 'vitest';
import { scaleScene } from '../../../test/support/scale-scene.js';
import { seededRandom } from '../../../test/support/virtual-clock.js';
import { acquireLease } from '../lease/acquire/acquire-lease.js';
import type { Lease } from '../lease/model/lease.js';
import { uniqueIds } from './lease-ids.js';
import type { UniqueIdGenerator } from './unique-id-generator.js';

/** A holder with its own generator. */
interface Maker {
  readonly lease: Lease;
  readonly ids: UniqueIdGenerator;
}

/** A cluster, the makers of ids on it, and every id and every tenure that there was. */
async function fleet(nodes: number) {
  const it = await scaleScene({ nodes });
  const made = new Set<bigint>();
  const tenures = new Map<number, number[]>();
  let tasks = 0;
  const join = async (): Promise<Maker> => {
    tasks += 1;
    const lease = await acquireLease({
      store: it.store.connect(),
      clock: it.clock,
      random: seededRandom(tasks),
      taskId: `task-${tasks}`,
    });
    tenures.set(lease.id, [...(tenures.get(lease.id) ?? []), lease.version]);
    return { lease, ids: await uniqueIds(lease) };
  };
  /** Ten ids of each, those of the lost ones included, whose generators must refuse. */
  const makeSome = (makers: readonly Maker[]) => {
    for (const { lease, ids } of makers) {
      for (let i = 0; i < 10; i += 1) {
        let id: bigint;
        try {
          id = ids.next();
        } catch (error) {
          if (lease.isValid()) throw error;
          break;
        }
        if (made.has(id))
          throw new Error(
            `${id} has been made twice, the second time by ${lease.taskId} as node ${lease.id}`,
          );
        made.add(id);
      }
    }
  };
  /** Lets time pass, a second at a time, while all generators make ids. */
  const pass = async (seconds: number, makers: readonly Maker[]) => {
    for (let second = 0; second < seconds; second += 1) {
      makeSome(makers);
      await it.clock.advance(1_000);
      makeSome(makers);
    }
  };
  return { ...it, made, tenures, join, pass };
}

describe('unique ids on a cluster that grows, shrinks and grows again', () => {
  it('never repeat, nor does a version, and no task that stays is disturbed', async () => {
    const { scale, cluster, clock, made, tenures, join, pass } = await fleet(4);
    const joinAll = async (count: number) => Promise.all(Array.from({ length: count }, join));
    const all: Maker[] = await joinAll(4);
    await pass(3, all);

    const growth = scale(300);
    await pass(12, all);
    expect(growth.state.outcome).toMatchObject({ kind: 'scaled', to: 300, idWidth: 9 });
    all.push(...(await joinAll(60)));
    const staying = all.filter(({ lease }) => lease.id < 8);
    await pass(3, all);

    const shrinking = scale(8, { drainTimeoutMs: 12_000 });
    // Every second holder releases its id when it learns of the retirement. The others continue until it is
    // taken away.
    for (const [index, { lease }] of all.entries()) {
      if (index % 2 === 0) lease.retiring.addEventListener('abort', () => void lease.release());
    }
    await pass(14, all);
    expect(shrinking.state.outcome).toMatchObject({ kind: 'scaled', to: 8 });

    await scale(300).end();
    expect(cluster()).toMatchObject({ size: 300, peak: 300, idWidth: 9, generation: 3 });
    // Long enough that all free ids are taken again, including those that were taken away, once their
    // holders' time is over.
    const joining = Array.from({ length: 300 - staying.length }, async () => all.push(await join()));
    await pass(40, all);
    await Promise.all(joining);
    await pass(2, all);

    expect(staying.length).toBeGreaterThanOrEqual(4);
    for (const { lease } of staying) {
      expect([lease.retiring.aborted, lease.signal.aborted, lease.isValid()]).toEqual([false, false, true]);
    }
    expect(all.filter(({ lease }) => lease.isValid())).toHaveLength(300);
    expect(
      [...tenures.values()].filter((versions) =>
        versions.some((version, i) => i > 0 && version <= (versions[i - 1] ?? 0)),
      ),
    ).toEqual([]);
    expect([...tenures.values()].some((versions) => versions.join() === '1,2')).toBe(true);
    expect([...tenures.values()].some((versions) => versions.join() === '1,3')).toBe(true);
    expect(made.size).toBeGreaterThan(10_000);
    await Promise.all(all.map(({ lease }) => lease.release()));
    // The generators' own clocks tick once more.
    await clock.advance(200);
    expect(clock.sleepers).toBe(0);
  });
});
