import type { StoreSession } from '../../../core/lease/session/store-session.js';
import { nothingAt } from '../../../core/store/lock-url.js';
import { allocatedReport, inspectAllocated } from '../../../node/monitor/allocated-status.js';
import { type PageRequest, scanPage } from '../../../node/monitor/cluster-page.js';
import { ClusterReader } from '../../../node/monitor/cluster-reader.js';
import {
  type CompareDiscovery,
  discoveryComparison,
} from '../../../node/monitor/discovery/discovery-comparison.js';
import { statusReport } from '../../../node/monitor/status-report.js';
import type { ZooKeeper } from '../../../zookeeper/client/zookeeper.js';
import {
  type Call,
  connectTo,
  onAllocated,
  onConnecting,
  onStore,
  type ZooKeeperCall,
} from '../../kit/call.js';
import { type Io, type Screen, UsageError } from '../../kit/io.js';
import { type Reader, type ShowOptions, show } from '../../kit/show.js';
import { ProgressLine } from '../../kit/terminal/progress-line.js';
import { printable } from '../../kit/terminal/text.js';
import { clusterPart } from '../../products.js';
import { locksStatus } from './locks-status.js';
import { allocatedTable, discoverySummary, statusTable } from './status-table.js';

/** The options of `status`, as they are on the command line. */
interface StatusOptions extends Pick<StatusRequest, 'watch' | 'all' | 'from' | 'limit'> {
  readonly held?: boolean;
  readonly free?: boolean;
  readonly locks?: boolean;
}

/** What is shown, and how. */
export type StatusRequest = ShowOptions & Pick<PageRequest, 'from' | 'only'>;

/** How many node ids of a large cluster are shown without a terminal. */
const PAGE = 100;
/** The maximum number of lines above and below the rows on a terminal, the prompt included. */
const OTHER_LINES = 8;

/** `nodelease status`: shows who holds which node id. */
export function statusCommand(call: Call<StatusOptions>): Promise<number> {
  const { settings, io } = call;
  const request = statusRequest(call.options);
  if (call.options.locks) return locksStatus(call);
  const allocated = onAllocated(call);
  if (allocated)
    return onConnecting(allocated, (zookeeper, signal) =>
      show(allocatedReader(zookeeper, allocated), request, io, signal),
    );
  return onStore(call, async (session) => {
    const zookeeper = settings.zookeeper && (await connectTo(settings.zookeeper, io));
    try {
      return await showStatus(session, request, io, zookeeper && discoveryComparison(zookeeper, io.clock));
    } finally {
      await zookeeper?.close();
    }
  });
}

/** @throws {UsageError} for options that exclude each other */
function statusRequest({ held, free, locks, ...shown }: StatusOptions): StatusRequest {
  if (held && free) throw new UsageError('--held and --free cannot be combined');
  const paged = shown.from !== undefined || shown.limit !== undefined;
  if (locks && (held || free || paged))
    throw new UsageError('--locks shows all locks, and none of the node ids');
  if (shown.all && paged)
    throw new UsageError('--all shows everything: --from and --limit cannot be combined with it');
  return { ...shown, only: held ? 'held' : free ? 'free' : undefined };
}

/**
 * Shows the leases, once or every second.
 *
 * @param compare reads the discovery tree, too; its failures are shown, and do not fail this command
 */
export function showStatus(
  session: StoreSession,
  request: StatusRequest,
  io: Io,
  compare?: CompareDiscovery,
): Promise<number> {
  return show(storeReader(session, request, io, compare), request, io);
}

function storeReader(
  session: StoreSession,
  request: StatusRequest,
  io: Io,
  compare: CompareDiscovery | undefined,
): Reader {
  const { url } = session.store;
  const progress = new ProgressLine(io, 'reading lease objects', true);
  const reader = new ClusterReader(session, io.clock, progress.update);
  return async (signal) => {
    const page = pageRequest(request, io.screen());
    const status = await scanPage(reader, page, signal).finally(progress.end);
    const discovery = await compare?.(status);
    const { readPart } = await clusterPart();
    const part = status && (await readPart(session, status.cluster, { signal }));
    return {
      none: status === undefined,
      report: () => ({
        ...statusReport(url, status, discovery),
        ...(part && { [part.finding.id]: part.report }),
      }),
      lines: (screen, maxLines) => {
        if (status !== undefined)
          return statusTable(status, { screen, maxLines, discovery, finding: part?.finding });
        return [
          printable(`${nothingAt(url)} [CLUSTER_MISSING]`),
          ...(discovery === undefined ? [] : [discoverySummary(discovery, screen)]),
        ];
      },
    };
  };
}

function pageRequest(
  { json, all = false, from, limit, only }: StatusRequest,
  screen: Screen | undefined,
): PageRequest {
  const paged = from !== undefined || limit !== undefined;
  const onTerminal = screen !== undefined && !json;
  return {
    everything: all,
    paged,
    from,
    only,
    limit: limit ?? (onTerminal ? Math.max(1, screen.rows - OTHER_LINES) : PAGE),
    telling: onTerminal && only === undefined && !paged,
  };
}

function allocatedReader(zookeeper: ZooKeeper, { settings }: ZooKeeperCall): Reader {
  const { text: where } = settings.zookeeper.connect;
  return async (signal) => {
    const status = await inspectAllocated(zookeeper, signal);
    return {
      report: () => allocatedReport(where, status),
      lines: (screen, maxLines) => allocatedTable(status, where, { screen, maxLines }),
    };
  };
}
