import type { Clock } from '../clock.js';
import type { ClusterView } from '../monitor/cluster-view.js';
import type { WatchedNode } from '../monitor/node-health.js';
import { ClusterBroadcast } from './cluster-broadcast.js';
import { SnapshotText } from './cluster-messages.js';
import { leasesPageOf, pagedReport } from './leases-page.js';
import { PLAIN } from './problem.js';

/** The process' own node id, for whoever follows the cluster that it is part of. */
export interface ClusterApiInstance {
  readonly monitor: Pick<WatchedNode, 'onEvent'>;
  /** What `/readyz` answers with, at the time of the asking; all of it can be told as JSON. */
  json(): Readonly<Record<string, unknown>>;
}

/** What {@link clusterApi} tells of. */
export interface ClusterApiOptions {
  readonly clock: Clock;
  /** Asked for once, when somebody first wants it; again after it failed. It is closed by whoever made it. */
  readonly cluster: () => Promise<ClusterView>;
  /** @default a console alone, without a node id of its own */
  readonly instance?: ClusterApiInstance | undefined;
}

/** Answers GET requests; what they are refused for is thrown. */
export interface ClusterApi {
  /**
   * `/api/leases`: the leases, as `nodelease status --json` shows them. While they cannot be looked at, as they were, with an `age` header that
   * says how many seconds ago that was. `?from=ID&limit=N` gives a page of the node ids: from that one on, a hundred unless it says otherwise, a
   * thousand at the most; the report's `page` says where the next one begins.
   *
   * @throws {ConfigError} when the page is none
   * @throws {StoreError} or {ZooKeeperError} while they never could be looked at
   */
  leases(request: Request): Promise<Response>;

  /**
   * `/api/events`: the same followed, as server-sent events: first `hello` with everything, then what is different, and at least a comment
   * every ten seconds. A `hello` without a report means that the cluster could not be read yet.
   *
   * The stream ends when it is cancelled. It is ended for a client that does not take what it is sent: it is to connect again, and gets everything.
   */
  events(request: Request): Promise<Response>;
}

/** What a console asks for. However many ask, the cluster is looked at once, and what is told is written once. */
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
  const texts = new SnapshotText();
  let broadcast: ClusterBroadcast | undefined;
  return {
    async leases({ url, signal }) {
      const page = leasesPageOf(url);
      const snapshot = await (await view()).snapshot(signal);
      const { state, lookedAt } = snapshot.store;
      const age: Record<string, string> =
        state === 'failing' && lookedAt !== null ? { age: String(Math.max(0, Math.ceil((clock.now() - lookedAt) / 1_000))) } : {};
      if (page !== undefined) return Response.json(pagedReport(snapshot.report, page), { headers: { ...PLAIN, ...age } });
      const report = texts.report(snapshot);
      const headers = { ...PLAIN, 'content-type': 'application/json', 'content-length': String(report.length), ...age };
      return new Response(shared(report), { headers });
    },
    async events() {
      const followed = await view();
      broadcast ??= new ClusterBroadcast({ clock, view: followed, texts, instance });
      return new Response(broadcast.join(), { headers: { ...PLAIN, 'content-type': 'text/event-stream' } });
    },
  };
}

/** A body of bytes that others are sent, too: given to a `Response` as they are they would be copied for each. */
function shared(bytes: Uint8Array): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      pull: (controller) => {
        controller.enqueue(bytes);
        controller.close();
      },
    },
    { highWaterMark: 0 },
  );
}
