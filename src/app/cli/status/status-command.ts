import { orAborted } from '../../../core/base/abort.js';
import { explain } from '../../../core/base/errors.js';
import { MAX_NODE_IDS } from '../../../core/lease/model/lease-state.js';
import { whileStoreIsBusy } from '../../../core/lease/session/store-retry.js';
import type { StoreSession } from '../../../core/lease/session/store-session.js';
import { parseInteger } from '../../../core/settings/values.js';
import { nothingAt } from '../../../core/store/lock-url.js';
import { allocatedReport, inspectAllocated } from '../../../node/monitor/allocated-status.js';
import { type PageRequest, scanPage } from '../../../node/monitor/cluster-page.js';
import { ClusterReader } from '../../../node/monitor/cluster-reader.js';
import { DiscoveryComparison } from '../../../node/monitor/discovery/discovery-comparison.js';
import { statusReport } from '../../../node/monitor/status-report.js';
import { readShards, type ShardsReading, shardCounts } from '../../../node/shards/read-shards.js';
import type { ZooKeeper } from '../../../zookeeper/client/zookeeper.js';
import { complain, sayJson, sayLines } from '../../kit/answer.js';
import {
  type Call,
  connectTo,
  interruptible,
  onAllocated,
  onConnecting,
  onStore,
  watching,
  type ZooKeeperCall,
} from '../../kit/call.js';
import { ExitCode, UsageError } from '../../kit/exit-codes.js';
import { Frame } from '../../kit/terminal/frame.js';
import type { Io, Screen } from '../../kit/terminal/io.js';
import { ProgressLine } from '../../kit/terminal/progress-line.js';
import { fitLine } from '../../kit/terminal/table.js';
import { printable } from '../../kit/terminal/text.js';
import { allocatedTable, discoverySummary, statusTable } from './status-table.js';

/** The options of `status`, as they are on the command line. */
interface StatusOptions {
  readonly watch?: boolean;
  /** Every node id, also where they do not fit the terminal, and of a large cluster. */
  readonly all?: boolean;
  readonly from?: string;
  readonly limit?: string;
  readonly held?: boolean;
  readonly free?: boolean;
}

/** The same, read and checked. */
export type StatusRequest = Pick<Call<StatusOptions>['options'], 'json' | 'watch' | 'all'> &
  Pick<PageRequest, 'from' | 'only'> & {
    /** How many node ids to show of a large cluster. @default what fits the terminal, else 100 */
    readonly limit?: number | undefined;
  };

/** From the beginning of one reading to that of the next, in milliseconds. */
const WATCH_MS = 1_000;
/** How many node ids of a large cluster are shown without a terminal. */
const PAGE = 100;
/** The maximum number of lines above and below the rows on a terminal, the prompt included. */
const OTHER_LINES = 8;

/** `nodelease status`: shows who holds which node id. */
export function statusCommand(call: Call<StatusOptions>): Promise<number> {
  const { settings, io } = call;
  const request = statusRequest(call.options);
  const allocated = onAllocated(call);
  if (allocated)
    return onConnecting(allocated, (zookeeper, signal) =>
      show(allocatedReader(zookeeper, allocated), request, io, signal),
    );
  return onStore(call, async (session) => {
    const comparison =
      settings.zookeeper && new DiscoveryComparison(await connectTo(settings.zookeeper, io), io.clock);
    try {
      return await showStatus(session, request, io, comparison);
    } finally {
      await comparison?.close();
    }
  });
}

/** Reads the command line. @throws {ConfigError} or {UsageError} naming what cannot be */
function statusRequest(options: StatusOptions): StatusRequest {
  const { held, free, from, limit, ...shown } = options;
  if (held && free) throw new UsageError('--held and --free cannot be combined');
  if (shown.all && (from !== undefined || limit !== undefined))
    throw new UsageError('--all shows everything: --from and --limit cannot be combined with it');
  return {
    ...shown,
    only: held ? 'held' : free ? 'free' : undefined,
    from: from === undefined ? undefined : parseInteger(from, '--from', 0, MAX_NODE_IDS - 1),
    limit: limit === undefined ? undefined : parseInteger(limit, '--limit', 1, 10_000),
  };
}

/**
 * Shows the leases, once or every second: a watch draws them in one place on a terminal, elsewhere one after
 * the other. It resolves to 0 when SIGINT or SIGTERM ends it. Only a failure of the first reading ends it;
 * later ones are shown. Without a watch it resolves to 69 where there is no cluster.
 *
 * @param comparison reads the discovery tree, too; its failures are shown, and do not fail this command
 */
export function showStatus(
  session: StoreSession,
  request: StatusRequest,
  io: Io,
  comparison?: DiscoveryComparison,
): Promise<number> {
  return show(storeReader(session, request, io, comparison), request, io);
}

/** What was read, in each of the forms in which it is shown. */
export interface StatusView {
  /** Whether there is no cluster. */
  readonly none?: boolean;
  report(): unknown;
  lines(screen: Screen | undefined, maxLines?: number): readonly string[];
}

type Reader = (signal?: AbortSignal) => Promise<StatusView>;

function storeReader(
  session: StoreSession,
  request: StatusRequest,
  io: Io,
  comparison: DiscoveryComparison | undefined,
): Reader {
  const { url } = session.store;
  const progress = new ProgressLine(io, 'reading lease objects', true);
  const reader = new ClusterReader(session, io.clock, progress.update);
  return async (signal) => {
    const page = pageRequest(request, io.screen());
    const status = await scanPage(reader, page, signal).finally(progress.end);
    const discovery = await comparison?.compare(status);
    const shards = status && (await readShards(session, status.cluster, { signal }));
    return {
      none: status === undefined,
      report: () => ({ ...statusReport(url, status, discovery), ...shardsReport(shards) }),
      lines: (screen, maxLines) => {
        if (status !== undefined) return statusTable(status, { screen, maxLines, discovery, shards });
        return [
          printable(nothingAt(url)),
          ...(discovery === undefined ? [] : [discoverySummary(discovery, screen)]),
        ];
      },
    };
  };
}

/** Left out for a cluster without shards. */
function shardsReport(shards: ShardsReading | undefined) {
  if (shards === undefined) return undefined;
  const { map, problem = null } = shards;
  return { shards: { count: map.shards.length, epoch: map.epoch, ...shardCounts(map), problem } };
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

/** Shows readings as {@link showStatus} does, once or every second. */
export async function show(
  read: Reader,
  request: StatusRequest,
  io: Io,
  signal?: AbortSignal,
): Promise<number> {
  if (request.watch) return watch(read, request, io);
  const screen = io.screen();
  // The prompt needs a line, too.
  const maxLines = screen && !request.all && request.limit === undefined ? screen.rows - 1 : undefined;
  const reading = await whileStoreIsBusy({ ...io, signal })(() => read(signal));
  if (request.json) sayJson(io, reading.report());
  else sayLines(io, reading.lines(screen, maxLines));
  return reading.none ? ExitCode.storeUnusable : ExitCode.ok;
}

async function watch(read: Reader, { json }: StatusRequest, io: Io): Promise<number> {
  const frame = new Frame(io);
  let reading: StatusView | undefined;
  try {
    return await interruptible(io, (signal) =>
      watching(signal, async () => {
        for (;;) {
          const begun = io.clock.monotonic();
          let failure: string | undefined;
          try {
            // A reading may take as long as the store's time-outs, longer than the user wants to wait.
            const next =
              reading === undefined ? whileStoreIsBusy({ ...io, signal })(() => read(signal)) : read(signal);
            reading = await orAborted(next, signal);
          } catch (error) {
            if (signal.aborted || reading === undefined) throw error;
            failure = explain(error);
          }
          const screen = io.screen();
          if (screen && !json) {
            // After a failure, a terminal keeps the last reading, with the failure below it.
            const lines = reading.lines(screen, Math.max(3, screen.rows - 2));
            frame.draw(
              failure === undefined ? lines : [...lines, fitLine(`as it was: ${failure}`, screen, 'red')],
            );
          } else if (failure !== undefined) complain(io, failure);
          else if (json) sayJson(io, reading.report());
          else sayLines(io, [...reading.lines(undefined), '']);
          await io.clock.sleep(WATCH_MS - (io.clock.monotonic() - begun), signal);
        }
      }),
    );
  } finally {
    frame.end();
  }
}
