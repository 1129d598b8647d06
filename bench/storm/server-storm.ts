import type { Clock } from '../../src/core/base/clock.js';
import { systemClock, systemRandom } from '../../src/core/base/system.js';
import type { Lease } from '../../src/core/lease/model/lease.js';
import { initializeCluster } from '../../src/core/lease/operate/initialize.js';
import { StoreSession } from '../../src/core/lease/session/store-session.js';
import { openStore } from '../../src/core/store/open-store.js';
import type { StoreAccess, StoreServer } from '../../test/support/stores/store-server.js';
import type { Contestant } from './contestants.js';
import { type CountedStore, counted } from './counted-store.js';
import { NO_REQUESTS } from './request-count.js';
import { checkDistinct, type Storm } from './storm.js';

export interface ServerStormOptions {
  readonly contestant: Contestant;
  readonly server: StoreServer;
  readonly starters: number;
  /** Whether the cluster is made before the storm, as by `nodelease init`. @default false */
  readonly initialised?: boolean;
}

/** Tasks and server share a machine: no task is to miss a renewal for that. Milliseconds. */
const DURATION_MS = 3_600_000;
/** Longer than the engine's own patience, which is what counts. Milliseconds. */
const REQUEST_TIMEOUT_MS = 120_000;
/**
 * Time-outs of a request that both contestants have, distinguished by their length from pauses, which are
 * drawn by chance; and what they last here. Milliseconds.
 */
const TIME_OUTS_MS: ReadonlySet<number> = new Set([4_000, 5_000]);
const PATIENCE_MS = 60_000;

/**
 * With hundreds of tasks in one process each answer waits for the others: a minute, until a request is given
 * up.
 */
const patientClock: Clock = {
  ...systemClock,
  sleep: (ms, signal) => systemClock.sleep(TIME_OUTS_MS.has(ms) ? PATIENCE_MS : ms, signal),
};

/**
 * Two storms of so many tasks, each with a client of its own, all in this process, on a real server: one in
 * an empty place or right after `init`, and, once all have released their ids, another one.
 *
 * Leaves the variables of the environment behind with which the server's credentials are found.
 *
 * @throws Error when two tasks got the same id, or a task lost its id before the last one had one
 */
export async function serverStorms(
  options: ServerStormOptions,
): Promise<{ readonly first: Storm; readonly released: Storm }> {
  const access = (await options.server.newPlace())();
  Object.assign(process.env, access.env);
  if (options.initialised) await initialise(options, access);
  return { first: await serverStorm(options, access), released: await serverStorm(options, access) };
}

async function opened({ url, endpoint }: StoreAccess): Promise<CountedStore> {
  const options = {
    clock: systemClock,
    random: systemRandom,
    endpoint,
    requestTimeoutMs: REQUEST_TIMEOUT_MS,
  };
  return counted(await openStore(url, options));
}

async function initialise(options: ServerStormOptions, access: StoreAccess): Promise<void> {
  const store = await opened(access);
  try {
    const session = new StoreSession(store, systemClock, REQUEST_TIMEOUT_MS);
    const wanted = { nodes: options.starters, durationMs: DURATION_MS };
    await initializeCluster({ session, clock: patientClock, random: systemRandom, wanted });
  } finally {
    await store.close();
  }
}

async function serverStorm(options: ServerStormOptions, access: StoreAccess): Promise<Storm> {
  const { contestant, starters } = options;
  const stores = await Promise.all(Array.from({ length: starters }, () => opened(access)));
  const leases: Lease[] = [];
  const shared = { clock: patientClock, random: systemRandom, nodes: starters, durationMs: DURATION_MS };
  const begun = systemClock.monotonic();
  try {
    const storm = await Promise.all(
      stores.map(async (store, task) => {
        const lease = await contestant.acquire({ ...shared, store, taskId: `task-${task}` });
        leases.push(lease);
        return {
          id: lease.id,
          requests: store.requests,
          tookMs: systemClock.monotonic() - begun,
          afterwards: NO_REQUESTS,
        };
      }),
    );
    checkDistinct(storm.map(({ id }) => id));
    const lost = leases.filter((lease) => !lease.isValid()).length;
    if (lost > 0)
      throw new Error(
        `${lost} of ${starters} tasks lost their ids before the last one had one: the machine is too slow`,
      );
    return storm;
  } finally {
    await Promise.all(leases.map((lease) => lease.release()));
    await Promise.all(stores.map((store) => store.close()));
  }
}
