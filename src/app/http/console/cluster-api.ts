import { withTimeout } from '../../../core/base/abort.js';
import type { Clock } from '../../../core/base/clock.js';
import { shareAnswer } from '../../../core/base/share-answer.js';
import type { ClusterView, CurrentCluster } from '../../../node/monitor/cluster-view.js';
import type { WatchedNode } from '../../../node/runtime/node-monitor.js';
import type { ClusterHello, ConsoleOffers } from '../../../node/wire/cluster-snapshot.js';
import type { NodeHealthJson } from '../../../node/wire/node-health.js';
import { eventStream, message, NULL, RETRY } from '../event-stream.js';
import { jsonAnswer, PLAIN } from '../problem.js';
import type { OpenStreams } from '../server/open-streams.js';
import { idsOf, jsonOf, leasesPageOf, pagedReport, partsOf } from './report-pages.js';

/** The process' own node id. */
interface FeedInstance {
  readonly monitor: Pick<WatchedNode, 'onEvent'>;
  /** What `/readyz` answers at this moment. */
  json(): NodeHealthJson;
}

/** What {@link clusterApi} answers from. */
interface ClusterApiOptions {
  readonly clock: Clock;
  /** Called once, for the first request; again after it failed. The caller closes the view. */
  readonly cluster: () => Promise<ClusterView>;
  readonly streams: OpenStreams;
  /** @default a console alone, without a node id */
  readonly instance?: FeedInstance | undefined;
  readonly offers?: ConsoleOffers | undefined;
}

/**
 * Answers GET requests of consoles; what they are refused for is thrown. However many clients there are, the
 * cluster is scanned once.
 */
export function clusterApi(options: ClusterApiOptions) {
  const { clock, cluster, streams } = options;
  const openView = shareAnswer(cluster);
  return {
    /**
     * `/api/leases`: the leases, as `nodelease status --json` shows them, or a page of them. While they
     * cannot be read, as they were, with an `age` header that says how many seconds ago that was.
     *
     * @throws {ConfigError} when the page is none
     * @throws {StoreError} or {ZooKeeperError} while they have never been read
     */
    async leases({ url, signal }: Request): Promise<Response> {
      const page = leasesPageOf(url);
      const view = await openView();
      const { report, store } = await view.snapshot(signal);
      const headers: Record<string, string> = {};
      if (store.state === 'failing' && store.lookedAt !== null)
        headers.age = String(Math.max(0, Math.ceil((clock.now() - store.lookedAt) / 1_000)));
      if (page !== undefined) return jsonAnswer(pagedReport(report, page), headers);
      // As a stream: a body of bytes would be copied for each client.
      const json = jsonOf(report);
      return new Response(ReadableStream.from([json]), {
        headers: {
          ...PLAIN,
          ...headers,
          'content-type': 'application/json',
          'content-length': String(json.length),
        },
      });
    },

    /**
     * `/api/history?ids=3,17`: who held these node ids, as `nodelease history --json` shows it, as of the
     * last scan.
     *
     * @throws {ConfigError} when these are no node ids
     */
    async history({ url }: Request): Promise<Response> {
      const ids = idsOf(url);
      const view = await openView();
      return jsonAnswer({ nodes: view.tenures(ids) });
    },

    /**
     * `/api/events`: the same followed, as server-sent events: first `hello` with everything, then each part
     * that is different as a whole, and at least a comment every ten seconds. A `hello` without a report
     * means that the cluster could not be read yet.
     */
    async events(request: Request): Promise<Response> {
      const view = await openView();
      return streams.answer(request, (gone) => clusterEvents(view, options, gone));
    },
  };
}

/**
 * The process' own node id at one moment; `facts` is how it differs from other moments by more than the
 * passing of time.
 */
type InstanceNow = Readonly<Record<'json' | 'facts', string>>;

/** What else is sent of the cluster, each as a whole, by its name. Null: it is not there any more. */
type Parts = Readonly<Record<string, object | null | undefined>>;

/**
 * Shows whether a client knows something already. The report is not kept: clients that are slow would
 * keep one each.
 */
interface Sent extends Pick<CurrentCluster, 'revision' | 'store'> {
  readonly parts: Parts;
  readonly lastEventId: number;
  readonly instanceFacts: string;
}

/** How long a new client waits for a scan, in milliseconds: then it learns that nothing is known yet. */
const HELLO_TIMEOUT_MS = 1_000;
/**
 * A cluster as server-sent events, for one client: everything first, and then each part that is different, as
 * a whole.
 */
function clusterEvents(
  view: ClusterView,
  { clock, instance, offers = {} }: ClusterApiOptions,
  gone: AbortSignal,
): AsyncGenerator<Uint8Array, void> {
  let hasNews = true;
  let instanceEvents = 0;
  let before: Sent | undefined;
  const instanceNow = (): InstanceNow => {
    const json = instance?.json() ?? null;
    return { json: JSON.stringify(json), facts: JSON.stringify({ ...json, validForMs: instanceEvents }) };
  };
  const follow = (wake: () => void) => {
    const unfollow = view.follow(() => {
      hasNews = true;
      wake();
    });
    const forget = instance?.monitor.onEvent(() => {
      instanceEvents += 1;
      wake();
    });
    return () => {
      unfollow();
      forget?.();
    };
  };
  const begin = () => {
    // A cluster that cannot be read is sent as such.
    const scanned = view.snapshot(gone).catch(() => undefined);
    return withTimeout(clock, HELLO_TIMEOUT_MS, scanned, gone);
  };
  function* news() {
    const own = instanceNow();
    if (!hasNews && own.facts === before?.instanceFacts) return;
    hasNews = false;
    const { chunks, sent } = newsFor(before, view, own, offers);
    const isNewReport = sent.revision !== before?.revision;
    before = sent;
    yield* chunks;
    if (isNewReport) yield* furtherPages(view);
  }
  return eventStream({ clock, follow, begin, news }, gone);
}

/**
 * What a client is sent now, as bytes that all clients share where they are many, and what it has been sent
 * then.
 */
function newsFor(before: Sent | undefined, view: ClusterView, own: InstanceNow, offers: ConsoleOffers) {
  const now = view.current();
  const { revision, report: _, store, events, ...parts } = now;
  const lastEventId = events.at(-1)?.id ?? 0;
  const chunks = before
    ? differences(before, now, parts, own)
    : hello({ epoch: view.epoch, ...offers }, now, parts, own);
  const sent: Sent = { revision, store, parts, lastEventId, instanceFacts: own.facts };
  return { chunks: [...chunks], sent };
}

function* hello(
  facts: Pick<ClusterHello, 'epoch' | keyof ConsoleOffers>,
  { report, store, events }: CurrentCluster,
  parts: Parts,
  own: InstanceNow,
): Generator<Uint8Array> {
  yield Buffer.from(
    `${RETRY}event: hello\ndata: ${JSON.stringify(facts).slice(0, -1)},"instance":${own.json},\ndata: "report":`,
  );
  yield report ? jsonOf(partsOf(report)[0]) : NULL;
  yield Buffer.from(`,\ndata: "store":${JSON.stringify(store)},"events":${JSON.stringify(events)}`);
  for (const [name, part] of Object.entries(parts)) {
    if (part === undefined) continue;
    yield Buffer.from(`,\ndata: ${JSON.stringify(name)}:`);
    yield part ? jsonOf(part) : NULL;
  }
  yield Buffer.from('}\n\n');
}

function* differences(
  before: Sent,
  { revision, report, store, events }: CurrentCluster,
  parts: Parts,
  own: InstanceNow,
): Generator<Uint8Array> {
  if (store !== before.store) yield* message('store', store);
  if (revision !== before.revision && report) yield* message('report', partsOf(report)[0]);
  for (const name of Object.keys({ ...before.parts, ...parts }))
    if (parts[name] !== before.parts[name]) yield* message(name, parts[name] ?? null);
  for (const event of events)
    if (event.id > before.lastEventId) yield* message('change', event, `id: ${event.id}\n`);
  if (own.facts !== before.instanceFacts) yield Buffer.from(`event: instance\ndata: ${own.json}\n\n`);
}

/** Each as it is when the client is ready for it: only that one is kept meanwhile. */
function* furtherPages(view: ClusterView): Generator<Uint8Array> {
  for (let index = 1; ; index += 1) {
    const page = pageAt(view, index);
    if (!page) return;
    yield* message('page', page);
  }
}

function pageAt(view: ClusterView, index: number): object | undefined {
  const { report } = view.current();
  return report ? partsOf(report)[index] : undefined;
}
