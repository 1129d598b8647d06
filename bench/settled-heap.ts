import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

/** Collections, with turns of the event loop between them for what is let go of only then. */
const COLLECTIONS = 4;

/**
 * What this process holds after garbage has been collected, in bytes: V8's heap and the buffers outside of
 * it.
 */
export async function settledHeap(): Promise<number> {
  for (let i = 0; i < COLLECTIONS; i += 1) {
    collect();
    await turn();
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
