import { orAborted } from '../base/abort.js';
import { parseInteger } from '../config/values.js';
import type { Settings } from '../config.js';
import { explain } from '../errors.js';
import { MAX_NODE_IDS } from '../lease/lease-state.js';
import type { StoreSession } from '../lease/store-session.js';
import { type AllocatedStatus, inspectAllocated } from '../monitor/allocated-status.js';
import { ClusterPager, type PageRequest } from '../monitor/cluster-page.js';
import { DiscoveryGlance, type DiscoveryStatus } from '../monitor/discovery-glance.js';
import type { PagedCluster } from '../monitor/paged-cluster.js';
import { allocatedReport, type StatusReport, statusReport } from '../monitor/status-report.js';
import type { ZooKeeper } from '../zookeeper/zookeeper.js';
import { allocatedSettings } from './allocated-settings.js';
import { allocatedTable } from './allocated-table.js';
import { paintFor } from './color.js';
import { ExitCode, exitCodeOfSignal } from './exit-codes.js';
import { Frame } from './frame.js';
import type { Io, Screen } from './io.js';
import { ProgressLine } from './progress-line.js';
import { Interrupted, SignalRelay } from './signal-relay.js';
import { discoverySummary, statusTable } from './status-table.js';
import { complain, onStore } from './store-command.js';
import { cut } from './table.js';
import { printable } from './text.js';
import { connectTo, onZooKeeper } from './zookeeper-command.js';

/** How `status` shows what it sees. */
export interface StatusOptions {
  /** One JSON object a look, on one line. */
  readonly json: boolean;
  /** Looks again every second, until it is interrupted. */
  readonly watch: boolean;
  /** Shows every node id, also where they do not fit the terminal, and of a cluster that is large. */
  readonly all: boolean;
  /** The lowest node id to show. @default those that tell most on a terminal, else the lowest ones */
  readonly from?: number | undefined;
  /** How many to show of a large cluster. @default what fits the terminal, else 100 */
  readonly limit?: number | undefined;
  /** Only those that are held, or may be taken and were not left behind by a dead task. @default all */
  readonly only?: 'held' | 'free' | undefined;
}

/** From the beginning of one look to that of the next, in milliseconds. */
const WATCH_MS = 1_000;
/** How many node ids of a large cluster are shown where there is no terminal. */
const PAGE = 100;
/** What stands above and below the rows on a terminal, and the line of the prompt, at the most. */
const OTHER_LINES = 8;
/** The most that one page may have. */
const MOST_ON_A_PAGE = 10_000;

/** `nodelease status`: shows who holds which node id. Resolves to the exit code. */
export function statusCommand(options: StatusOptions, settings: Settings, io: Io): Promise<number> {
  const allocated = allocatedSettings(settings);
  if (allocated !== undefined) {
    return onZooKeeper(allocated, io, (zookeeper, signal) => {
      const view = allocatedView(zookeeper, allocated.zookeeper.connect.text);
      return options.watch ? watch(view, options, io) : show(view, options, io, signal);
    });
  }
  return onStore(settings, io, async (session) => {
    const glance = settings.zookeeper && new DiscoveryGlance(await connectTo(settings.zookeeper, io), io.clock);
    try {
      return await (options.watch ? watchStatus(session, options, io, glance) : showStatus(session, options, io, glance));
    } finally {
      await glance?.close();
    }
  });
}

/**
 * Shows the leases once.
 *
 * @param glance looks at discovery, too, whose failures are shown and are none of this command
 * @throws {StoreError} when the store gives no answer
 */
export function showStatus(session: StoreSession, options: StatusOptions, io: Io, glance?: DiscoveryGlance): Promise<number> {
  return show(storeView(session, options, io, glance), options, io);
}

/**
 * Shows the leases every second, on a terminal in one place, elsewhere one after the other. Resolves to 0 when SIGINT or SIGTERM ends it.
 * Failures of the store are shown and survived, except in the first look: what does not work at all is soon known.
 *
 * @throws {StoreError} when the store gives no answer to the first look
 */
export function watchStatus(session: StoreSession, options: StatusOptions, io: Io, glance?: DiscoveryGlance): Promise<number> {
  return watch(storeView(session, options, io, glance), options, io);
}

/** Where to look, and how to show what was seen there. */
interface View<Seen> {
  look(signal: AbortSignal): Promise<Seen>;
  report(seen: Seen): StatusReport;
  lines(seen: Seen, screen: Screen | undefined, maxLines: number | undefined): readonly string[];
}

/** The leases, and how the discovery tree shows them, where it was asked. */
interface Look {
  /** Undefined when there is no cluster yet. */
  readonly status: PagedCluster | undefined;
  readonly discovery: DiscoveryStatus | undefined;
}

function storeView(session: StoreSession, options: StatusOptions, io: Io, glance: DiscoveryGlance | undefined): View<Look> {
  const { url } = session.store;
  const progress = new ProgressLine(io, { what: 'reading lease objects', elsewhere: 'nothing' });
  const pager = new ClusterPager(
    session,
    io.clock,
    () => pageRequest(options, io.screen()),
    (read) => progress.update(read),
  );
  return {
    look: async (signal) => {
      // A watch is its own progress after the first look.
      const status = await pager.look(signal).finally(() => progress.end());
      return { status, discovery: await glance?.look(status) };
    },
    report: ({ status, discovery }) => statusReport(url, status, discovery),
    lines: ({ status, discovery }, screen, maxLines) => {
      if (status !== undefined) return statusTable(status, { screen, maxLines, discovery });
      const none = `There is no cluster at ${printable(url)} yet: nodelease init creates one, and so does the first nodelease run.`;
      return [none, ...(discovery === undefined ? [] : [discoverySummary(discovery, screen)])];
    },
  };
}

function pageRequest({ json, all, from, limit, only }: StatusOptions, screen: Screen | undefined): PageRequest {
  return {
    everything: all,
    paged: from !== undefined || limit !== undefined,
    from,
    limit: limit ?? (screen && !json ? Math.max(1, screen.rows - OTHER_LINES) : PAGE),
    only,
    telling: screen !== undefined && !json && only === undefined && from === undefined && limit === undefined,
  };
}

/**
 * Reads `--from`.
 *
 * @throws {ConfigError} when no cluster could have such a node id
 */
export function parseFrom(text: string | undefined): number | undefined {
  return text === undefined ? undefined : parseInteger(text, '--from', 0, MAX_NODE_IDS - 1);
}

/**
 * Reads `--limit`.
 *
 * @throws {ConfigError} when it is none
 */
export function parseLimit(text: string | undefined): number | undefined {
  return text === undefined ? undefined : parseInteger(text, '--limit', 1, MOST_ON_A_PAGE);
}

function allocatedView(zookeeper: ZooKeeper, where: string): View<AllocatedStatus> {
  return {
    look: (signal) => inspectAllocated(zookeeper, signal),
    report: (status) => allocatedReport(where, status),
    lines: (status, screen, maxLines) => allocatedTable(status, where, { screen, maxLines }),
  };
}

async function show<Seen>(view: View<Seen>, options: StatusOptions, io: Io, signal = new AbortController().signal): Promise<number> {
  const screen = io.screen();
  // The prompt wants a line, too.
  const maxLines = screen && !options.all && options.limit === undefined ? screen.rows - 1 : undefined;
  io.stdout(snapshot(view, await view.look(signal), options, screen, maxLines));
  return ExitCode.ok;
}

async function watch<Seen>(view: View<Seen>, options: StatusOptions, io: Io): Promise<number> {
  const signals = new SignalRelay(io.signals);
  const frame = new Frame(io);
  let seen: { readonly last: Seen } | undefined;
  try {
    for (;;) {
      const begun = io.clock.monotonic();
      let failure: string | undefined;
      try {
        // A scan may take as long as the store's time-outs; an interruption does not wait for it.
        seen = { last: await orAborted(view.look(signals.interrupted), signals.interrupted) };
      } catch (error) {
        if (error instanceof Interrupted || seen === undefined) throw error;
        failure = explain(error);
      }
      draw(view, seen.last, failure, options, io, frame);
      await io.clock.sleep(WATCH_MS - (io.clock.monotonic() - begun), signals.interrupted);
    }
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
    return error.signal === 'SIGINT' || error.signal === 'SIGTERM' ? ExitCode.ok : exitCodeOfSignal(error.signal);
  } finally {
    frame.end();
    signals.close();
  }
}

/** One look of a watch. Where it failed, a terminal keeps the last picture, with the failure below it. */
function draw<Seen>(view: View<Seen>, seen: Seen, failure: string | undefined, options: StatusOptions, io: Io, frame: Frame): void {
  const screen = io.screen();
  if (screen && !options.json) {
    const maxLines = Math.max(4, screen.rows - 1);
    const lines = snapshot(view, seen, options, screen, maxLines - 1)
      .trimEnd()
      .split('\n');
    if (failure !== undefined) lines.push(paintFor(screen.color)(cut(`as it was: ${printable(failure)}`, screen.columns), 'red'));
    frame.draw(lines);
  } else if (failure !== undefined) complain(io, failure);
  else io.stdout(`${snapshot(view, seen, options, screen, undefined)}${options.json ? '' : '\n'}`);
}

function snapshot<Seen>(
  view: View<Seen>,
  seen: Seen,
  { json }: StatusOptions,
  screen: Screen | undefined,
  maxLines: number | undefined,
): string {
  if (json) return `${JSON.stringify(view.report(seen))}\n`;
  return view
    .lines(seen, screen, maxLines)
    .map((line) => `${line}\n`)
    .join('');
}
