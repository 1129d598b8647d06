import { anySignal, onAbort } from '../../core/base/abort.js';
import type { Clock } from '../../core/base/clock.js';
import { StopTimeoutError } from '../../node/shards/holding.js';
import type { StartShard, StopShard } from '../../node/shards/index.js';
import type { HeldShard } from './shards-api.js';

/** What programs say over HTTP. */
export type ProgramNews =
  /** More or fewer programs follow the events. */
  | { readonly type: 'followers'; readonly change: 1 | -1 }
  /** A program has asked which shards it has. */
  | { readonly type: 'asked' }
  /** The work on a shard has ended. */
  | { readonly type: 'stopped'; readonly shard: number; readonly token: number }
  /** The work on a shard could not be begun, or has failed, and has ended. */
  | { readonly type: 'failed'; readonly shard: number; readonly token: number }
  /** All work has ended, and none begins before a program follows or asks again. */
  | { readonly type: 'ended' };

/** The work of programs on one shard. */
interface Work extends HeldShard {
  deadline: number | null;
  moves: boolean;
  readonly signal: AbortSignal;
  /** Hands the shard on, since its work has failed. */
  readonly fail: (error: unknown) => void;
  /** The program has said that the work has failed, and has ended. */
  hasFailed?: boolean;
  /** The work has ended; undefined while the shard is to run. */
  end?: () => void;
  /** It is not known whether the work has ended, and never will be (T5). */
  giveUp?: (error: Error) => void;
}

/** How long a program whose connection has gone has to come back before it is asked no more, in milliseconds. */
const GONE_MS = 5_000;
/** How often it is looked whether programs are there, in milliseconds. */
const LOOK_MS = 500;

/**
 * The shards of a node whose work programs do that ask over HTTP. Those that follow the events are asked to
 * stop a shard, and it moves once they have answered. A stream that closes shows nothing: the program may work
 * on. So without an answer a shard moves only when no program has ever asked, or when the lease has expired.
 */
export class ProgramShards {
  readonly #held = new Map<number, Work>();
  readonly #changed = new Set<number>();
  #isReporting = false;
  #followers = 0;
  /** How often the last one of them has gone. */
  #departures = 0;
  /** When a program that does not follow was last heard of, on the monotonic clock. */
  #heardAt = Number.NEGATIVE_INFINITY;
  /** Whether programs have said that all work has ended, and none has come since. */
  #haveEnded = false;
  /** Programs may follow before this process has begun its own work. */
  #isWorking = true;
  #isLeaving = false;

  /** @param onChange is called once for all that changes in a turn of the event loop */
  constructor(
    private readonly clock: Clock,
    private readonly stopTimeoutMs: number,
    private readonly onChange: (changed: ReadonlySet<number>) => void,
  ) {}

  get(shard: number): HeldShard | undefined {
    const work = this.#held.get(shard);
    return work && known(work);
  }

  all(): HeldShard[] {
    return [...this.#held.values()].map(known);
  }

  /** Whether work may be under way at all. Once it is not, what is to move moves. */
  set isWorking(isWorking: boolean) {
    this.#isWorking = isWorking;
    if (!isWorking) this.#endMoving();
  }

  readonly start: StartShard = (shard, { token, signal, fail }): StopShard => {
    const work: Work = { shard, token, deadline: null, moves: false, signal, fail };
    this.#held.set(shard, work);
    this.#change(work);
    // The lease is lost, or the map is damaged: a stop that is under way is to end at once, too.
    onAbort(signal, () => {
      if (work.end === undefined || !isUrgent(work)) return;
      work.deadline = Math.min(work.deadline ?? Number.POSITIVE_INFINITY, this.clock.now());
      this.#change(work);
    });
    return () => this.#stop(work);
  };

  received(news: ProgramNews): void {
    if (news.type === 'ended') {
      // One program's end is not that of others that follow.
      this.#haveEnded = this.#followers <= 1;
      if (this.#allHaveEnded) this.#endMoving();
      return;
    }
    if (news.type === 'stopped' || news.type === 'failed') {
      const work = this.#held.get(news.shard);
      if (work?.token === news.token) {
        if (news.type === 'failed') {
          work.hasFailed = true;
          work.fail(new Error('the program says that its work on the shard has failed'));
        }
        work.end?.();
      }
    } else if (news.type === 'asked' || news.change > 0) this.#haveEnded = false;
    if (news.type === 'followers') this.#followersAre(this.#followers + news.change);
    this.#heardAt = this.clock.monotonic();
  }

  /** No program is connected any more: all of them have to come again. */
  disconnected(): void {
    if (this.#followers > 0) {
      this.#heardAt = this.clock.monotonic();
      this.#haveEnded = false;
    }
    this.#followersAre(0);
  }

  /**
   * Ends the work, since this process is to end. Programs that may be at work are asked to stop all shards. It
   * waits for their answers while one of them is there, at most the stop timeout, and gives up the others (T5).
   *
   * @param leave stops all shards, and hands on those whose work has ended
   * @param hurry gives up at once
   * @returns how many shards may still be worked on
   */
  async leave(leave: () => PromiseLike<void>, hurry: AbortSignal): Promise<number> {
    this.#isLeaving = true;
    // However long ago a program was heard of: it may work on without a connection.
    const hasAsked = this.#heardAt !== Number.NEGATIVE_INFINITY;
    if (!hasAsked || this.#allHaveEnded) this.isWorking = false;
    const over = new AbortController();
    const left = Promise.resolve(leave()).then(() => over.abort());
    for (const work of this.#held.values()) this.#change(work);
    const waiting = anySignal(hurry, over.signal);
    await this.#programsAnswer(waiting.signal);
    waiting.release();
    const unknown = new Error('no program has said that its work has ended');
    for (const { giveUp } of this.#held.values()) giveUp?.(unknown);
    // What has ended before was handed on then. Without work, all of it ends at once.
    if (!this.#isWorking || this.#held.size === 0) await left;
    return this.#held.size;
  }

  /** Resolves when no more answers are to be expected, or `signal` aborts. */
  async #programsAnswer(signal: AbortSignal) {
    const { clock } = this;
    const from = clock.monotonic();
    while (!signal.aborted) {
      const goneAt = this.#followers > 0 ? Number.POSITIVE_INFINITY : Math.max(from, this.#heardAt) + GONE_MS;
      const leftMs = Math.min(from + this.stopTimeoutMs, goneAt) - clock.monotonic();
      if (leftMs <= 0) return;
      await clock.sleep(Math.min(leftMs, LOOK_MS), signal).catch(() => undefined);
    }
  }

  #stop(work: Work): Promise<void> {
    return new Promise((resolve, reject) => {
      work.end = () => {
        this.#held.delete(work.shard);
        this.#change(work);
        resolve();
      };
      work.giveUp = reject;
      work.moves = true;
      if (isUrgent(work)) work.deadline = this.clock.now();
      if (!this.#isWorking || this.#allHaveEnded || work.hasFailed) work.end();
      this.#change(work);
    });
  }

  /** One that still follows has not said so: it may be another program. */
  get #allHaveEnded() {
    return this.#haveEnded && this.#followers === 0;
  }

  #endMoving() {
    for (const { end } of this.#held.values()) end?.();
  }

  #followersAre(followers: number) {
    const before = this.#followers;
    this.#followers = followers;
    if (this.#allHaveEnded) this.#endMoving();
    // One that comes late is asked now, and has all of the time.
    if (before === 0) for (const work of this.#held.values()) if (work.end) this.#change(work);
    if (before === 0 || followers > 0) return;
    this.#departures += 1;
    const departure = this.#departures;
    void this.clock.sleep(GONE_MS).then(() => departure === this.#departures && this.#withdraw());
  }

  /** No program follows any more that could answer: one that comes is asked again. */
  #withdraw() {
    if (this.#followers > 0 || this.#isLeaving) return;
    for (const work of this.#held.values()) {
      if (work.deadline === null || isUrgent(work)) continue;
      work.deadline = null;
      this.#change(work);
    }
  }

  #change({ shard }: Work) {
    this.#changed.add(shard);
    this.touch();
  }

  /** Has what has changed reported, also where no shard has. */
  touch(): void {
    if (this.#isReporting) return;
    this.#isReporting = true;
    // Not a microtask: those run between two timers, and many stops may time out at once.
    void this.clock.sleep(0).then(() => this.#report());
  }

  #report() {
    this.#isReporting = false;
    const deadline = this.clock.now() + this.stopTimeoutMs;
    if (this.#followers > 0 || this.#isLeaving)
      for (const shard of this.#changed) {
        const work = this.#held.get(shard);
        if (work?.end) work.deadline ??= deadline;
      }
    this.onChange(this.#changed);
    this.#changed.clear();
  }
}

/** Whether its work is to end at once: the lease is lost, or the map is damaged. */
function isUrgent({ signal }: Work) {
  return signal.aborted && !(signal.reason instanceof StopTimeoutError);
}

function known({ shard, token, deadline, moves }: Work): HeldShard {
  return { shard, token, deadline, moves };
}
