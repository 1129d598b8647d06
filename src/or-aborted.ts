import { onAbort } from './abort-fan.js';

/**
 * Waits for `work` no longer than the caller wants to: what becomes of it afterwards is nobody's business. Leaves no listener behind; any number may wait with one signal.
 *
 * @throws what `work` rejects with
 * @throws `signal.reason` as soon as `signal` aborts
 */
export async function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return work;
  signal.throwIfAborted();
  let forget: () => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => {
    forget = onAbort(signal, () => reject(signal.reason));
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    forget();
  }
}
