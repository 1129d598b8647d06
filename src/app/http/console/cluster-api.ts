import type { Clock } from '../../../core/base/clock.js';
import { shareAnswer } from '../../../core/base/share-answer.js';
import type { ClusterView } from '../../../node/monitor/cluster-view.js';
import type { ConsoleOffers } from '../../../node/wire/cluster-snapshot.js';
import { jsonAnswer, PLAIN } from '../problem.js';
import type { OpenStreams } from '../server/open-streams.js';
import { clusterEvents, type FeedInstance } from './cluster-feed.js';
import { idsOf, jsonOf, leasesPageOf, pagedReport } from './report-pages.js';

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
export function clusterApi({ clock, cluster, streams, instance, offers }: ClusterApiOptions) {
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
      return streams.answer(request, (gone) => clusterEvents({ clock, view, instance, offers }, gone));
    },
  };
}
