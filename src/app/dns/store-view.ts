import { isIP } from 'node:net';
import type { Clock } from '../../core/base/clock.js';
import type { StoreSession } from '../../core/lease/session/store-session.js';
import { ClusterReader } from '../../node/monitor/cluster-reader.js';
import { decodeMap, SHARDS_KEY } from '../../node/shards/shard-map.js';
import {
  type DnsView,
  type Facts,
  factsOf,
  type Holder,
  isHost,
  type Reachable,
  type ShardOwner,
  UNKNOWN,
} from './zone.js';

interface StoreViewOptions {
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
  readonly #closing = new AbortController();

  constructor(options: StoreViewOptions) {
    const { session, clock } = options;
    const { signal } = this.#closing;
    const reader = new ClusterReader(session, clock);
    this.#leases = new RepeatedRead(() => reader.scan(signal), options);
    this.#shards = new RepeatedRead(async () => {
      const object = await session.read(SHARDS_KEY, { signal });
      return object === undefined ? [] : decodeMap(object.body).shards;
    }, options);
  }

  node(id: number): Facts<Holder> {
    return this.#leases.facts(({ nodes, draining = [] }) => {
      const node = nodes[id] ?? draining.find((each) => each.id === id);
      if (node?.state !== 'held') return undefined;
      return { version: node.version, taskId: node.taskId, ...endpointOf(node.address) };
    });
  }

  shard(shard: number): Facts<ShardOwner> {
    return this.#shards.facts((shards) => {
      const { owner, token = 0 } = shards[shard] ?? {};
      return owner && { token, nodeId: owner.id, ...endpointOf(owner.address) };
    });
  }

  get staleMs(): number {
    return Math.max(this.#leases.staleMs, this.#shards.staleMs);
  }

  /** Aborts the reads under way. The store is closed by its owner. */
  close(): void {
    this.#closing.abort();
  }
}

/** Something that is read again when it is asked for, and the last read is no longer fresh. */
class RepeatedRead<T> {
  #last: { readonly value: T; readonly at: number } | undefined;
  #hasFailed = false;
  #next: { readonly done: Promise<void>; readonly since: number } | undefined;
  #freshUntil = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly read: () => Promise<T>,
    private readonly options: StoreViewOptions,
  ) {}

  /** @param of returns undefined where there is no such name */
  facts<F>(of: (value: T) => F | undefined): Facts<F> {
    const now = this.options.clock.monotonic();
    if (now >= this.#freshUntil) {
      this.#next ??= { done: this.#readAgain(now), since: now };
      if (now - this.#next.since < PATIENCE_MS) return { kind: 'pending', again: this.#next.done };
    }
    if (this.#last === undefined || now - this.#last.at > this.options.maxStaleMs) return UNKNOWN;
    return factsOf(of(this.#last.value));
  }

  get staleMs(): number {
    return this.#hasFailed && this.#last ? this.options.clock.monotonic() - this.#last.at : 0;
  }

  async #readAgain(at: number): Promise<void> {
    const value = await this.read().catch(() => undefined);
    this.#hasFailed = value === undefined;
    if (value !== undefined) this.#last = { value, at };
    this.#freshUntil = this.options.clock.monotonic() + PAUSE_MS;
    this.#next = undefined;
  }
}

/** `HOST:PORT`, as a task writes it, or a host alone; empty for anything else. */
function endpointOf(address = ''): Reachable {
  const [, bracketed, plain, port] = /^(?:\[(.+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(address) ?? [];
  const host = isIP(address) === 6 ? address : (bracketed ?? plain ?? '');
  return isHost(host) ? { host, port: port === undefined ? undefined : Number(port) } : {};
}
