import type { MessagePort } from 'node:worker_threads';
import { onAbort } from '../../base/abort.js';
import type { Clock } from '../../base/clock.js';
import { ConfigError, explain } from '../../base/errors.js';
import type { Announcement } from '../../discovery/announcement.js';
import type { HeldShard, ServedShards, ShardsState } from '../../http/shards-api.js';
import type { Lease } from '../../lease/model/lease.js';
import { formatListenAddress } from '../../settings/listen-address.js';
import type { ShardSettings } from '../../settings/settings.js';
import type { OwnedShard, OwnedShards, ShardEvent, StopShard } from '../../shards/index.js';
import { leaseLog } from '../log/lease-log.js';
import { Mirror, Publisher } from './node-mirror.js';

type Log = Parameters<typeof leaseLog>[0];

/** The work on a shard has ended. */
interface Answer extends OwnedShard {
  readonly hasFailed?: boolean;
}

/** The work of programs on one shard. */
interface Work extends HeldShard {
  deadline: number | null;
  /** The program has said that it has failed, and has ended. */
  hasFailed?: boolean;
  /** Hands the shard on for that reason. */
  readonly fail: (error: unknown) => void;
  /** How to say that it has ended; undefined while the shard is not to move. */
  end?: () => void;
}

/**
 * The shards of this thread's node. Their work is done by the clients of another thread: those that follow the
 * events are asked to stop a shard. Without such clients it runs until all work has ended.
 */
export class ShardPublisher extends Publisher<ShardsState> {
  readonly #held = new Map<number, Work>();
  #shards: OwnedShards | undefined;
  #followers = 0;
  #isWorking = false;
  #isSending = false;

  constructor(
    private readonly clock: Clock,
    private readonly settings: ShardSettings,
  ) {
    super();
  }

  /**
   * Takes part in the ownership of shards.
   *
   * @param at what is announced, for routers
   * @throws as `ownShards` does
   */
  async takePart(lease: Lease, log: Log, at: Announcement = {}): Promise<void> {
    const { ownShards } = await import('../../shards/index.js');
    const { address, port } = at;
    try {
      this.#shards = await ownShards(lease, {
        ...this.settings,
        ...(address && port && { address: formatListenAddress({ host: address, port }) }),
        start: (shard, { token, signal, fail }) =>
          this.#start({ shard, token, deadline: null, fail }, signal),
        onEvent: (event) => this.#onEvent(event, log),
      });
    } catch (error) {
      if (!(error instanceof ConfigError && error.setting === 'count')) throw error;
      throw new ConfigError('--shards', error.value, error.expected);
    }
    log.info(
      'shards: a program that follows /shards/events is asked to stop those that are to move; without one, they move when the work or the lease ends',
    );
  }

  /** Whether work on shards may be under way. Once it is not, what is to move moves. */
  set isWorking(isWorking: boolean) {
    this.#isWorking = isWorking;
    if (!isWorking) for (const { end } of this.#held.values()) end?.();
  }

  override connect(): MessagePort {
    this.#followers = 0;
    return super.connect();
  }

  protected current(): ShardsState {
    const held = [...this.#held.values()].map(({ shard, token, deadline }) => ({ shard, token, deadline }));
    return { count: this.settings.count, epoch: this.#shards?.epoch ?? 0, held };
  }

  /** @param answer more or fewer followers, or the end of the work on a shard */
  protected override received(answer: number | Answer): void {
    if (typeof answer === 'number') {
      this.#followers += answer;
      this.#changed();
      return;
    }
    const work = this.#held.get(answer.shard);
    if (work?.token !== answer.token) return;
    if (answer.hasFailed) {
      work.hasFailed = true;
      work.fail(new Error('the program says that its work on the shard has failed'));
    }
    work.end?.();
  }

  #start(work: Work, signal: AbortSignal): StopShard {
    this.#held.set(work.shard, work);
    // The lease is lost, or the map is damaged: a stop that is under way is to end at once, too.
    onAbort(signal, () => {
      if (work.deadline === null) return;
      work.deadline = Math.min(work.deadline, this.clock.now());
      this.#changed();
    });
    return () =>
      new Promise((resolve) => {
        work.end = () => {
          this.#held.delete(work.shard);
          resolve();
        };
        if (signal.aborted) work.deadline = this.clock.now();
        if (!this.#isWorking || work.hasFailed) work.end();
        this.#changed();
      });
  }

  #onEvent(event: ShardEvent, log: Log): void {
    this.#changed();
    if (event.type === 'damaged' || event.type === 'store-failed') leaseLog(log)(event);
    else if (event.type !== 'failed') log.debug(event, `shards: ${event.type}`);
    // Otherwise no program was asked.
    else if (event.step === 'start' || this.#held.get(event.shard)?.deadline)
      log.warn({ shard: event.shard }, explain(event.error));
  }

  /** Sends what is known, once for all that happens now. */
  #changed(): void {
    if (this.#isSending) return;
    this.#isSending = true;
    queueMicrotask(() => {
      this.#isSending = false;
      const deadline = this.clock.now() + this.settings.stopTimeoutMs;
      if (this.#followers > 0)
        for (const work of this.#held.values()) if (work.end) work.deadline ??= deadline;
      this.send();
    });
  }
}

/** The shards of another thread's node, for the clients of this one. */
export class ShardMirror extends Mirror<ShardsState> implements ServedShards {
  state(): ShardsState {
    return this.newest();
  }

  follow(wake: () => void): () => void {
    const forget = this.onEvent(wake);
    this.port.postMessage(1);
    return () => {
      forget();
      this.port.postMessage(-1);
    };
  }

  stopped(shard: number, token: number): void {
    this.port.postMessage({ shard, token } satisfies Answer);
  }

  failed(shard: number, token: number): void {
    this.port.postMessage({ shard, token, hasFailed: true } satisfies Answer);
  }
}
