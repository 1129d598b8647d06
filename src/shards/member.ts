import { onAbort, withTimeout } from '../base/abort.js';
import { type Backoff, backoffMs } from '../base/backoff.js';
import { explain, NodeLeaseError } from '../base/errors.js';
import { Overtaken } from '../lease/hold/holder.js';
import type { LeaseHome } from '../lease/hold/lease-home.js';
import type { ClusterConfig } from '../lease/model/cluster-config.js';
import type { Lease } from '../lease/model/lease.js';
import { leaseTiming } from '../lease/model/lease-timing.js';
import type { StoreSession } from '../lease/session/store-session.js';
import type { ObjectChange, StoredObject } from '../store/lease-store.js';
import { findMembers } from './find-members.js';
import { Holding, type ShardEvent, type StartShard } from './holding.js';
import { plan } from './plan.js';
import { decodeMap, encodeMap, type Member, SHARDS_KEY, type ShardMap } from './shard-map.js';
import { type ShardKey, shardOf } from './shard-of.js';

/** The pauses between attempts to hand on, in milliseconds (T5). */
const HAND_ON: Backoff = { first: 50, max: 500 };
/** How far apart owners of moving shards stop them, in milliseconds for each owner (T9). */
const STAGGER_MS = 200;
/** How long the last hand-on may delay the release, in milliseconds (T7). */
const LEAVE_TIMEOUT_MS = 2_000;

export interface ShardMemberOptions {
  readonly lease: Lease;
  readonly home: LeaseHome;
  readonly session: StoreSession;
  readonly config: ClusterConfig;
  readonly count: number;
  readonly start: StartShard;
  readonly stopTimeoutMs: number;
  readonly address: string | undefined;
  readonly emit: (event: ShardEvent) => void;
}

/**
 * A tenure that takes part in the ownership of shards: it runs what the map gives it, hands on, and plans for
 * all when it is drawn. One loop, with one request in flight.
 */
export class ShardMember {
  /** The highest epoch that was read (T2). */
  #map: ShardMap | undefined;
  readonly #holdings = new Map<number, Holding>();
  /** By shard: the last token that this tenure has given up for good (T5). */
  readonly #givenUp = new Map<number, number>();
  #problem: string | undefined;
  /** When this member draws next, and stops what is to move, on the monotonic clock. */
  #drawAt: number;
  #moveAt = Number.POSITIVE_INFINITY;
  #leaving: Promise<void> | undefined;
  #handedOn: () => void = () => undefined;
  readonly #renewEveryMs: number;
  #wake: () => void = () => undefined;
  #isWatching = false;

  constructor(private readonly options: ShardMemberOptions) {
    const { lease, home, config } = options;
    this.#renewEveryMs = leaseTiming(config.durationMs).renewEveryMs;
    this.#drawAt = home.clock.monotonic();
    this.#mark(0);
    home.leave = () => this.leave();
    const signal = lease.tenureTime?.signal as AbortSignal;
    // T7: the lease ends all.
    onAbort(signal, () => {
      for (const holding of this.#holdings.values()) holding.abort(signal.reason);
    });
    onAbort(lease.retiring, () => void this.leave());
    void this.#run(signal);
  }

  get epoch(): number {
    return this.#map?.epoch ?? 0;
  }

  get holdings(): readonly Holding[] {
    return [...this.#holdings.values()];
  }

  owns(key: ShardKey): boolean {
    const { lease, count } = this.options;
    return this.#holdings.get(shardOf(key, count))?.isRunning === true && lease.isValid();
  }

  /** Stops all, hands all on, and takes part no more. Resolves when the work has ended. */
  leave(): Promise<void> {
    this.#leaving ??= this.#leave();
    return this.#leaving;
  }

  async #leave(): Promise<void> {
    const { home, lease } = this.options;
    const handedOn = new Promise<void>((resolve) => {
      this.#handedOn = resolve;
    });
    home.mark({ shards: undefined, address: undefined });
    await Promise.all(this.holdings.map((holding) => holding.stop()));
    this.#wake();
    const ended = lease.tenureTime?.signal;
    await withTimeout(home.clock, LEAVE_TIMEOUT_MS, handedOn, ended).catch(() => undefined);
  }

  /** Continues after `leave()`: another task may take in a tenure whose leaving it has not seen. */
  async #run(signal: AbortSignal): Promise<void> {
    const { clock, random } = this.options.home;
    const wake = () =>
      new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    let woken = wake();
    // Tasks that start together do not all join: one takes in all that it sees.
    let pauseMs = (random.next() * this.#renewEveryMs) / 2;
    for (let failures = 0; !signal.aborted; pauseMs = this.#pauseMs(failures)) {
      try {
        if (pauseMs > 0) await withTimeout(clock, pauseMs, woken, signal);
        woken = wake();
        this.#watch(signal);
        await this.#round(signal);
        failures = 0;
      } catch (error) {
        if (signal.aborted) return;
        failures += 1;
        if (error instanceof NodeLeaseError)
          this.options.emit({ type: 'store-failed', error, sleepMs: this.#pauseMs(failures) });
        else if (!(error instanceof Overtaken)) throw error;
      }
    }
  }

  /** One look at the map, and what follows from it. */
  async #round(signal: AbortSignal): Promise<void> {
    const { session, home, config, lease, address } = this.options;
    const object = await session.read(SHARDS_KEY, { signal });
    const map = this.#readMap(object);
    if (object === undefined || map === undefined) return;
    this.#follow(map);
    const known = this.#me;
    const hasStopped = this.#leaving !== undefined && this.#holdings.size === 0;
    if (hasStopped && known === undefined) return this.#handedOn();
    const me = known ?? { id: lease.id, version: lease.version, address };
    const given = this.#given();
    const looks = this.#leaving === undefined && this.#isDrawn(map, object);
    if (!looks && !hasStopped && given.size === 0) return;
    let members = map.members.filter((member) => !(hasStopped && member === me));
    if (looks)
      members = await findMembers({ ...{ session, config, me, signal, random: home.random }, members });
    const next = plan(map, {
      ...{ members, given, leaver: this.#leaving && me },
      settled: looks && object.age.min > config.durationMs,
    });
    if (next === undefined) return;
    const content = { body: encodeMap(next), metadata: {} };
    const { status } = await session.write(SHARDS_KEY, content, object.etag, { signal });
    if (status === 'conflict') throw new Overtaken('another task has changed the map');
    this.#follow(next);
    if (hasStopped) this.#handedOn();
  }

  /** T2: undefined for what cannot be followed. It is reported once. */
  #readMap(object: StoredObject | undefined): ShardMap | undefined {
    let problem = 'is gone';
    try {
      const map = object && decodeMap(object.body);
      if (map !== undefined && map.epoch >= this.epoch && map.shards.length === this.options.count) {
        this.#problem = undefined;
        return map;
      }
      if (map) problem = `has epoch ${map.epoch} after ${this.epoch}, and ${map.shards.length} shards`;
    } catch (error) {
      problem = explain(error);
    }
    if (problem !== this.#problem) this.options.emit({ type: 'damaged', key: SHARDS_KEY, problem });
    this.#problem = problem;
    return undefined;
  }

  /** Starts and stops what an epoch says. */
  #follow(map: ShardMap): void {
    const { clock, random } = this.options.home;
    if (map.epoch !== this.#map?.epoch && this.#leaving === undefined) this.#mark(map.epoch);
    this.#map = map;
    const me = this.#me;
    for (const holding of this.#holdings.values()) {
      const { shard, token, isAborted } = holding;
      const { owner, since } = map.shards[shard] ?? {};
      if (isAborted || (me !== undefined && owner === me && since === token)) continue;
      // T8: only this tenure may give it up, so the map is damaged, or has been repaired.
      const problem = `takes shard ${shard} from node id ${this.options.lease.id}, which runs it with token ${token}`;
      this.options.emit({ type: 'damaged', key: SHARDS_KEY, problem });
      holding.abort(new Error(`${SHARDS_KEY} ${problem}`));
    }
    const owned = [...map.shards.entries()].filter(([, { owner }]) => me !== undefined && owner === me);
    for (const [shard, { since }] of owned) this.#begin(shard, since);
    // T9: what is to move stops at a random time, and runs until then.
    const moving = owned.flatMap(([shard, { next }]) => (next && this.#holdings.get(shard)) || []);
    const running = moving.filter((holding) => !holding.isStopping);
    const isDue = clock.monotonic() >= this.#moveAt;
    if (isDue) for (const holding of running) void holding.stop();
    if (isDue || running.length === 0) this.#moveAt = Number.POSITIVE_INFINITY;
    else if (this.#moveAt === Number.POSITIVE_INFINITY) {
      const owners = new Set(map.shards.flatMap(({ owner, next }) => (next ? [owner] : [])));
      const { minWriteIntervalMs: staggerMs = STAGGER_MS } = this.options.session.store;
      this.#moveAt = clock.monotonic() + random.next() * staggerMs * owners.size;
    }
  }

  /** T4 */
  #begin(shard: number, token: number): void {
    const { lease, home, start, stopTimeoutMs, emit } = this.options;
    if (this.#leaving !== undefined || !lease.isValid()) return;
    if (this.#holdings.has(shard) || this.#givenUp.get(shard) === token) return;
    const own = { clock: home.clock, start, stopTimeoutMs, emit, pauseMs: this.#renewEveryMs };
    const onEnded = () => {
      this.#holdings.delete(shard);
      this.#givenUp.set(shard, token);
      this.#wake();
    };
    this.#holdings.set(shard, new Holding(shard, token, own, onEnded));
  }

  /** T5: the shards that have ended here. None of them begins again under its token. */
  #given(): ReadonlySet<number> {
    const me = this.#me;
    const given = new Set<number>();
    for (const [shard, { owner, since }] of this.#map?.shards.entries() ?? []) {
      if (me === undefined || owner !== me || this.#holdings.has(shard)) continue;
      if (this.#leaving !== undefined) this.#givenUp.set(shard, since);
      if (this.#givenUp.get(shard) === since) given.add(shard);
    }
    return given;
  }

  /**
   * Two looks for members that came or went, in a renewal period and in the whole fleet. A task that is no
   * member looks each time, and so does each one where ages are observed: only who looks again sees them grow.
   */
  #isDrawn({ members }: ShardMap, { age }: StoredObject): boolean {
    const { clock, random } = this.options.home;
    if (this.#me === undefined) return true;
    if (clock.monotonic() < this.#drawAt) return false;
    this.#drawAt = clock.monotonic() + this.#renewEveryMs * (1 + random.next() / 10);
    return age.max === Number.POSITIVE_INFINITY || random.next() < 2 / members.length;
  }

  /** This tenure in the map that it follows. */
  get #me(): Member | undefined {
    const { id, version } = this.options.lease;
    return this.#map?.members.find((member) => member.id === id && member.version === version);
  }

  #mark(epoch: number): void {
    this.options.home.mark({ shards: { epoch }, address: this.options.address });
  }

  /** Until the next round, in milliseconds. */
  #pauseMs(failures: number): number {
    const { home, session } = this.options;
    const { clock, random } = home;
    const me = this.#me;
    if (this.#problem !== undefined) return this.#renewEveryMs;
    const hasStopped = this.#leaving !== undefined && this.#holdings.size === 0;
    if (me === undefined) return this.#renewEveryMs * (hasStopped ? 1 : random.next() / 2);
    if (hasStopped || this.#given().size > 0)
      return failures === 0 ? 0 : backoffMs(HAND_ON, failures, random);
    const awaits = this.#map?.shards.some(({ next }) => next === me);
    const at = failures === 0 ? Math.min(this.#drawAt, this.#moveAt) : Number.POSITIVE_INFINITY;
    return Math.min(at - clock.monotonic(), awaits ? session.store.pollMs : this.#renewEveryMs * 2);
  }

  /** Wakes the loop when a store that reports changes reports one of the map. */
  #watch(signal: AbortSignal): void {
    const { store } = this.options.session;
    if (store.changed === undefined || this.#isWatching) return;
    this.#isWatching = true;
    const end = () => {
      this.#isWatching = false;
    };
    const isMap = ({ key }: ObjectChange) => key === SHARDS_KEY;
    store.changed(signal, isMap).then(() => {
      end();
      this.#wake();
    }, end);
  }
}
