import { onAbort } from './abort.js';

/** How many requests one caller has in flight at most, unless there is a reason for another number. */
export const REQUESTS_AT_ONCE = 16;

/**
 * Runs `work` on every item, at most `limit` at a time. The results are in the items' order. The first
 * failure ends it, and so does `signal`: the signals of the running calls abort, and no further item is
 * begun.
 *
 * @throws what `work` threw first, or `signal.reason`
 */
export async function concurrently<T, R>(
  items: readonly T[],
  limit: number,
  work: (item: T, signal: AbortSignal) => Promise<R>,
  signal?: AbortSignal,
): Promise<R[]> {
  signal?.throwIfAborted();
  const results = new Array<R>(items.length);
  const queue = items.entries();
  // Each worker has its own signal: with more than ten listeners on one signal the runtime warns of a leak.
  const workers = Array.from({ length: Math.min(limit, items.length) }, () => new AbortController());
  const end = (reason: unknown) => {
    for (const worker of workers) worker.abort(reason);
  };
  const cancel = onAbort(signal, () => end(signal?.reason));
  try {
    await Promise.all(
      workers.map(async ({ signal: own }) => {
        for (const [index, item] of queue) {
          own.throwIfAborted();
          results[index] = await work(item, own);
        }
      }),
    );
  } catch (error) {
    end(error);
    throw error;
  } finally {
    cancel();
  }
  return results;
}
