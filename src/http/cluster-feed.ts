import { withTimeout } from '../base/abort.js';
import type { Clock } from '../base/clock.js';
import type { ClusterView, CurrentCluster } from '../monitor/cluster-view.js';
import type { WatchedNode } from '../monitor/node-monitor.js';
import { jsonOf, partsOf } from './report-pages.js';

/** The process' own node id. */
export interface FeedInstance {
  readonly monitor: Pick<WatchedNode, 'onEvent'>;
  /** What `/readyz` answers at this moment; all of it can be told as JSON. */
  json(): Readonly<Record<string, unknown>>;
}

interface ClusterFeedOptions {
  readonly clock: Clock;
  readonly view: ClusterView;
  readonly instance: FeedInstance | undefined;
}

/** Everything that a client is told at one moment. */
interface Told extends CurrentCluster {
  readonly epoch: string;
  /** The process' own node id as JSON, and how it differs from other moments by more than the passing of time. */
  readonly instance: string;
  readonly instanceFacts: string;
}

/** How long a new client waits for a scan, in milliseconds: then it is told that nothing is known yet. */
const HELLO_TIMEOUT_MS = 1_000;
/** How often the process' own node id is checked, in milliseconds: no event tells that a deadline has passed. */
const TICK_MS = 1_000;
/** Time without a message after which a client is sent a comment with the next tick, in milliseconds: at least every ten seconds. */
const HEARTBEAT_MS = 9_000;
const HEARTBEAT = Buffer.from(':\n\n');
/** How long a browser is to wait before it connects again, in milliseconds. */
const RETRY = 'retry: 1000\n';

/**
 * A cluster as server-sent events, for one client: everything first, and then each part that is different, as a whole. The client is sent what
 * there is when it is ready for more: a slow one misses snapshots, and nothing is kept for it. The cluster is followed until the generator ends, as
 * it does with the reason of `gone` as its error.
 */
export async function* clusterEvents({ clock, view, instance }: ClusterFeedOptions, gone: AbortSignal): AsyncGenerator<Uint8Array, void> {
  let wake: () => void = () => undefined;
  let instanceEvents = 0;
  const unfollow = view.follow(() => wake());
  const forget = instance?.monitor.onEvent(() => {
    instanceEvents += 1;
    wake();
  });
  const tellNow = (): Told => {
    const json = instance?.json() ?? null;
    const instanceFacts = JSON.stringify({ ...json, validForMs: instanceEvents });
    return { ...view.current(), epoch: view.epoch, instance: JSON.stringify(json), instanceFacts };
  };
  try {
    // A cluster that cannot be read is told as such.
    const scanned = view.snapshot(gone).catch(() => undefined);
    await withTimeout(clock, HELLO_TIMEOUT_MS, scanned, gone);
    let before: Told | undefined;
    for (let sentAt = clock.monotonic(); ; ) {
      const news = new Promise<void>((resolve) => {
        wake = resolve;
      });
      const now = tellNow();
      for (const chunk of before ? differences(before, now) : hello(now)) {
        yield chunk;
        sentAt = clock.monotonic();
      }
      if (now.revision !== before?.revision) yield* furtherPages(view);
      before = now;
      if (clock.monotonic() - sentAt >= HEARTBEAT_MS) {
        yield HEARTBEAT;
        sentAt = clock.monotonic();
      }
      await withTimeout(clock, TICK_MS, news, gone);
    }
  } finally {
    unfollow();
    forget?.();
  }
}

function* hello({ epoch, instance, report, store, events, tree }: Told): Generator<Uint8Array> {
  yield Buffer.from(`${RETRY}event: hello\ndata: {"epoch":"${epoch}","instance":${instance},\ndata: "report":`);
  yield report ? jsonOf(partsOf(report)[0]) : NULL;
  yield Buffer.from(`,\ndata: "store":${JSON.stringify(store)},"events":${JSON.stringify(events)},\ndata: "tree":`);
  yield tree ? jsonOf(tree) : NULL;
  yield Buffer.from('}\n\n');
}

function* differences(before: Told, now: Told): Generator<Uint8Array> {
  const { report, store, tree, events, instance } = now;
  if (store !== before.store) yield* message('store', store);
  if (now.revision !== before.revision && report) yield* message('report', partsOf(report)[0]);
  if (tree !== before.tree) yield* message('tree', tree);
  const lastId = before.events.at(-1)?.id ?? 0;
  for (const event of events) if (event.id > lastId) yield* message('change', event, `id: ${event.id}\n`);
  if (now.instanceFacts !== before.instanceFacts) yield Buffer.from(`event: instance\ndata: ${instance}\n\n`);
}

/** Each as it is when the client is ready for it: only that one is kept meanwhile. */
function* furtherPages(view: ClusterView): Generator<Uint8Array> {
  for (let index = 1; ; index += 1) {
    const { report } = view.current();
    const page = report && partsOf(report)[index];
    if (!page) return;
    yield* message('page', page);
  }
}

function* message(event: string, data: object | null, field = ''): Generator<Uint8Array> {
  yield Buffer.from(`${field}event: ${event}\ndata: `);
  yield data ? jsonOf(data) : NULL;
  yield Buffer.from('\n\n');
}

const NULL = Buffer.from('null');
