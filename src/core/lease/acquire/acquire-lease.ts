import { checkArguments, checked, STORE } from '../../base/arguments.js';
import type { Clock, RandomSource } from '../../base/clock.js';
import { StoreUnusableError } from '../../base/errors.js';
import { checkTaskId } from '../../base/host/task-id.js';
import { CALLER_WAITS } from '../../base/retry.js';
import { type LeaseStore, StoreError } from '../../store/lease-store.js';
import { Keeper, MAX_REQUEST_MS } from '../hold/keeper.js';
import { CLUSTER_KEY, checkWanted, type WantedSettings } from '../model/cluster-config.js';
import { refuseMarked } from '../model/foreign-cluster.js';
import { detached, type Lease, type LeaseListener } from '../model/lease.js';
import { harmless, type LeaseTracer, type NoteAttributes } from '../model/lease-tracer.js';
import { type StickySettings, stickyMark } from '../model/sticky.js';
import { readCluster, reportOverruled } from '../session/cluster-store.js';
import { whileStoreIsAway } from '../session/store-retry.js';
import { StoreSession } from '../session/store-session.js';
import { Acquirer, type Beginning } from './acquirer.js';
import { completeBootstrap } from './bootstrap.js';
import { firstListing } from './candidate-scan.js';
import type { AcquireContext } from './claim.js';
import { ensureCluster } from './ensure-cluster.js';
import { ShownDurations } from './shown-durations.js';

/** What the engine needs to acquire a node id. */
export interface AcquireLeaseOptions extends WantedSettings, StickySettings {
  readonly store: LeaseStore;
  readonly clock: Clock;
  readonly random: RandomSource;
  /** Names this run of this process; 1 … 128 printable ASCII characters without spaces. */
  readonly taskId: string;
  /** How long to wait for a free id, in milliseconds, 0 for not at all. @default no limit */
  readonly acquireTimeoutMs?: number | undefined;
  /**
   * The first pause between two scans while no id is free, in milliseconds. It grows to a third of the
   * duration.
   * @default what the store suggests
   */
  readonly waitPollMs?: number | undefined;
  /**
   * How often a holder reads the cluster's settings, in milliseconds, rounded to the nearest renewal. The
   * settings request wider unique ids, or show that its node id is being retired. @default at each renewal
   */
  readonly settingsIntervalMs?: number | undefined;
  /** Gives up waiting. Has no effect once the lease is held. */
  readonly signal?: AbortSignal | undefined;
  readonly onEvent?: LeaseListener | undefined;
  /**
   * Measures acquiring, each renewal and the release. A tracer that throws does no harm.
   * @default none
   */
  readonly tracer?: LeaseTracer | undefined;
}

/**
 * Timeout for the store's first answer, in milliseconds. It is short, so that a wrong address is reported
 * soon.
 */
const FIRST_CONTACT = { timeoutMs: 8_000, backoff: CALLER_WAITS };

/** Not all: a command gives its settings, too, of which `onRetire` is no function. */
const USUAL = ['signal', 'onEvent', 'acquireTimeoutMs', 'waitPollMs', 'settingsIntervalMs'];

/**
 * Acquires a node id and keeps it (docs/design/protocol.md).
 *
 * Creates the cluster's settings when there are none, after making sure that the store keeps its conditions.
 * Waits, if need be, for an id to be released or to expire. The lease that it resolves to renews itself until
 * it is released or lost.
 *
 * @throws {ConfigError} when a setting is out of range
 * @throws {StoreUnusableError} when the store cannot be reached, denies access, or ignores conditions
 * @throws {AcquireTimeoutError} when no id became free in time
 * @throws `signal.reason` when `signal` aborts first
 */
export async function acquireLease(options: AcquireLeaseOptions): Promise<Lease> {
  const { store, clock, random, taskId } = checked(options, { store: STORE }, 'options', USUAL);
  checkArguments({ clock, random });
  checkWanted(options);
  checkTaskId(taskId);
  const begun = clock.monotonic();
  const tracer = harmless(options.tracer);
  const facts = { 'nodelease.task_id': taskId, 'nodelease.store': store.url };
  return tracer.span('nodelease.acquire', facts, (note) => acquire(options, { begun, tracer, note }));
}

async function acquire(
  options: AcquireLeaseOptions,
  {
    begun,
    tracer,
    note,
  }: { readonly begun: number; readonly tracer: LeaseTracer; readonly note: NoteAttributes },
): Promise<Lease> {
  const { store, clock, random, taskId, signal } = options;
  const emit = detached(options.onEvent);
  const session = new StoreSession(store, clock, MAX_REQUEST_MS);
  try {
    const until =
      options.acquireTimeoutMs === undefined ? Number.POSITIVE_INFINITY : begun + options.acquireTimeoutMs;
    const retry = whileStoreIsAway({ clock, random, signal, until, emit });
    const { sticky, preferId, stickyWaitMs, waitPollMs } = options;
    const context: AcquireContext = {
      ...{ session, clock, random, taskId, emit, until, signal, retry, shown: new ShownDurations(clock) },
      ...{ sticky: sticky && stickyMark(sticky), preferId, stickyWaitMs, waitPollMs },
    };
    const beginning = await firstContact(options, context);
    reportOverruled(options, beginning.cluster.config, emit);
    const acquisition = await new Acquirer(context).acquire(beginning);
    const { settingsIntervalMs } = options;
    const keeper = new Keeper(acquisition, {
      session,
      clock,
      random,
      settingsIntervalMs,
      emit,
      tracer,
    });
    if (signal?.aborted) {
      await keeper.release();
      throw signal.reason;
    }
    const { id, version, deadline, previous } = keeper;
    const { from } = acquisition;
    note({
      'nodelease.node_id': id,
      'nodelease.version': version,
      'nodelease.from': from,
      'nodelease.requests': session.requests,
    });
    const tookMs = clock.monotonic() - begun;
    emit({
      type: 'acquired',
      id,
      version,
      from,
      previous,
      tookMs,
      requests: session.requests,
      deadline,
      store: store.url,
    });
    if (!acquisition.cluster.config.bootstrapped)
      keeper.addChore((ending) => completeBootstrap(context, ending));
    return keeper;
  } catch (error) {
    if (!(error instanceof StoreError)) throw error;
    signal?.throwIfAborted();
    throw new StoreUnusableError(error.code, `the store cannot be used: ${error.message}`, { cause: error });
  }
}

/** The first listing and the cluster's settings. Rejects soon when the store cannot be reached. */
function firstContact(wanted: WantedSettings, context: AcquireContext): Promise<Beginning> {
  const { session, clock, random, signal } = context;
  session.expectObjects(wanted.nodes ?? 1);
  const retry = whileStoreIsAway({ clock, random, signal, ...FIRST_CONTACT });
  return retry(async (call, number) => {
    // The cluster may be larger than this task knows, so that its listing takes longer: the settings say so.
    if (number > 1) await readCluster(session, call);
    return begin(wanted, context);
  });
}

/** The LIST comes first. It shows whether settings exist, and which ids may be free. */
async function begin(wanted: WantedSettings, context: AcquireContext): Promise<Beginning> {
  const { session, random, signal, emit } = context;
  const listing = firstListing(session, wanted.nodes ?? 1, random);
  await listing.fetchNext(session, { signal });
  refuseMarked(session, listing.objects);
  const absent = listing.complete && listing.objects.every(({ key }) => key !== CLUSTER_KEY);
  const { cluster, created, raced } = await ensureCluster({
    ...context,
    wanted,
    listing: absent ? listing.objects : undefined,
  });
  if (created) emit({ type: 'cluster-created', size: cluster.config.size, store: session.store.url });
  return { cluster, listing, raced };
}
