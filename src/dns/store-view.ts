import { isIP } from 'node:net';
import type { Clock } from '../base/clock.js';
import type { StoreSession } from '../lease/session/store-session.js';
import { ClusterReader } from '../monitor/cluster-reader.js';
import { ScanLoop } from '../monitor/scan-loop.js';
import { decodeMap, SHARDS_KEY } from '../shards/shard-map.js';
import { type DnsView, type Holder, isHost, type Known, type Reachable, type ShardOwner } from './zone.js';

export interface StoreViewOptions {
  readonly session: StoreSession;
  readonly clock: Clock;
  /** After how long without news nothing is answered, in milliseconds. */
  readonly maxStaleMs: number;
}

/** Minimum pause between two reads, in milliseconds: each may cost money. */
const PAUSE_MS = 5_000;
/** How long a question waits for a read before it is answered from the last one, in milliseconds. */
const PATIENCE_MS = 1_000;

/**
 * The nodes as their leases say it, with the addresses that the owners of shards write there, and the owners
 * of shards. A store is read only while there are questions about it.
 */
export class StoreView implements Pick<DnsView, 'node' | 'shard' | 'staleMs'> {
  readonly #leases;
  readonly #shards;

  constructor(options: StoreViewOptions) {
    const { session, clock } = options;
    const reader = new ClusterReader(session, clock);
    this.#leases = new Reading((signal) => reader.scan(signal), options);
    this.#shards = new Reading(async (signal) => {
      const object = await session.read(SHARDS_KEY, { signal });
      return object === undefined ? [] : decodeMap(object.body).shards;
    }, options);
  }

  node(id: number): Known<Holder> {
    return this.#leases.facts(({ nodes, draining = [] }) => {
      const node = nodes[id] ?? draining.find((each) => each.id === id);
      if (node?.state !== 'held') return undefined;
      return { version: node.version, taskId: node.taskId, ...endpointOf(node.address) };
    });
  }

  shard(shard: number): Known<ShardOwner> {
    return this.#shards.facts((shards) => {
      const { owner, since: token = 0 } = shards[shard] ?? {};
      return owner && { token, nodeId: owner.id, ...endpointOf(owner.address) };
    });
  }

  get staleMs(): number {
    return Math.max(this.#leases.staleMs, this.#shards.staleMs);
  }

  /** Aborts the reads under way. The store is closed by its owner. */
  async close(): Promise<void> {
    await Promise.all([this.#leases.close(), this.#shards.close()]);
  }
}

/** Something that is read again when it is asked for, and the last read is no longer fresh. */
class Reading<T> {
  readonly #loop: ScanLoop;
  #last: { readonly value: T; readonly at: number } | undefined;
  #hasFailed = false;
  #next: { readonly done: Promise<void>; readonly since: number } | undefined;

  constructor(
    read: (signal: AbortSignal) => Promise<T>,
    private readonly options: StoreViewOptions,
  ) {
    const { clock } = options;
    this.#loop = new ScanLoop(async (signal) => {
      const at = clock.monotonic();
      try {
        this.#last = { value: await read(signal), at };
        this.#hasFailed = false;
      } catch {
        signal.throwIfAborted();
        this.#hasFailed = true;
      }
      return PAUSE_MS;
    }, clock);
  }

  facts<F>(of: (value: T) => F): F | 'unknown' | Promise<unknown> {
    const now = this.options.clock.monotonic();
    if (!this.#loop.isFresh) {
      this.#next ??= { done: this.#readAgain(), since: now };
      if (now - this.#next.since < PATIENCE_MS) return this.#next.done;
    }
    if (this.#last === undefined || now - this.#last.at > this.options.maxStaleMs) return 'unknown';
    return of(this.#last.value);
  }

  get staleMs(): number {
    return this.#hasFailed && this.#last ? this.options.clock.monotonic() - this.#last.at : 0;
  }

  close(): Promise<void> {
    return this.#loop.close();
  }

  async #readAgain(): Promise<void> {
    await this.#loop.next();
    this.#next = undefined;
  }
}

/** `HOST:PORT`, as a task writes it, or a host alone; empty for anything else. */
function endpointOf(address = ''): Reachable {
  const [, bracketed, plain, port] = /^(?:\[(.+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(address) ?? [];
  const host = isIP(address) === 6 ? address : (bracketed ?? plain ?? '');
  return isHost(host) ? { host, port: port === undefined ? undefined : Number(port) } : {};
}
