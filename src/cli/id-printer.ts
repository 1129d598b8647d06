import { IdsExhaustedError } from '../id/id-error.js';
import { formatId } from '../id/id-format.js';
import type { UniqueIdGenerator } from '../id/unique-id-generator.js';
import { orAborted } from '../or-aborted.js';
import type { WantedIds } from './id-options.js';
import type { Io } from './io.js';

/** How many ids are written at once: enough to be quick, few enough to be nothing in memory. */
const CHUNK = 4_096;

/**
 * Prints ids, one on a line, as fast as there are any and as the reader takes them; waits where the generator has to. False when the
 * reader has gone before it had them all.
 *
 * @throws {LeaseLostError} when the lease is lost: what was printed before is good
 * @throws `signal.reason` as soon as `signal` aborts
 */
export async function printIds(
  ids: Pick<UniqueIdGenerator, 'fill'>,
  { count, format }: Pick<WantedIds, 'count' | 'format'>,
  io: Pick<Io, 'stdout' | 'taken' | 'clock'>,
  signal: AbortSignal,
): Promise<boolean> {
  const chunk = new BigUint64Array(Math.min(count, CHUNK));
  for (let left = count; left > 0; ) {
    signal.throwIfAborted();
    const { made, waitMs } = make(ids, chunk, Math.min(left, CHUNK));
    if (made > 0) {
      io.stdout(`${Array.from(chunk.subarray(0, made), (id) => formatId(id, format)).join('\n')}\n`);
      if (!(await orAborted(io.taken(), signal))) return false;
    }
    left -= made;
    if (waitMs > 0) await io.clock.sleep(waitMs, signal);
  }
  return true;
}

/** As many ids as there are now, and how long to wait for more. */
function make(ids: Pick<UniqueIdGenerator, 'fill'>, chunk: BigUint64Array, count: number): { made: number; waitMs: number } {
  try {
    ids.fill(chunk, 0, count);
    return { made: count, waitMs: 0 };
  } catch (error) {
    if (!(error instanceof IdsExhaustedError)) throw error;
    return { made: error.filled, waitMs: error.waitMs };
  }
}
