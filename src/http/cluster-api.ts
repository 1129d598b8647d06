import type { Clock } from '../base/clock.js';
import type { ClusterView } from '../monitor/cluster-view.js';
import { ClusterFeed, type FeedInstance } from './cluster-feed.js';
import { PLAIN } from './problem.js';
import { leasesPageOf, pagedReport, SharedMessages } from './shared-messages.js';

/** What {@link clusterApi} tells of. */
export interface ClusterApiOptions {
  readonly clock: Clock;
  /** Called once, for the first request; again after it failed. The caller closes the view. */
  readonly cluster: () => Promise<ClusterView>;
  /** @default a console alone, without a node id of its own */
  readonly instance?: FeedInstance | undefined;
}

/** Answers GET requests; what they are refused for is thrown. */
export interface ClusterApi {
  /**
   * `/api/leases`: the leases, as `nodelease status --json` shows them. While they cannot be read, as they were, with an `age` header that
   * says how many seconds ago that was. `?from=ID&limit=N` gives a page of the node ids: from that one on, a hundred unless it says otherwise, a
   * thousand at most; the report's `page` says where the next one begins.
   *
   * @throws {ConfigError} when the page is none
   * @throws {StoreError} or {ZooKeeperError} while they have never been read
   */
  leases(request: Request): Promise<Response>;

  /**
   * `/api/events`: the same followed, as server-sent events: first `hello` with everything, then each part that is different as a whole, and at least
   * a comment every ten seconds. A `hello` without a report means that the cluster could not be read yet. The stream ends when it is cancelled.
   */
  events(request: Request): Promise<Response>;
}

/** Answers a console. However many clients there are, the cluster is scanned once, and each message is made once. */
export function clusterApi({ clock, cluster, instance }: ClusterApiOptions): ClusterApi {
  let asked: Promise<ClusterView> | undefined;
  const view = async () => {
    asked ??= cluster();
    try {
      return await asked;
    } catch (error) {
      asked = undefined;
      throw error;
    }
  };
  const messages = new SharedMessages();
  let feed: ClusterFeed | undefined;
  return {
    async leases({ url, signal }) {
      const page = leasesPageOf(url);
      const snapshot = await (await view()).snapshot(signal);
      const { state, lookedAt } = snapshot.store;
      const age: Record<string, string> =
        state === 'failing' && lookedAt !== null ? { age: String(Math.max(0, Math.ceil((clock.now() - lookedAt) / 1_000))) } : {};
      if (page !== undefined) return Response.json(pagedReport(snapshot.report, page), { headers: { ...PLAIN, ...age } });
      // As a stream: a body of bytes would be copied for each client.
      const report = messages.json('report', snapshot.report);
      const headers = { ...PLAIN, 'content-type': 'application/json', 'content-length': String(report.length), ...age };
      return new Response(ReadableStream.from([report]), { headers });
    },
    async events() {
      const followed = await view();
      feed ??= new ClusterFeed({ clock, view: followed, messages, instance });
      return new Response(feed.open(), { headers: { ...PLAIN, 'content-type': 'text/event-stream' } });
    },
  };
}
