import { onAbort, WakeUp, withTimeout } from '../../core/base/abort.js';
import { NodeLeaseError } from '../../core/base/errors.js';
import { notify } from '../../core/base/listeners.js';
import { type Backoff, backoffMs } from '../../core/base/retry.js';
import { Overtaken } from '../../core/lease/hold/holder.js';
import type { LeaseHome } from '../../core/lease/hold/lease-home.js';
import type { Lease } from '../../core/lease/model/lease.js';
import { leaseTiming } from '../../core/lease/model/lease-timing.js';
import type { StoredCluster } from '../../core/lease/session/cluster-store.js';
import type { StoreSession } from '../../core/lease/session/store-session.js';
import type { StoredObject } from '../../core/store/lease-store.js';
import { dueChanges } from './due.js';
import { findMembers } from './find-members.js';
import type { ShardEvent } from './holding.js';
import { Holdings } from './holdings.js';
import type { OwnedShard, OwnedShards, OwnShardsOptions } from './owned-shards.js';
import { plan } from './plan.js';
import { shardCounts } from './read-shards.js';
import type { ShardGauges } from './shard-gauges.js';
import {
  encodeMap,
  ensureMap,
  floorOf,
  type MapMember,
  SHARDS_KEY,
  type ShardMap,
  usableMap,
} from './shard-map.js';
import { type ShardKey, shardOf } from './shard-of.js';

/** The pauses between attempts to hand on, in milliseconds (T5). */
const HAND_ON: Backoff = { first: 50, max: 500 };
/** How far apart owners stop what is to move, in milliseconds for each owner (T9). */
const STAGGER_MS = 200;
/** How long the last hand-on may delay the release, in milliseconds (T7). */
const LEAVE_TIMEOUT_MS = 2_000;

export interface ShardMemberOptions extends OwnShardsOptions {
  readonly startTimeoutMs: number;
  readonly stopTimeoutMs: number;
  readonly lease: Lease;
  readonly home: LeaseHome;
  readonly session: StoreSession;
  readonly cluster: StoredCluster;
  /** Aborts when the tenure ends in either way. */
  readonly signal: AbortSignal;
}

/**
 * A tenure that takes part in the ownership of shards: it runs what the map gives it, hands on, and plans for
 * all when it is drawn. One loop, with one request in flight.
 */
export class ShardMember implements OwnedShards {
  readonly count: number;
  /** The settings as this member has read them last. */
  #cluster: StoredCluster;
  readonly #holdings: Holdings;
  readonly #emit: (event: ShardEvent) => void;
  /** The map of the highest epoch that was read (T2), and when it was written, on the monotonic clock. */
  #map: ShardMap;
  #writtenAt = Number.NaN;
  /** The epoch of the store in which this member reads and writes (T11). */
  #store: string | undefined;
  /** How many reads in a row have shown no map that can be followed. */
  #unusable = 0;
  /** When this member draws next, on the monotonic clock. */
  #drawAt = Number.NEGATIVE_INFINITY;
  /** When this member looks without being drawn, since a lease can be proven over then. */
  #lookAt = Number.POSITIVE_INFINITY;
  #leaving: Promise<boolean> | undefined;
  #handedOn: () => void = () => undefined;
  readonly #wakeUp = new WakeUp();
  #isWatching = false;

  constructor(private readonly options: ShardMemberOptions) {
    const { count, lease, home, session, cluster, signal, onEvent } = options;
    const { config } = cluster;
    this.count = count;
    // A map of an earlier series is damage (T10).
    this.#map = { epoch: floorOf(config), members: [], shards: [] };
    this.#store = config.epoch?.store;
    this.#cluster = cluster;
    this.#emit = (event) => onEvent && notify(onEvent, event);
    this.#holdings = new Holdings({
      ...options,
      ...home,
      emit: this.#emit,
      renewEveryMs: this.#renewEveryMs,
      running: new Uint8Array(count),
      staggerMs: session.store.minWriteIntervalMs ?? STAGGER_MS,
      onDue: this.#wakeUp.wake,
    });
    const gauges = (): ShardGauges => ({
      nodelease_shards_owned: this.owned.length,
      nodelease_shards_moving: this.#map.shards.filter(({ owner, next }) => next && owner === this.#me)
        .length,
      nodelease_shards_orphaned: shardCounts(this.#map).orphaned,
      nodelease_shards_failing: this.#map.shards.filter(({ owner, failed }) => failed && owner === this.#me)
        .length,
      nodelease_shards_failed_starts: this.#holdings.failedStarts,
      nodelease_shards_epoch_age_seconds: (home.clock.monotonic() - this.#writtenAt) / 1_000,
    });
    const end = () => this.#leave();
    home.attach({ gauges, end });
    onAbort(lease.retiring, end);
    onAbort(signal, () => this.#holdings.abort(signal.reason));
    void this.#run();
  }

  get epoch(): number {
    return this.#map.epoch;
  }

  get owned(): readonly OwnedShard[] {
    return this.#holdings.in('running');
  }

  get stopping(): readonly OwnedShard[] {
    return this.#holdings.in('stopping');
  }

  shardOf(key: ShardKey): number {
    return shardOf(key, this.count);
  }

  owns(key: ShardKey): boolean {
    return this.#holdings.runs(this.shardOf(key)) && this.options.lease.isValid();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#leave();
  }

  get #renewEveryMs(): number {
    return leaseTiming(this.#cluster.config.durationMs).renewEveryMs;
  }

  /** T7: stops all, hands all on, and takes part no more. Resolves to whether all work has ended. */
  #leave(): Promise<boolean> {
    this.#holdings.isLeaving = true;
    // The rest is not in this call: listeners of the events of the stops may call it again.
    this.#leaving ??= Promise.resolve().then(() => this.#end());
    return this.#leaving;
  }

  async #end(): Promise<boolean> {
    const { home, signal } = this.options;
    const handedOn = new Promise<void>((resolve) => {
      this.#handedOn = resolve;
    });
    await this.#holdings.stop();
    // Without the mark, no repair waits for this tenure (T10, 7).
    if (this.#holdings.areIdle) void home.mark({});
    this.#wakeUp.wake();
    await withTimeout(home.clock, LEAVE_TIMEOUT_MS, handedOn, signal).catch(() => undefined);
    return this.#holdings.areIdle;
  }

  /** Continues after it has left: another task may take in a tenure whose leaving it has not seen. */
  async #run(): Promise<void> {
    const { home, signal } = this.options;
    // Tasks that start together do not all join: one takes in all that it sees.
    let pauseMs = (home.random.next() * this.#renewEveryMs) / 2;
    for (let failures = 0; !signal.aborted; pauseMs = this.#pauseMs(failures)) {
      try {
        await this.#wakeUp.wait({ clock: home.clock, timeoutMs: pauseMs }, signal);
        this.#watch();
        await this.#round();
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        failures += 1;
        if (error instanceof NodeLeaseError)
          this.#emit({ type: 'store-failed', error, sleepMs: this.#pauseMs(failures) });
        else if (!(error instanceof Overtaken)) throw error;
      }
    }
  }

  /** One look at the map, and what follows from it. */
  async #round(): Promise<void> {
    const { session, home, lease, address, signal } = this.options;
    const object = await session.read(SHARDS_KEY, { signal });
    const map = this.#readMap(object, await this.#isSameStore());
    if (object === undefined || map === undefined) return;
    this.#follow(map, object.age.min);
    const own = this.#me;
    const { haveEnded } = this.#holdings;
    if (haveEnded && own === undefined) return this.#handedOn();
    const me = own ?? { id: lease.id, version: lease.version, address };
    // T10, 6: it has no owner, and gets none.
    if (map.frozen) return;
    const due = this.#due(map);
    // What has stopped is not kept waiting.
    const looks = !due.isUrgent && this.#leaving === undefined && this.#isDrawn(object);
    if (!looks && !haveEnded && !due.isUrgent) return;
    const staying = map.members.filter((member) => !(haveEnded && member === me));
    const known = this.#cluster;
    const { members, dueMs, cluster } = looks
      ? await findMembers({ session, known, me, signal, random: home.random, members: staying })
      : { members: staying, dueMs: Number.POSITIVE_INFINITY, cluster: known };
    this.#cluster = cluster;
    const next = plan(map, {
      ...due,
      members,
      leaver: this.#leaving && me,
      settled: looks && object.age.min > cluster.config.durationMs,
    });
    if (next !== undefined) {
      const content = { body: encodeMap(next), metadata: {} };
      // T1: an outcome that is not known is read in the next round.
      const { status } = await session.write(SHARDS_KEY, content, object.etag, { signal });
      if (status === 'conflict') throw new Overtaken('another task has changed the map');
      if (!(await this.#isSameStore())) throw new Overtaken('the store has gone back');
      this.#follow(next, 0);
      if (haveEnded) this.#handedOn();
    }
    // Until then a look that was due is due again.
    if (looks) this.#lookAt = home.clock.monotonic() + dueMs;
  }

  #due(map: ShardMap) {
    return dueChanges(map, this.#me, this.#holdings);
  }

  /**
   * T11: whether the store has not gone back since this member read the settings. Where it has, they record
   * that, and the member follows a map of their series, and no other.
   */
  async #isSameStore(): Promise<boolean> {
    const { session, home, signal } = this.options;
    if ((await session.epoch({ signal })) === this.#store) return true;
    const config = await ensureMap(session, home.random, this.count, { signal }, 0);
    this.#map = { ...this.#map, epoch: floorOf(config) };
    this.#store = config.epoch?.store;
    return false;
  }

  /** T2: undefined for what cannot be followed. It is reported once, by the second read that shows it. */
  #readMap(object: StoredObject | undefined, isSameStore: boolean): ShardMap | undefined {
    const map = isSameStore
      ? usableMap(object, this.epoch, this.count)
      : { problem: 'has come back with the store, which was restarted, restored or replaced' };
    if (!('problem' in map)) {
      this.#unusable = 0;
      return map;
    }
    this.#unusable += 1;
    if (this.#unusable === 2) this.#emit({ type: 'damaged', key: SHARDS_KEY, ...map });
    return undefined;
  }

  #follow(map: ShardMap, ageMs: number): void {
    const { home, address } = this.options;
    const isNew = map.epoch > this.epoch;
    if (isNew) this.#writtenAt = home.clock.monotonic() - ageMs;
    this.#map = map;
    if (isNew) this.#emit({ type: 'epoch', epoch: map.epoch });
    this.#holdings.follow(map, this.#me);
    // T10, 6: a repair takes the epoch of a frozen map for the proof that nothing runs any more.
    if (this.#leaving === undefined && (!map.frozen || this.#holdings.areIdle))
      void home.mark({ shards: { epoch: map.epoch }, address });
  }

  /** This tenure in the map that it follows. */
  get #me(): MapMember | undefined {
    const { id, version } = this.options.lease;
    return this.#map.members.find((member) => member.id === id && member.version === version);
  }

  /**
   * Two looks for members that came or went, in a renewal period and in the whole fleet, and another one by a
   * task that has seen an overdue lease. A task that is no member looks each time. So does every task where
   * ages are observed: they grow for a task that looks again.
   */
  #isDrawn({ age }: StoredObject): boolean {
    const { clock, random } = this.options.home;
    if (this.#me === undefined) return true;
    if (clock.monotonic() >= this.#lookAt) return true;
    if (clock.monotonic() < this.#drawAt) return false;
    this.#drawAt = clock.monotonic() + this.#renewEveryMs * (1 + random.next() / 10);
    return age.max === Number.POSITIVE_INFINITY || random.next() < 2 / this.#map.members.length;
  }

  /** Until the next round, in milliseconds. */
  #pauseMs(failures: number): number {
    const { home, session } = this.options;
    const { clock, random } = home;
    const { haveEnded, moveAt } = this.#holdings;
    const me = this.#me;
    if (this.#unusable > 0) return this.#renewEveryMs;
    if (me === undefined) return this.#renewEveryMs * (haveEnded ? 1 : random.next() / 2);
    const due = this.#due(this.#map);
    if (haveEnded || due.isNow) return backoffMs(HAND_ON, failures, random);
    if (failures > 0 || this.#leaving) return this.#renewEveryMs;
    if (this.#holdings.beginsMore) return 0;
    if (due.isUrgent) return this.#renewEveryMs;
    // For a while after the write: a program that does not follow the events stops nothing (T9).
    const isFresh = clock.monotonic() - this.#writtenAt < this.#cluster.config.durationMs;
    const polls = isFresh && !session.store.changed && this.#map.shards.some(({ next }) => next === me);
    const pollMs = polls ? session.pollMs : Number.POSITIVE_INFINITY;
    return Math.min(Math.min(this.#drawAt, this.#lookAt, moveAt) - clock.monotonic(), pollMs);
  }

  /** Wakes the loop when a store that reports changes reports one of the map. */
  #watch(): void {
    const { session, signal } = this.options;
    if (session.store.changed === undefined || this.#isWatching) return;
    this.#isWatching = true;
    const end = () => {
      this.#isWatching = false;
    };
    const changed = session.store.changed(signal, ({ key }) => key === SHARDS_KEY);
    changed.then(() => {
      end();
      this.#wakeUp.wake();
    }, end);
  }
}
