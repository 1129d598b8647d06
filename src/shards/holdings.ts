import type { RandomSource } from '../base/clock.js';
import type { Lease } from '../lease/model/lease.js';
import { Holding, type HoldingOptions } from './holding.js';
import type { OwnedShard } from './owned-shards.js';
import { type Member, SHARDS_KEY, type ShardMap } from './shard-map.js';

export interface HoldingsOptions extends HoldingOptions {
  readonly lease: Pick<Lease, 'isValid'>;
  readonly random: RandomSource;
  /** How far apart owners stop what is to move, in milliseconds for each owner (T9). */
  readonly staggerMs: number;
  /** Called when the work of a shard has ended. */
  readonly onEnded: () => void;
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
  /** Once true, no work begins. */
  isLeaving = false;
  /** When what is to move stops, on the monotonic clock. */
  moveAt = Number.POSITIVE_INFINITY;
  /** Whether shards of the map that was followed last are still to begin. */
  beginsMore = false;

  constructor(private readonly options: HoldingsOptions) {}

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
  follow(map: ShardMap, me: Member | undefined): void {
    for (const holding of this.#all.values()) {
      const { owner, since } = map.shards[holding.shard] ?? {};
      const isMine = me !== undefined && owner === me && since === holding.token;
      if (!isMine && !holding.isAborted) this.#takenAway(holding);
    }
    const owned = [...map.shards.entries()].filter(([, { owner }]) => me !== undefined && owner === me);
    const before = this.#all.size;
    this.beginsMore = owned.some(([shard, { since }]) => {
      if (this.#all.size - before >= AT_ONCE) return true;
      this.#begin(shard, since);
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
  given({ shards }: ShardMap, me: Member | undefined): ReadonlySet<number> {
    const given = new Set<number>();
    for (const [shard, { owner, since }] of me === undefined ? [] : shards.entries()) {
      if (owner !== me || this.#all.has(shard)) continue;
      if (this.isLeaving) this.#givenUp.set(shard, since);
      if (this.#givenUp.get(shard) === since) given.add(shard);
    }
    return given;
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
  #begin(shard: number, token: number): void {
    const { lease } = this.options;
    if (this.isLeaving || !lease.isValid()) return;
    if (this.#all.has(shard) || this.#givenUp.get(shard) === token) return;
    const onEnded = () => {
      this.#all.delete(shard);
      this.#givenUp.set(shard, token);
      this.options.onEnded();
    };
    const holding = new Holding(shard, token, this.options, onEnded);
    this.#all.set(shard, holding);
    // T7: the start itself may have found that the lease is lost.
    if (!lease.isValid()) holding.abort(new Error('the lease is lost'));
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
