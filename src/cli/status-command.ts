import type { Settings } from '../config.js';
import { explain } from '../errors.js';
import { type ClusterStatus, inspectCluster } from '../lease/inspect.js';
import type { StoreSession } from '../lease/store-session.js';
import { ExitCode, exitCodeOfSignal } from './exit-codes.js';
import { Frame } from './frame.js';
import { paintFor, printable } from './ink.js';
import type { Io, Screen } from './io.js';
import { Interrupted, SignalRelay } from './signal-relay.js';
import { DiscoveryGlance, type DiscoveryStatus } from './status-discovery.js';
import { statusReport } from './status-report.js';
import { discoverySummary, statusTable } from './status-table.js';
import { complain, onStore } from './store-command.js';
import { cut } from './table.js';

/** How `status` shows what it sees. */
export interface StatusOptions {
  /** One JSON object a look, on one line. */
  readonly json: boolean;
  /** Looks again every second, until it is interrupted. */
  readonly watch: boolean;
  /** Shows every node id, also where they do not fit the terminal. */
  readonly all: boolean;
}

/** From the beginning of one look to that of the next, in milliseconds. */
const WATCH_MS = 1_000;

/** `nodelease status`: shows who holds which node id. Resolves to the exit code. */
export function statusCommand(options: StatusOptions, settings: Settings, io: Io): Promise<number> {
  return onStore(settings, io, async (session) => {
    const glance = await DiscoveryGlance.open(settings.zookeeper, io);
    try {
      return await (options.watch ? watchStatus(session, options, io, glance) : showStatus(session, options, io, glance));
    } finally {
      await glance?.close();
    }
  });
}

/** What is shown: the leases, and how the discovery tree shows them, where it was asked. */
interface Look {
  /** Undefined when there is no cluster yet. */
  readonly status: ClusterStatus | undefined;
  readonly discovery: DiscoveryStatus | undefined;
}

async function look(session: StoreSession, glance: DiscoveryGlance | undefined): Promise<Look> {
  const status = await inspectCluster(session);
  return { status, discovery: await glance?.look(status) };
}

/**
 * Shows the leases once.
 *
 * @param glance looks at discovery, too, whose failures are shown and are none of this command
 * @throws {StoreError} when the store gives no answer
 */
export async function showStatus(session: StoreSession, options: StatusOptions, io: Io, glance?: DiscoveryGlance): Promise<number> {
  const screen = io.screen();
  // The prompt wants a line, too.
  const maxLines = screen && !options.all ? screen.rows - 1 : undefined;
  io.stdout(snapshot(session, await look(session, glance), options, screen, maxLines));
  return ExitCode.ok;
}

/**
 * Shows the leases every second, on a terminal in one place, elsewhere one after the other. Resolves to 0 when SIGINT or SIGTERM ends it.
 * Failures of the store are shown and survived, except in the first look: what does not work at all is soon known.
 *
 * @throws {StoreError} when the store gives no answer to the first look
 */
export async function watchStatus(session: StoreSession, options: StatusOptions, io: Io, glance?: DiscoveryGlance): Promise<number> {
  const signals = new SignalRelay(io.signals);
  const frame = new Frame(io);
  let seen: Look | undefined;
  try {
    for (;;) {
      const begun = io.clock.monotonic();
      let failure: string | undefined;
      try {
        seen = await untilInterrupted(look(session, glance), signals.interrupted);
      } catch (error) {
        if (error instanceof Interrupted || seen === undefined) throw error;
        failure = explain(error);
      }
      show(session, seen, failure, options, io, frame);
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

/** One look of a watch. Where the store failed, a terminal keeps the last picture, with the failure below it. */
function show(session: StoreSession, seen: Look, failure: string | undefined, options: StatusOptions, io: Io, frame: Frame): void {
  const screen = io.screen();
  if (screen && !options.json) {
    const maxLines = Math.max(4, screen.rows - 1);
    const lines = snapshot(session, seen, { ...options, all: false }, screen, maxLines - 1)
      .trimEnd()
      .split('\n');
    if (failure !== undefined) lines.push(paintFor(screen.color)(cut(`as it was: ${printable(failure)}`, screen.columns), 'red'));
    frame.draw(lines);
  } else if (failure !== undefined) complain(io, failure);
  else io.stdout(`${snapshot(session, seen, options, screen, undefined)}${options.json ? '' : '\n'}`);
}

function snapshot(
  { store: { url } }: StoreSession,
  { status, discovery }: Look,
  { json }: StatusOptions,
  screen: Screen | undefined,
  maxLines: number | undefined,
): string {
  if (json) return `${JSON.stringify(statusReport(url, status, discovery))}\n`;
  const none = `There is no cluster at ${printable(url)} yet: nodelease init creates one, and so does the first nodelease run.`;
  const lines =
    status !== undefined
      ? statusTable(status, { screen, maxLines, discovery })
      : [none, ...(discovery === undefined ? [] : [discoverySummary(discovery, screen)])];
  return lines.map((line) => `${line}\n`).join('');
}

/** A look that is under way may take as long as the store's time-outs; who interrupts it does not want to wait for that. */
function untilInterrupted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    signal.addEventListener('abort', onAbort, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
