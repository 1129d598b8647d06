import type { MessagePort } from 'node:worker_threads';
import { anySignal, onAbort, withTimeout } from '../../core/base/abort.js';
import type { Clock } from '../../core/base/clock.js';
import { ConfigError, explain } from '../../core/base/errors.js';
import type { Lease } from '../../core/lease/model/lease.js';
import { formatListenAddress } from '../../core/settings/listen-address.js';
import type { OwnedShards, ShardEvent } from '../../node/shards/index.js';
import type { Announcement } from '../../zookeeper/discovery/announcement.js';
import { leaseLog } from '../kit/log/lease-log.js';
import { Mirror, Publisher } from '../kit/mirror.js';
import { type ProgramNews, ProgramShards } from './program-shards.js';
import type { HeldShard, LeaseEnd, ServedShards, ShardsChange, ShardsState } from './shards-api.js';
import type { ShardSettings } from './shards-settings.js';

type Log = Parameters<typeof leaseLog>[0];

/** What a mirror is sent: at first all, then what has changed. */
interface ShardsNews extends ShardsChange {
  readonly count: number;
  readonly epoch: number;
  readonly end?: LeaseEnd | undefined;
  /** Whether a mirror is to hand out no shard any more, and to say so. */
  readonly isLeaving: boolean;
}

/** What a mirror says: it hands out no shard any more. What programs asked before was said before. */
interface Closed {
  readonly type: 'closed';
}

/** How many numbers of shards a line of the log names. */
const NAMED_SHARDS = 10;
/** How long a mirror may take to say that it hands out no shard any more, in milliseconds. */
const CLOSED_TIMEOUT_MS = 2_000;

/**
 * The shards of this thread's node. Their work is done by the clients of another thread, as `ProgramShards`
 * says.
 */
export class ShardPublisher extends Publisher<ShardsNews> {
  readonly #programs: ProgramShards;
  #shards: OwnedShards | undefined;
  #log: Log | undefined;
  #end: LeaseEnd | undefined;
  /** The shards whose stop has timed out since the last report. */
  readonly #late = new Set<number>();
  #isLeaving = false;
  #closed: (isClosed: true) => void = () => undefined;

  constructor(
    private readonly clock: Clock,
    private readonly settings: ShardSettings,
  ) {
    super();
    this.#programs = new ProgramShards(clock, settings.stopTimeoutMs, (changed) => this.#report(changed));
  }

  /**
   * Takes part in the ownership of shards.
   *
   * @param at what is announced, for routers
   * @throws as `ownShards` does
   */
  async takePart(lease: Lease, log: Log, at: Announcement = {}): Promise<void> {
    const { ownShards } = await import('../../node/shards/index.js');
    const { address, port } = at;
    this.#log = log;
    try {
      this.#shards = await ownShards(lease, {
        ...this.settings,
        ...(address && port && { address: formatListenAddress({ host: address, port }) }),
        start: this.#programs.start,
        onEvent: (event) => this.#onEvent(event, log),
      });
    } catch (error) {
      if (!(error instanceof ConfigError && error.setting === 'count')) throw error;
      throw new ConfigError('--shards', error.value, error.expected);
    }
    // The end did not wait for this.
    if (this.#isLeaving) return this.#shards[Symbol.asyncDispose]();
    onAbort(lease.signal, () => this.ended('lost'));
    log.info(
      'shards: a program that follows /shards/events is asked to stop those that are to move; without one, they move when the work or the lease ends',
    );
  }

  /** Whether work on shards may be under way. Once it is not, what is to move moves. */
  set isWorking(isWorking: boolean) {
    this.#programs.isWorking = isWorking;
  }

  /**
   * Hands on the shards of a lease whose node id is to be given back, once programs have ended their work.
   *
   * @param hurry does not wait any longer
   * @returns whether all work has ended: otherwise the lease must be left to expire (T5)
   */
  async leave(lease: Pick<Lease, 'signal'>, hurry: AbortSignal): Promise<boolean> {
    const shards = this.#shards;
    this.#isLeaving = true;
    if (shards === undefined) return true;
    const closed = new Promise<true>((resolve) => {
      this.#closed = resolve;
    });
    this.send();
    // T5: by then it is known which programs have been given shards. Without an answer, some may have been.
    if (!(await withTimeout(this.clock, CLOSED_TIMEOUT_MS, closed)))
      this.#programs.received({ type: 'asked' });
    const over = anySignal(hurry, lease.signal);
    const left = await this.#programs.leave(() => shards[Symbol.asyncDispose](), over.signal);
    over.release();
    if (left > 0 && !lease.signal.aborted) {
      this.#log?.warn(
        `the node id is not given back, and expires: no program has said that its work on ${numbered(this.#programs.all().map(({ shard }) => shard))} has ended`,
      );
      this.ended('expires');
    } else this.ended('released');
    return left === 0;
  }

  /** No shard is this node's any more. Programs learn of it at once. */
  ended(end: LeaseEnd): void {
    const isLoss = this.#end === undefined && end === 'lost';
    this.#end ??= end;
    // After a loss all work is to stop at once, which programs are sent before the end. The server may be
    // closed before that: what is known then is sent.
    if (isLoss) this.#programs.touch();
    else this.send();
  }

  override connect(): MessagePort {
    this.#programs.disconnected();
    return super.connect();
  }

  protected current(): ShardsNews {
    return { ...this.#facts, held: this.#programs.all(), gone: [] };
  }

  protected override received(news: ProgramNews | Closed): void {
    if (news.type === 'closed') this.#closed(true);
    else this.#programs.received(news);
  }

  get #facts() {
    const { count } = this.settings;
    return { count, epoch: this.#shards?.epoch ?? 0, end: this.#end, isLeaving: this.#isLeaving };
  }

  #onEvent(event: ShardEvent, log: Log) {
    if (event.type === 'epoch') this.#programs.touch();
    if (event.type === 'damaged' || event.type === 'store-failed') leaseLog(log)(event);
    else if (event.type !== 'failed') log.debug(event, `shards: ${event.type}`);
    else if (event.step === 'start') log.warn({ shard: event.shard }, explain(event.error));
    // Without a deadline no program was asked.
    else if (!this.#isLeaving && this.#programs.get(event.shard)?.deadline) {
      this.#late.add(event.shard);
      this.#programs.touch();
    }
  }

  #report(changed: ReadonlySet<number>) {
    if (this.#late.size > 0) {
      const have = this.#late.size > 1 ? 'have' : 'has';
      this.#log?.warn(
        `${numbered([...this.#late])} ${have} not stopped within ${this.settings.stopTimeoutMs} ms`,
      );
      this.#late.clear();
    }
    const held: HeldShard[] = [];
    const gone: number[] = [];
    for (const shard of changed) {
      const now = this.#programs.get(shard);
      if (now === undefined) gone.push(shard);
      else held.push(now);
    }
    this.send({ ...this.#facts, held, gone });
  }
}

function numbered(shards: readonly number[]): string {
  if (shards.length === 1) return `shard ${shards[0]}`;
  const more = shards.length - NAMED_SHARDS;
  return `${shards.length} shards (${shards.slice(0, NAMED_SHARDS).join(', ')}${more > 0 ? `, and ${more} more` : ''})`;
}

/** The shards of another thread's node, for the clients of this one. */
export class ShardMirror extends Mirror<ShardsNews> implements ServedShards {
  readonly #held = new Map<number, HeldShard>();
  /** Whether a program has been given shards, and has not said that all work has ended. */
  #isAsked = false;

  constructor(port: MessagePort) {
    super(port);
    this.#apply(this.received);
    this.onEvent((news) => this.#apply(news));
  }

  state(): ShardsState {
    const { count, epoch, end } = this.newest();
    return { count, epoch, end, held: this.#held };
  }

  follow(onChange: (change: ShardsChange) => void): () => void {
    const forget = this.onEvent(onChange);
    this.#isAsked = true;
    this.#say({ type: 'followers', change: 1 });
    return () => {
      forget();
      this.#say({ type: 'followers', change: -1 });
    };
  }

  asked(): void {
    this.#isAsked = true;
    this.#say({ type: 'asked' });
  }

  stopped(shard: number, token: number): void {
    this.#say({ type: 'stopped', shard, token });
  }

  failed(shard: number, token: number): void {
    this.#say({ type: 'failed', shard, token });
  }

  ended(): void {
    this.#isAsked = false;
    this.#say({ type: 'ended' });
  }

  #say(news: ProgramNews | Closed) {
    this.port.postMessage(news);
  }

  #apply({ held, gone, isLeaving }: ShardsNews) {
    for (const each of held) this.#held.set(each.shard, each);
    for (const shard of gone) this.#held.delete(shard);
    if (!isLeaving) return;
    // A program that has some goes on seeing them, until it is asked to stop them.
    if (!this.#isAsked)
      for (const { shard, deadline } of this.#held.values()) if (deadline === null) this.#held.delete(shard);
    this.#say({ type: 'closed' });
  }
}
