import { isIP } from 'node:net';
import type { Clock } from '../../core/base/clock.js';
import type { StoreSession } from '../../core/lease/session/store-session.js';
import { ClusterReader } from '../../node/monitor/cluster-reader.js';
import { decodeMap, SHARDS_KEY } from '../../node/shards/shard-map.js';
import {
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
const WAIT_MS = 1_000;

/**
 * The nodes as their leases say it, with the addresses that the owners of shards write there, and the owners
 * of shards. A store is read only while there are questions about it.
 */
export function storeView(options: StoreViewOptions) {
  const { session, clock } = options;
  const closing = new AbortController();
  const { signal } = closing;
  const reader = new ClusterReader(session, clock);
  const leases = repeatedRead(() => reader.scan(signal), options);
  const shards = repeatedRead(async () => {
    const object = await session.read(SHARDS_KEY, { signal });
    return object === undefined ? [] : decodeMap(object.body).shards;
  }, options);
  return {
    node: (id: number): Facts<Holder> =>
      leases.facts(({ nodes, draining = [] }) => {
        const node = nodes[id] ?? draining.find((each) => each.id === id);
        if (node?.state !== 'held') return undefined;
        return { version: node.version, taskId: node.taskId, ...endpointOf(node.address) };
      }),
    shard: (shard: number): Facts<ShardOwner> =>
      shards.facts((all) => {
        const { owner, token = 0 } = all[shard] ?? {};
        return owner && { token, nodeId: owner.id, ...endpointOf(owner.address) };
      }),
    staleMs: () => Math.max(leases.staleMs(), shards.staleMs()),
    /** Aborts the reads under way. The store is closed by its owner. */
    close: () => closing.abort(),
  };
}

/** Something that is read again when it is asked for, and the last read is no longer fresh. */
function repeatedRead<T>(read: () => Promise<T>, { clock, maxStaleMs }: StoreViewOptions) {
  let last: { readonly value: T; readonly at: number } | undefined;
  let hasFailed = false;
  let next: { readonly done: Promise<void>; readonly since: number } | undefined;
  let freshUntil = Number.NEGATIVE_INFINITY;
  const readAgain = async (at: number) => {
    const value = await read().catch(() => undefined);
    hasFailed = value === undefined;
    if (value !== undefined) last = { value, at };
    freshUntil = clock.monotonic() + PAUSE_MS;
    next = undefined;
  };
  return {
    /** @param of returns undefined where there is no such name */
    facts<F>(of: (value: T) => F | undefined): Facts<F> {
      const now = clock.monotonic();
      if (now >= freshUntil) {
        next ??= { done: readAgain(now), since: now };
        if (now - next.since < WAIT_MS) return { kind: 'pending', again: next.done };
      }
      // Without a failure the store may just be slow.
      if (last === undefined || now - (hasFailed ? last.at : freshUntil) > maxStaleMs) return UNKNOWN;
      return factsOf(of(last.value));
    },
    staleMs: () => (hasFailed && last ? clock.monotonic() - last.at : 0),
  };
}

/** `HOST:PORT`, as a task writes it, or a host alone; empty for anything else. */
function endpointOf(address = ''): Reachable {
  const [, bracketed, plain, port] = /^(?:\[(.+)\]|([^:]+))(?::(\d{1,5}))?$/.exec(address) ?? [];
  const host = isIP(address) === 6 ? address : (bracketed ?? plain ?? '');
  return isHost(host) ? { host, port: port === undefined ? undefined : Number(port) } : {};
}
