import { HealthMirror, HealthPublisher } from '../../src/app/cli/node-http/node-mirror.js';
import { nodeApp } from '../../src/app/http/node-app.js';
import { ShardMirror, ShardPublisher } from '../../src/app/shards/shard-mirror.js';
import { shardsRoutes } from '../../src/app/shards/shards-api.js';
import { acquireLease } from '../../src/core/lease/acquire/acquire-lease.js';
import { StoreError } from '../../src/core/store/lease-store.js';
import { MemoryBucket } from '../../src/core/store/memory/memory-bucket.js';
import { MemoryLeaseStore } from '../../src/core/store/memory/memory-lease-store.js';
import { NodeMonitor } from '../../src/node/runtime/node-monitor.js';
import { inVirtualTime, seededRandom, settled, VirtualClock } from './virtual-clock.js';

/** Number of shards. */
export const COUNT = 8;
/** The bearer token. */
export const RIGHT = 'the-right-token-of-all';

export interface ShardsAnswer {
  readonly count: number;
  readonly epoch: number;
  readonly owned: { shard: number; token: number }[];
  readonly stopping: { shard: number; token: number }[];
}
interface ShardNews {
  readonly event: string;
  readonly data: { shard: number; token: number; deadline: number | null };
}

/** Nodes of `run --shards` on one store in virtual time: what their programs ask over HTTP, and its answers. */
export function servedShards() {
  const clock = new VirtualClock();
  const bucket = new MemoryBucket(clock, 1);
  const closing: (() => void)[] = [];

  /** A node whose work on shards may be under way; `leaves`: that is to end before it takes part. */
  async function node({ hasToken = false, stopTimeoutMs = 30_000, count = COUNT, leaves = false } = {}) {
    const monitor = new NodeMonitor();
    const lines: [string, string][] = [];
    const line = (level: string) => (_: unknown, text?: string) =>
      void lines.push([level, text ?? String(_)]);
    const log = { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') };
    const isAway = { value: false };
    /** How many shards each message to the thread has. */
    const messages: number[] = [];
    const store = new MemoryLeaseStore(
      {
        clock,
        intercept: async (_, apply) => {
          await clock.sleep(20);
          if (isAway.value) throw new StoreError('away', { fault: 'unreachable', outcome: 'unknown' });
          return apply();
        },
      },
      bucket,
    );
    const publisher = new ShardPublisher(clock, { count, stopTimeoutMs });
    const health = new HealthPublisher(monitor);
    /** The thread that answers; a further one takes the place of the one before. */
    const thread = () => {
      const shards = new ShardMirror(publisher.connect());
      shards.onEvent(({ held, gone }) => messages.push(held.length + gone.length));
      const mirror = new HealthMirror(health.connect(), clock);
      const token = hasToken ? { token: { admits: async (given: string) => given === RIGHT } } : {};
      closing.push(
        () => shards.close(),
        () => mirror.close(),
      );
      return nodeApp({
        clock,
        monitor: mirror,
        parts: [shardsRoutes({ shards, monitor: mirror })],
        ...token,
      });
    };
    let app = thread();
    closing.push(
      () => publisher.close(),
      () => health.close(),
    );
    const acquiring = acquireLease({
      ...{ store, clock, random: seededRandom(closing.length), taskId: `task-${closing.length}` },
      ...{ nodes: 4, durationMs: 15_000, graceMs: 1_000, onEvent: monitor.onLeaseEvent },
    });
    const lease = await inVirtualTime(clock, acquiring);
    monitor.hold(lease);
    const taking = publisher.takePart(lease, log);
    if (leaves) await publisher.leave(lease, lease.signal);
    await inVirtualTime(clock, taking);
    return {
      ...{ lease, publisher, lines, isAway, messages },
      ask: (path: string, init?: RequestInit) => app.request(path, init),
      shards: async () => (await (await app.request('/shards')).json()) as ShardsAnswer,
      /** A program that says that a shard has stopped. */
      stopped: async ({ shard, token }: { shard: number; token?: number }) => {
        const query = token === undefined ? '' : `?token=${token}`;
        return (await app.request(`/shards/${shard}/stopped${query}`, { method: 'POST' })).status;
      },
      /** A program that says that its work on a shard has failed. */
      failed: async (shard: number, token: number | string) =>
        (await app.request(`/shards/${shard}/failed?token=${token}`, { method: 'POST' })).status,
      /** A program that follows the events: what it has been sent, and how it goes away. */
      follow: async () => {
        const response = await app.request('/shards/events');
        const reader = (response.body as ReadableStream<Uint8Array>).getReader();
        let text = '';
        const read = async () => {
          for (let next = await reader.read(); !next.done; next = await reader.read())
            text += new TextDecoder().decode(next.value);
        };
        void read().catch(() => undefined);
        const leave = () => void reader.cancel().catch(() => undefined);
        closing.push(leave);
        await settled();
        const news = (): ShardNews[] =>
          [...text.matchAll(/^event: (\w+)\ndata: (.*)\n\n/gm)].map(([, event = '', data = '']) => ({
            event,
            data: JSON.parse(data),
          }));
        return { leave, news, of: (event: string) => news().filter((each) => each.event === event) };
      },
      /** As `serve` at SIGTERM: resolves to whether all work has ended. */
      leave: (hurry = new AbortController().signal) => publisher.leave(lease, hurry),
      restartThread: () => {
        app = thread();
      },
      /** The thread has died, and no other one is there yet. */
      killThread: () => publisher.connect().close(),
    };
  }

  const close = () => {
    for (const each of closing.splice(0)) each();
  };
  return { clock, bucket, node, close };
}

export type ServingNode = Awaited<ReturnType<ReturnType<typeof servedShards>['node']>>;

/** How many shards a node shows as owned, and as stopping. */
export async function counts({ shards }: ServingNode) {
  const { owned, stopping } = await shards();
  return [owned.length, stopping.length];
}

export function warnings({ lines }: ServingNode) {
  return lines.filter(([level]) => level === 'warn' || level === 'error');
}
