import { describe, expect, it } from 'vitest';
import { seededRandom, VirtualClock } from '../../test/support/virtual-clock.js';
import { MemoryBucket } from '../store/memory/memory-bucket.js';
import { type MemoryIntercept, MemoryLeaseStore } from '../store/memory/memory-lease-store.js';
import { acquireLease } from './acquire-lease.js';
import { encodeCluster, newCluster } from './cluster-config.js';
import type { Lease } from './lease.js';

// Hundreds who start at once in a bucket that nobody has proven yet: the proof is some 80 requests, and one of them is enough.

const STARTERS = 300;
const MINUTE_MS = 60_000;

interface Shape {
  /** How long a request takes at the least and at the most, in milliseconds. */
  readonly latencyMs: readonly [number, number];
  /** Whether whoever is the first to probe is never heard of again. */
  readonly firstProberDies?: boolean;
  /** Whether the settings are there already, and nobody has proven the store. */
  readonly created?: boolean;
  readonly starters?: number;
}

/** Lets all of them start, and tells who has probed and what they all asked for. */
async function storm({ latencyMs: [least, most], firstProberDies = false, created = false, starters = STARTERS }: Shape) {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1_000);
  const settings = { nodes: STARTERS, durationMs: 3_600_000 };
  if (created) bucket.create('cluster.json', encodeCluster({ ...newCluster(settings), proven: false }), {});
  const probers = new Set<number>();
  let requests = 0;
  const random = seededRandom(7);
  const start = (task: number): Promise<Lease> => {
    const network: MemoryIntercept = async (call, apply) => {
      requests += 1;
      const latencyMs = least + random.next() * (most - least);
      await clock.sleep(latencyMs / 2);
      if (call.operation !== 'list' && call.key.startsWith('probe-')) probers.add(task);
      if (firstProberDies && [...probers][0] === task) return new Promise<never>(() => undefined);
      const reply = apply();
      await clock.sleep(latencyMs / 2);
      return reply;
    };
    const store = new MemoryLeaseStore({ clock, remote: true, intercept: network }, bucket);
    return acquireLease({ store, clock, random: seededRandom(task + 1), taskId: `task-${task}`, ...settings });
  };
  const ids: number[] = [];
  const failures: unknown[] = [];
  for (let task = 0; task < starters; task += 1) {
    start(task).then(
      ({ id }) => ids.push(id),
      (error) => failures.push(error),
    );
  }
  for (let minute = 0; minute < 60 && ids.length + failures.length < starters; minute += 1) await clock.advance(MINUTE_MS);
  return { ids: ids.sort((a, b) => a - b), failures, probers: probers.size, requestsATask: requests / starters };
}

const ALL = Array.from({ length: STARTERS }, (_, id) => id);

describe('of 300 who start at once in an empty bucket', () => {
  it.each([
    ['of a quick store one proves it', [20, 60], 1],
    // Nobody can tell a prober who is slow from one who has died: the others wait for a quarter of a minute, and twice as long each time.
    ['of a store that takes seconds to answer no more than a few prove it', [1_000, 2_000], 4],
  ] as const)('%s, and all get an id', async (_, latencyMs, most) => {
    const { ids, probers, requestsATask } = await storm({ latencyMs });
    expect(ids).toEqual(ALL);
    expect(probers).toBeLessThanOrEqual(most);
    expect(requestsATask).toBeLessThan(20);
  });

  it.each([
    [[20, 60], 2],
    [[1_000, 2_000], 4],
  ] as const)('another takes the proof over where the first one dies at it, with replies after %s ms', async (latencyMs, most) => {
    const { ids, probers, failures } = await storm({ latencyMs, firstProberDies: true });
    expect(ids).toHaveLength(STARTERS - 1);
    expect(failures).toHaveLength(1);
    expect(probers).toBeGreaterThan(1);
    expect(probers).toBeLessThanOrEqual(most);
  });
});

it('no more than a few of 300 take over what was left unproven long ago', async () => {
  const { ids, probers } = await storm({ latencyMs: [1_000, 2_000], created: true });
  expect(ids).toEqual(ALL);
  expect(probers).toBeLessThanOrEqual(4);
});

it('one who starts alone where the store was left unproven has an id within a minute', async () => {
  const { ids, probers } = await storm({ latencyMs: [20, 60], created: true, starters: 1 });
  expect({ ids, probers }).toEqual({ ids: [0], probers: 1 });
});
