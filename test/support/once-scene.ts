import type { Clock } from '../../src/core/base/clock.js';
import { StoreError } from '../../src/core/store/lease-store.js';
import { MemoryBucket } from '../../src/core/store/memory/memory-bucket.js';
import { type MemoryCall, MemoryLeaseStore } from '../../src/core/store/memory/memory-lease-store.js';
import { type OnceOptions, oncePer } from '../../src/node/locks/once.js';
import type { OnceRun } from '../../src/node/locks/once-run.js';
import type { TickRecord } from '../../src/node/locks/tick.js';
// Loaded here, and not by the first lock: virtual time continues while a module is being read.
import '../../src/core/lease/acquire/acquire-lease.js';
import { seededRandom, VirtualClock } from './virtual-clock.js';

export const UNREACHABLE = new StoreError('fault', { fault: 'unreachable', outcome: 'unknown' });

/** What becomes of a request on its way. @returns the reply, or throws */
export type Network = <Reply>(call: MemoryCall, apply: () => Reply) => Promise<Reply>;

/** What a request does with `tick.json`; undefined for one of another object. */
export function ofTick(call: MemoryCall): MemoryCall['operation'] | undefined {
  return 'key' in call && call.key === 'tick.json' ? call.operation : undefined;
}
/** Whether it writes it. */
export const writesTick = (call: MemoryCall) => ['create', 'replace'].includes(ofTick(call) ?? '');

/**
 * The hosts of a store with locks and ticks, in virtual time.
 *
 * @param careless whether the store ignores the etag of a replacement of `tick.json`
 * @param resolutionMs what its times are cut to
 */
export function onceScene({ careless = false, resolutionMs = 1 } = {}) {
  const clock = new VirtualClock();
  const buckets = new Map<string, MemoryBucket>();
  const bucketAt = (path: string) => {
    const known = buckets.get(path);
    if (known) return known;
    const bucket = new MemoryBucket(clock, resolutionMs);
    buckets.set(path, bucket);
    const replace = bucket.replace.bind(bucket);
    if (careless)
      bucket.replace = (key, body, metadata, etag) =>
        replace(key, body, metadata, (key === 'tick.json' && bucket.read(key)?.etag) || etag);
    return bucket;
  };
  let tasks = 0;
  /**
   * One process on a host.
   *
   * @param offMs how far its host's wall clock is ahead
   * @param network between it and the store
   */
  const process = ({
    offMs = 0,
    network = async (_, apply) => apply(),
  }: {
    offMs?: number;
    network?: Network;
  } = {}) => {
    tasks += 1;
    const taskId = `task-${tasks}`;
    const calls: (MemoryCall & { path: string })[] = [];
    let open = 0;
    const own: Clock = {
      now: () => clock.now() + offMs,
      monotonic: () => clock.monotonic(),
      sleep: (ms, signal) => clock.sleep(ms, signal),
    };
    const store = (path: string) => {
      open += 1;
      const opened = new MemoryLeaseStore(
        {
          clock: own,
          intercept: (call, apply) => {
            calls.push({ ...call, path });
            return network(call, apply);
          },
        },
        bucketAt(path),
      );
      opened.close = async () => {
        open -= 1;
      };
      return opened;
    };
    const once = (options: Partial<OnceOptions> = {}): Promise<OnceRun | undefined> =>
      oncePer(store, {
        ...{ name: 'nightly', clock: own, random: seededRandom(tasks), taskId },
        ...{ durationMs: 15_000, graceMs: 1_000, ...options },
      });
    return { taskId, store, once, clock: own, calls, open: () => open };
  };
  const record = () => {
    const object = bucketAt('locks/nightly').read('tick.json');
    return object && (JSON.parse(object.body) as TickRecord);
  };
  return { clock, bucketAt, process, record };
}
