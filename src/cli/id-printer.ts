import { orAborted } from '../base/abort.js';
import { IdsExhaustedError } from '../id/id-error.js';
import { formatId } from '../id/id-format.js';
import type { UniqueIdGenerator } from '../id/unique-id-generator.js';
import type { WantedIds } from './id-options.js';
import type { Io } from './io.js';

/** How many ids are written at once: enough to be quick, few enough to be nothing in memory. */
const CHUNK = 4_096;
/** After how long without an id that is told, and how often it is told again, in milliseconds. */
const PATIENCE_MS = 5_000;
const REMINDER_MS = 60_000;

/**
 * Prints ids, one on a line, as fast as there are any and as the reader takes them; waits where the generator has to. False when the
 * reader has gone before it had them all.
 *
 * @param onDrought is told why there has been no id for some seconds, and then once a minute for as long as that lasts
 * @throws {LeaseLostError} when the lease is lost: what was printed before is good
 * @throws `signal.reason` as soon as `signal` aborts
 */
export async function printIds(
  ids: Pick<UniqueIdGenerator, 'fill'>,
  { count, format }: Pick<WantedIds, 'count' | 'format'>,
  io: Pick<Io, 'stdout' | 'taken' | 'clock'>,
  signal: AbortSignal,
  onDrought: (lack: IdsExhaustedError) => void,
): Promise<boolean> {
  const chunk = new BigUint64Array(Math.min(count, CHUNK));
  let tellAt = io.clock.monotonic() + PATIENCE_MS;
  for (let left = count; left > 0; ) {
    signal.throwIfAborted();
    const { made, lack } = make(ids, chunk, Math.min(left, CHUNK));
    if (made > 0) {
      io.stdout(`${Array.from(chunk.subarray(0, made), (id) => formatId(id, format)).join('\n')}\n`);
      if (!(await orAborted(io.taken(), signal))) return false;
    }
    left -= made;
    const now = io.clock.monotonic();
    // As of now: a reader that takes its time is no lack of ids.
    if (made > 0) tellAt = now + PATIENCE_MS;
    if (lack === undefined) continue;
    if (now >= tellAt) {
      onDrought(lack);
      tellAt = now + REMINDER_MS;
    }
    await io.clock.sleep(Math.min(lack.waitMs, tellAt - now), signal);
  }
  return true;
}

/** As many ids as there are now, and why there are no more. */
function make(ids: Pick<UniqueIdGenerator, 'fill'>, chunk: BigUint64Array, count: number): { made: number; lack?: IdsExhaustedError } {
  try {
    ids.fill(chunk, 0, count);
    return { made: count };
  } catch (error) {
    if (!(error instanceof IdsExhaustedError)) throw error;
    return { made: error.filled, lack: error };
  }
}
