import type { RandomSource } from '../../core/base/clock.js';
import { type Backoff, backoffMs } from '../../core/base/retry.js';
import type { Lease } from '../../core/lease/model/lease.js';
import { Holding, type HoldingOptions } from './holding.js';
import type { OwnedShard } from './owned-shards.js';
import { MAX_FAILED, type MapMember, ownedBy, SHARDS_KEY, type ShardMap } from './shard-map.js';
import { StartLimit } from './start-limit.js';

/** How long a shard waits at most after its failed starts in a row, in renewal periods. */
const START_AGAIN: Backoff = { first: 1, max: 12, atOnce: 1 };
const AT_MOST = { next: () => 1 };
/** For how many renewal periods a shard has to run before its failed starts are forgotten. */
const PROVEN = 3;

interface HoldingsOptions extends HoldingOptions {
  readonly lease: Pick<Lease, 'isValid'>;
  readonly random: RandomSource;
  /** How far apart owners stop what is to move, in milliseconds for each owner (T9). */
  readonly staggerMs: number;
  readonly renewEveryMs: number;
  /** Called when the map has to be written. */
  readonly onDue: () => void;
}

/** The last failed start of a shard here. */
interface FailedStart {
  readonly token: number;
  /** How many in a row have failed, also elsewhere. */
  readonly count: number;
  readonly isOnlyHere: boolean;
  /** From when to when the shard is to be handed on, on the monotonic clock. */
  readonly from: number;
  readonly to: number;
}

/**
 * How many shards start or stop at a time: more would keep the thread that renews the lease busy for too long.
 */
const AT_ONCE = 256;

/** What one tenure runs: the shards that the map gives it, each under its token. */
export class Holdings {
  readonly #all = new Map<number, Holding>();
  /** By shard: the last token that this tenure has given up for good (T5). */
  readonly #givenUp = new Map<number, number>();
  readonly #failed = new Map<number, FailedStart>();
  readonly #limit: StartLimit;
  /** How many starts have failed here. */
  failedStarts = 0;
  /** Once true, no work begins. */
  isLeaving = false;
  /** When what is to move stops, on the monotonic clock. */
  moveAt = Number.POSITIVE_INFINITY;
  /** Whether shards of the map that was followed last are still to begin. */
  beginsMore = false;

  constructor(private readonly options: HoldingsOptions) {
    this.#limit = new StartLimit(options);
  }

  /** Whether nothing runs, and nothing still ends. */
  get areIdle(): boolean {
    return this.#all.size === 0;
  }

  /** Whether all work has ended, and no more begins. */
  get haveEnded(): boolean {
    return this.isLeaving && this.areIdle;
  }

  runs(shard: number): boolean {
    return this.options.running[shard] === 1;
  }

  in(state: Holding['state']): readonly OwnedShard[] {
    const holdings = [...this.#all.values()].filter((holding) => holding.state === state);
    return holdings.map(({ shard, token }) => ({ shard, token }));
  }

  /** Starts and stops what an epoch says. */
  follow(map: ShardMap, me: MapMember | undefined): void {
    for (const holding of this.#all.values()) {
      const { owner, token } = map.shards[holding.shard] ?? {};
      const isMine = me !== undefined && owner === me && token === holding.token;
      if (!isMine && !holding.isAborted) this.#takenAway(holding);
    }
    const owned = ownedBy(map, me);
    const before = this.#all.size;
    this.beginsMore = owned.some(([shard, { token, failed }]) => {
      if (this.#all.size - before >= AT_ONCE) return true;
      this.#begin(shard, token, failed);
      return false;
    });
    const moving = owned.flatMap(([shard, { next }]) => (next && this.#all.get(shard)) || []);
    const owners = new Set(map.shards.flatMap(({ owner, next }) => (next ? [owner] : [])));
    this.#move(
      moving.filter(({ state }) => state !== 'stopping'),
      owners.size,
    );
  }

  /** T5: the shards of this tenure that have ended here. They do not begin again under their tokens. */
  given(map: ShardMap, me: MapMember | undefined): ReadonlySet<number> {
    const now = this.options.clock.monotonic();
    const [given, ready] = [new Set<number>(), new Set<number>()];
    const hasOthers = map.members.some((member) => member !== me && !map.limits?.has(member));
    for (const [shard, { token, next }] of ownedBy(map, me)) {
      if (this.#all.has(shard)) continue;
      if (this.isLeaving) this.#givenUp.set(shard, token);
      if (this.#givenUp.get(shard) !== token) continue;
      const last = this.#failed.get(shard);
      const isWanted = next !== undefined || (hasOthers && last?.isOnlyHere === true);
      const waits = last?.token === token && !isWanted && !this.isLeaving;
      if (!waits || now >= last.to) given.add(shard);
      else if (now >= last.from) ready.add(shard);
    }
    // T9: one write is for all that are due now or soon.
    return given.size > 0 ? new Set([...given, ...ready]) : given;
  }

  /** T9: the failed starts in a row of the shards of this tenure, where the map says otherwise. */
  failed(map: ShardMap, me: MapMember | undefined): ReadonlyMap<number, number> {
    const changed = new Map<number, number>();
    for (const [shard, { token, failed = 0 }] of ownedBy(map, me)) {
      const last = this.#failed.get(shard);
      const runsWell = this.#hasRunFor(PROVEN, this.#all.get(shard));
      const count = last?.token === token ? last.count : runsWell ? 0 : failed;
      if (count !== failed) changed.set(shard, count);
    }
    return changed;
  }

  /** T9: the most shards that this tenure takes; undefined for any number. */
  limit({ shards, members }: ShardMap): number | undefined {
    const running = [...this.#all.values()].filter(({ state }) => state === 'running');
    const proven = running.filter((holding) => this.#hasRunFor(1, holding));
    return this.#limit.at(running.length, proven.length, Math.ceil(shards.length / members.length));
  }

  /** Stops all. Resolves when the work has ended, or its stop has failed. */
  async stop(): Promise<void> {
    const stops: Promise<void>[] = [];
    for (const holding of [...this.#all.values()]) {
      if (stops.length > 0 && stops.length % AT_ONCE === 0) await this.options.clock.sleep(0);
      stops.push(holding.stop());
    }
    await Promise.all(stops);
  }

  /** T7: ends all work at once. */
  abort(reason: unknown): void {
    for (const holding of this.#all.values()) holding.abort(reason);
  }

  /** T4 */
  #begin(shard: number, token: number, failedBefore = 0): void {
    const { lease } = this.options;
    if (this.isLeaving || !lease.isValid()) return;
    if (this.#all.has(shard) || this.#givenUp.get(shard) === token) return;
    const onFailed = () => this.#onFailed(shard, token, failedBefore);
    const onEnded = () => {
      this.#all.delete(shard);
      this.#givenUp.set(shard, token);
      if (!this.#waits(shard, token)) this.options.onDue();
    };
    const holding = new Holding(shard, token, this.options, onFailed, onEnded);
    this.#all.set(shard, holding);
    // T7: the start itself may have found that the lease is lost.
    if (!lease.isValid()) holding.abort(new Error('the lease is lost'));
  }

  #onFailed(shard: number, token: number, failedBefore: number): void {
    const { clock, renewEveryMs, onDue } = this.options;
    const before = this.#failed.get(shard);
    const isOnlyHere = failedBefore === 0 || (before?.isOnlyHere === true && before.count === failedBefore);
    // Elsewhere it starts, as far as is known.
    const isAtOnce = failedBefore === 0 || this.#limit.isTrial;
    const count = Math.min(failedBefore + 1, MAX_FAILED);
    const now = clock.monotonic();
    const pauseMs = isAtOnce ? 0 : renewEveryMs * backoffMs(START_AGAIN, count, AT_MOST);
    this.#failed.set(shard, { token, count, isOnlyHere, from: now + pauseMs / 2, to: now + pauseMs });
    this.failedStarts += 1;
    // What has failed elsewhere as well says nothing of this node, unless nothing runs here.
    const running = this.in('running').length;
    if (!isAtOnce && running > 0) return;
    this.#limit.failed(running);
    onDue();
  }

  /** Whether a shard whose start has failed here stays for now. */
  #waits(shard: number, token: number): boolean {
    const last = this.#failed.get(shard);
    return last?.token === token && this.options.clock.monotonic() < last.to;
  }

  #hasRunFor(periods: number, holding: Holding | undefined): boolean {
    const { clock, renewEveryMs } = this.options;
    return holding?.state === 'running' && clock.monotonic() - holding.runsSince > periods * renewEveryMs;
  }

  /** T8: only this tenure may give it up, so the map is damaged, or has been repaired. */
  #takenAway(holding: Holding): void {
    const problem = `takes shard ${holding.shard} from its owner, which runs it with token ${holding.token}`;
    this.options.emit({ type: 'damaged', key: SHARDS_KEY, problem });
    holding.abort(new Error(`${SHARDS_KEY} ${problem}`));
  }

  /** T9: what is to move stops at a random time, and runs until then. */
  #move(running: readonly Holding[], owners: number): void {
    const { clock, random, staggerMs } = this.options;
    const isDue = clock.monotonic() >= this.moveAt;
    if (isDue) for (const holding of running.slice(0, AT_ONCE)) void holding.stop();
    // The others are due, too: in the next round.
    if (running.length <= (isDue ? AT_ONCE : 0)) this.moveAt = Number.POSITIVE_INFINITY;
    else if (this.moveAt === Number.POSITIVE_INFINITY)
      this.moveAt = clock.monotonic() + random.next() * staggerMs * owners;
  }
}
