import { orAborted } from '../../base/abort.js';
import { explain } from '../../base/errors.js';
import { MAX_NODE_IDS } from '../../lease/model/lease-state.js';
import type { StoreSession } from '../../lease/session/store-session.js';
import { type AllocatedStatus, allocatedReport, inspectAllocated } from '../../monitor/allocated-status.js';
import { type PageRequest, scanPage } from '../../monitor/cluster-page.js';
import { ClusterReader } from '../../monitor/cluster-reader.js';
import { DiscoveryComparison } from '../../monitor/discovery-comparison.js';
import type { PagedCluster } from '../../monitor/listed-cluster.js';
import { type DiscoveryStatusReport, type StatusReport, statusReport } from '../../monitor/status-report.js';
import type { Settings } from '../../settings/settings.js';
import { parseInteger } from '../../settings/values.js';
import type { ZooKeeper } from '../../zookeeper/zookeeper.js';
import { complain, interruptible, onStore, sayJson, sayLines } from '../commands/store-command.js';
import { allocatedSettings, connectTo, onZooKeeper } from '../commands/zookeeper-command.js';
import { ExitCode, exitCodeOfStop, UsageError } from '../exit-codes.js';
import { Interrupted } from '../run/signal-relay.js';
import { Frame } from '../terminal/frame.js';
import type { Io, Screen } from '../terminal/io.js';
import { ProgressLine } from '../terminal/progress-line.js';
import { fitLine } from '../terminal/table.js';
import { printable } from '../terminal/text.js';
import { allocatedTable } from './allocated-table.js';
import { discoverySummary, statusTable } from './status-table.js';

/** The options of `status`, as they stand on the command line. */
export interface StatusOptions {
  readonly json?: boolean;
  readonly watch?: boolean;
  readonly all?: boolean;
  readonly from?: string;
  readonly limit?: string;
  readonly held?: boolean;
  readonly free?: boolean;
}

/** How `status` shows what it reads. */
export interface StatusRequest {
  /** One JSON object a reading, on one line. */
  readonly json: boolean;
  /** Reads again every second, until it is interrupted. */
  readonly watch: boolean;
  /** Shows every node id, also where they do not fit the terminal, and of a large cluster. */
  readonly all: boolean;
  /** The lowest node id to show. @default on a terminal those with most to tell, else 0 */
  readonly from?: number | undefined;
  /** How many to show of a large cluster. @default what fits the terminal, else 100 */
  readonly limit?: number | undefined;
  /** Only those that are held, or that may be taken and were not left by a dead task. @default all */
  readonly only?: 'held' | 'free' | undefined;
}

/** From the beginning of one reading to that of the next, in milliseconds. */
const WATCH_MS = 1_000;
/** How many node ids of a large cluster are shown without a terminal. */
const PAGE = 100;
/** The maximum number of lines above and below the rows on a terminal, the prompt included. */
const OTHER_LINES = 8;
const MAX_PAGE = 10_000;

/** `nodelease status`: shows who holds which node id. Resolves to the exit code. */
export function statusCommand(given: StatusOptions, settings: Settings, io: Io): Promise<number> {
  const options = statusRequest(given);
  const allocated = allocatedSettings(settings);
  if (allocated !== undefined) {
    return onZooKeeper(allocated, io, (zookeeper, signal) =>
      show(allocatedView(zookeeper, allocated.zookeeper.connect.text), options, io, signal),
    );
  }
  return onStore(settings, io, async (session) => {
    const comparison = settings.zookeeper && new DiscoveryComparison(await connectTo(settings.zookeeper, io), io.clock);
    try {
      return await showStatus(session, options, io, comparison);
    } finally {
      await comparison?.close();
    }
  });
}

/** Reads what stands on the command line. @throws {ConfigError} or {UsageError} naming what cannot be */
export function statusRequest(options: StatusOptions): StatusRequest {
  const { json = false, watch = false, all = false, held = false, free = false, from, limit } = options;
  if (held && free) throw new UsageError('--held and --free cannot be combined');
  if (all && (from !== undefined || limit !== undefined)) {
    throw new UsageError('--all shows everything: --from and --limit cannot be combined with it');
  }
  return {
    ...{ json, watch, all, only: held ? 'held' : free ? 'free' : undefined },
    from: from === undefined ? undefined : parseInteger(from, '--from', 0, MAX_NODE_IDS - 1),
    limit: limit === undefined ? undefined : parseInteger(limit, '--limit', 1, MAX_PAGE),
  };
}

/**
 * Shows the leases, once or every second: a watch draws them in one place on a terminal, elsewhere one after the other. It resolves to 0 when
 * SIGINT or SIGTERM ends it. Only a failure of the first reading ends it; later ones are shown.
 *
 * @param comparison reads the discovery tree, too; its failures are shown, and do not fail this command
 * @throws {StoreError} when the store gives no answer
 */
export function showStatus(session: StoreSession, options: StatusRequest, io: Io, comparison?: DiscoveryComparison): Promise<number> {
  return show(storeView(session, options, io, comparison), options, io);
}

/** What to read, and how to show it. */
interface View<Seen> {
  read(signal: AbortSignal): Promise<Seen>;
  report(seen: Seen): StatusReport;
  lines(seen: Seen, screen: Screen | undefined, maxLines: number | undefined): readonly string[];
}

/** The leases, and how the discovery tree shows them. */
interface StoreStatus {
  /** Undefined when there is no cluster yet. */
  readonly status: PagedCluster | undefined;
  /** Undefined without discovery. */
  readonly discovery: DiscoveryStatusReport | undefined;
}

function storeView(session: StoreSession, options: StatusRequest, io: Io, comparison: DiscoveryComparison | undefined): View<StoreStatus> {
  const { url } = session.store;
  const progress = new ProgressLine(io, { what: 'reading lease objects', elsewhere: 'nothing' });
  const reader = new ClusterReader(session, io.clock, (read) => progress.update(read));
  return {
    read: async (signal) => {
      const status = await scanPage(reader, pageRequest(options, io.screen()), signal).finally(() => progress.end());
      return { status, discovery: await comparison?.compare(status) };
    },
    report: ({ status, discovery }) => statusReport(url, status, discovery),
    lines: ({ status, discovery }, screen, maxLines) => {
      if (status !== undefined) return statusTable(status, { screen, maxLines, discovery });
      const none = `There is no cluster at ${url} yet: nodelease init creates one, and so does the first nodelease run.`;
      return [printable(none), ...(discovery === undefined ? [] : [discoverySummary(discovery, screen)])];
    },
  };
}

function pageRequest({ json, all, from, limit, only }: StatusRequest, screen: Screen | undefined): PageRequest {
  const paged = from !== undefined || limit !== undefined;
  const onTerminal = screen !== undefined && !json;
  return {
    everything: all,
    ...{ paged, from, only },
    limit: limit ?? (onTerminal ? Math.max(1, screen.rows - OTHER_LINES) : PAGE),
    telling: onTerminal && only === undefined && !paged,
  };
}

function allocatedView(zookeeper: ZooKeeper, where: string): View<AllocatedStatus> {
  return {
    read: (signal) => inspectAllocated(zookeeper, signal),
    report: (status) => allocatedReport(where, status),
    lines: (status, screen, maxLines) => allocatedTable(status, where, { screen, maxLines }),
  };
}

async function show<Seen>(view: View<Seen>, options: StatusRequest, io: Io, signal = new AbortController().signal): Promise<number> {
  if (options.watch) return watch(view, options, io);
  const screen = io.screen();
  // The prompt needs a line, too.
  const maxLines = screen && !options.all && options.limit === undefined ? screen.rows - 1 : undefined;
  const seen = await view.read(signal);
  if (options.json) sayJson(io, view.report(seen));
  else sayLines(io, view.lines(seen, screen, maxLines));
  return ExitCode.ok;
}

async function watch<Seen>(view: View<Seen>, options: StatusRequest, io: Io): Promise<number> {
  const frame = new Frame(io);
  let seen: { readonly last: Seen } | undefined;
  try {
    return await interruptible(io, async (signal) => {
      for (;;) {
        const begun = io.clock.monotonic();
        let failure: string | undefined;
        try {
          // A reading may take as long as the store's time-outs, longer than the user wants to wait.
          seen = { last: await orAborted(view.read(signal), signal) };
        } catch (error) {
          if (signal.aborted || seen === undefined) throw error;
          failure = explain(error);
        }
        draw(view, seen.last, failure, options, io, frame);
        await io.clock.sleep(WATCH_MS - (io.clock.monotonic() - begun), signal);
      }
    });
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
    return exitCodeOfStop(error.signal);
  } finally {
    frame.end();
  }
}

/** Shows one reading of a watch. After a failure, a terminal keeps the last one, with the failure below it. */
function draw<Seen>(view: View<Seen>, seen: Seen, failure: string | undefined, { json }: StatusRequest, io: Io, frame: Frame): void {
  const screen = io.screen();
  if (screen && !json) {
    const lines = view.lines(seen, screen, Math.max(3, screen.rows - 2));
    frame.draw(failure === undefined ? lines : [...lines, fitLine(`as it was: ${failure}`, screen, 'red')]);
  } else if (failure !== undefined) complain(io, failure);
  else if (json) sayJson(io, view.report(seen));
  else sayLines(io, [...view.lines(seen, undefined, undefined), '']);
}
