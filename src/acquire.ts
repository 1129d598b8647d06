import { hostname } from 'node:os';
import { ConfigError } from './errors.js';
import { acquireLease } from './lease/acquire-lease.js';
import { checkWanted } from './lease/cluster-config.js';
import type { Lease, LeaseListener } from './lease/lease.js';
import { type LossPolicy, manage } from './managed-lease.js';
import type { LeaseStore } from './store/lease-store.js';
import { openStore } from './store/open-store.js';
import { parseStoreUrl } from './store/store-url.js';
import { systemClock, systemRandom } from './system.js';
import { defaultTaskId } from './task-id.js';

/** How to acquire a node id. */
export interface AcquireOptions {
  /** `s3://bucket/prefix`, `file:DIR`, `memory:`, or a store of your own. @default 'file:.nodelease' */
  readonly store?: string | LeaseStore;
  /** How many node ids a cluster that does not exist yet gets, 1 … 65528; an existing one keeps its own. @default 16 */
  readonly nodes?: number;
  /** How long a lease lasts without renewal, in milliseconds, 1000 … 86400000; for a new cluster. @default 15000 */
  readonly durationMs?: number;
  /** How much longer others wait before they take an expired lease, in milliseconds, a thousandth of the duration … 3600000; for a new cluster. @default 1000, or more for a long duration */
  readonly graceMs?: number;
  /** Names this run of this process: 1 … 128 printable ASCII characters without spaces. @default the ECS task's id, else host name and a random part */
  readonly taskId?: string;
  /** How long to wait for a free id, in milliseconds; 0 for not at all. @default no limit */
  readonly acquireTimeoutMs?: number;
  /** URL of an S3-compatible server. @default AWS */
  readonly endpoint?: string;
  /** Region of the bucket. @default what the AWS environment says */
  readonly region?: string;
  /**
   * Where the lease is renewed: `inline` in this thread, `worker` in a thread of its own, which goes on when this one blocks.
   * `worker` needs a store given by its URL, other than `memory:`. @default 'inline'
   */
  readonly keeper?: 'inline' | 'worker';
  /**
   * What happens when the lease is lost. `exit`: the handle's `signal` aborts, and the process exits with code 76: at once where
   * somebody else may hold the id, else shortly before the deadline. `signal`: only the handle's `signal` aborts, and stopping in time is up to you.
   * A function is called with the error instead. @default 'exit'
   */
  readonly onLost?: LossPolicy;
  /** Receives what happens to the lease. */
  readonly onEvent?: LeaseListener;
  /** Gives up waiting. Has no effect once the lease is held. */
  readonly signal?: AbortSignal;
}

/** The shortest duration: below it, a single slow request would lose the lease. */
const LEAST_DURATION_MS = 1_000;

/**
 * Acquires a node id and keeps it until it is released or lost.
 *
 * ```ts
 * await using lease = await acquire({ store: 's3://bucket/my-service', nodes: 20 });
 * console.log(lease.id, lease.version);
 * ```
 *
 * Not guaranteed: that code which does not look at `signal` or `isValid()` stops in time on `onLost: 'signal'`.
 *
 * @throws {ConfigError} when an option is out of range
 * @throws {StoreUnusableError} when the store cannot be reached, denies access, or ignores conditions
 * @throws {AcquireTimeoutError} when no id became free in time
 * @throws `signal.reason` when `signal` aborts first
 */
export async function acquire(options: AcquireOptions = {}): Promise<Lease> {
  checkOptions(options);
  const { store = 'file:.nodelease', durationMs, onLost = 'exit', keeper = 'inline' } = options;
  if (durationMs !== undefined && durationMs < LEAST_DURATION_MS) {
    throw new ConfigError('durationMs', durationMs, `at least ${LEAST_DURATION_MS}: below it a single slow request would lose the lease`);
  }
  checkWanted(options);
  const taskId = options.taskId ?? (await ownTaskId(options.signal));
  const exit = (code: number) => process.exit(code);
  const managed = { clock: systemClock, onLost, exit };
  if (keeper === 'worker') {
    const lease = await acquireByWorker(options, store, taskId, onLost === 'exit');
    return manage(lease, { ...managed, close: async () => undefined });
  }
  const opened = typeof store === 'string' ? await open(store, options) : undefined;
  const close = async () => opened?.close();
  try {
    const lease = await acquireLease({
      ...options,
      store: opened ?? (store as LeaseStore),
      clock: systemClock,
      random: systemRandom,
      taskId,
    });
    return manage(lease, { ...managed, close });
  } catch (error) {
    await close();
    throw error;
  }
}

const OPTION_NAMES: readonly string[] = [
  'store',
  'nodes',
  'durationMs',
  'graceMs',
  'taskId',
  'acquireTimeoutMs',
  'endpoint',
  'region',
  'keeper',
  'onLost',
  'onEvent',
  'signal',
] satisfies (keyof AcquireOptions)[];

/** What the compiler sees to in TypeScript: a misspelt `onLost` must not pass for the default, or the default for it. */
function checkOptions(options: AcquireOptions): void {
  for (const name of Object.keys(options)) {
    if (!OPTION_NAMES.includes(name)) throw new ConfigError('options', name, `one of ${OPTION_NAMES.join(', ')}`);
  }
  const { keeper = 'inline', onLost = 'exit', acquireTimeoutMs = 0, store } = options;
  if (keeper !== 'inline' && keeper !== 'worker') throw new ConfigError('keeper', keeper, "'inline' or 'worker'");
  if (onLost !== 'exit' && onLost !== 'signal' && typeof onLost !== 'function') {
    throw new ConfigError('onLost', onLost, "'exit', 'signal' or a function");
  }
  if (typeof acquireTimeoutMs !== 'number' || !(acquireTimeoutMs >= 0)) {
    throw new ConfigError('acquireTimeoutMs', acquireTimeoutMs, 'a number of milliseconds of at least 0');
  }
  if (typeof store === 'string') parseStoreUrl(store, 'store');
}

function ownTaskId(signal: AbortSignal | undefined): Promise<string> {
  const warn = (message: string) => process.emitWarning(message, { code: 'NODELEASE_TASK_ID' });
  return defaultTaskId({
    env: process.env,
    hostname: hostname(),
    clock: systemClock,
    random: systemRandom,
    warn,
    ...(signal && { signal }),
  });
}

async function acquireByWorker(options: AcquireOptions, store: string | LeaseStore, taskId: string, killOnLoss: boolean): Promise<Lease> {
  if (typeof store !== 'string' || store.startsWith('memory:')) {
    throw new ConfigError(
      'store',
      typeof store === 'string' ? store : store.url,
      "the URL of a store outside this process when keeper is 'worker'",
    );
  }
  const { endpoint, region, nodes, durationMs, graceMs, acquireTimeoutMs, signal, onEvent = () => undefined } = options;
  const { acquireInWorker } = await import('./worker/worker-lease.js');
  return acquireInWorker({
    settings: {
      storeUrl: store,
      requestTimeoutMs: requestTimeout(durationMs),
      ...{ endpoint, region, taskId, nodes, durationMs, graceMs, acquireTimeoutMs, killOnLoss },
    },
    clock: systemClock,
    emit: onEvent,
    signal,
  });
}

function open(url: string, { endpoint, region, durationMs }: AcquireOptions): Promise<LeaseStore> {
  return openStore(url, {
    clock: systemClock,
    random: systemRandom,
    requestTimeoutMs: requestTimeout(durationMs),
    ...(endpoint !== undefined && { endpoint }),
    ...(region !== undefined && { region }),
  });
}

/** Below the renewal interval, whatever the cluster says later: the engine gives requests up by itself, sooner where it must. */
function requestTimeout(durationMs = 15_000): number {
  return Math.min(5_000, durationMs / 3);
}
