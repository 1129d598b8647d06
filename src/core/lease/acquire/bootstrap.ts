import type { RandomSource } from '../../base/clock.js';
import { StoreError } from '../../store/lease-store.js';
import { nativeCodec } from '../model/lease-codec.js';
import { leaseKey } from '../model/lease-state.js';
import { markCluster, readExistingCluster } from '../session/cluster-store.js';
import { type SessionCall, type StoreSession, UNHURRIED_LISTING_MS } from '../session/store-session.js';
import { absentIds } from './candidates.js';
import type { AcquireContext } from './claim.js';

type BootstrapContext = Pick<AcquireContext, 'session' | 'clock' | 'random' | 'emit'>;

/** After this many objects that exist already, this task stops: another task is creating the rest. */
const YIELD_AFTER = 3;

/** First and longest pause between two listings of the missing objects, in milliseconds. */
const PAUSE_MS = { first: 500, max: 10_000 };

/**
 * Creates the missing lease objects while the caller's lease is held, and records when all exist. No task
 * waits for it: a starter creates the object of the id that it takes.
 *
 * Resolves when the cluster is bootstrapped or `ending` aborts; never rejects.
 */
export async function completeBootstrap(context: BootstrapContext, ending: AbortSignal): Promise<void> {
  const { clock, random, emit } = context;
  for (let pauseMs = PAUSE_MS.first; !ending.aborted; pauseMs = Math.min(pauseMs * 2, PAUSE_MS.max)) {
    try {
      await clock.sleep(pauseMs * (1 + random.next()), ending);
      const step = await bootstrapStep(context, ending);
      if (step === 'completed') emit({ type: 'bootstrapped' });
      if (step !== 'incomplete') return;
    } catch (error) {
      // A failure of the store is tried again. Any other failure is reported by the lease's renewals.
      if (ending.aborted || !(error instanceof StoreError)) return;
    }
  }
}

async function bootstrapStep(
  context: BootstrapContext,
  ending: AbortSignal,
): Promise<'completed' | 'known' | 'incomplete'> {
  const { session, random } = context;
  const call = { signal: ending };
  const cluster = await readExistingCluster(session, call);
  if (cluster.config.bootstrapped) return 'known';
  const absent = absentIds((await session.list(call)).objects, cluster.config.peak);
  if (absent.length === 0)
    return (await markCluster(session, cluster, 'bootstrapped', call)) === undefined
      ? 'incomplete'
      : 'completed';
  let existing = 0;
  for (const id of shuffled(absent, random)) {
    if (ending.aborted || existing === YIELD_AFTER) return 'incomplete';
    if ((await createVacant(session, id, call)) === 'exists') existing += 1;
  }
  // The task that marks the cluster has seen every object in a listing, not only replies to its own writes.
  return bootstrapStep(context, ending);
}

/** Creates the object of an id that was never held. */
export async function createVacant(
  session: StoreSession,
  id: number,
  call: SessionCall = {},
): Promise<'created' | 'exists'> {
  const result = await session.write(leaseKey(id), nativeCodec.encode({ kind: 'vacant' }), undefined, call);
  return result.status === 'written' ? 'created' : 'exists';
}

/** Ids below `size` without an object, by a fresh listing. */
export async function listAbsentIds(session: StoreSession, size: number): Promise<readonly number[]> {
  const { objects } = await session.list({
    timeoutMs: Math.max(UNHURRIED_LISTING_MS, session.listTimeoutMs),
  });
  return absentIds(objects, size);
}

function shuffled(ids: readonly number[], random: RandomSource): number[] {
  const order = [...ids];
  for (let i = order.length - 1; i > 0; i -= 1) {
    const j = Math.floor(random.next() * (i + 1));
    [order[i], order[j]] = [order[j] as number, order[i] as number];
  }
  return order;
}
