import { parseDuration, parseInteger } from '../config/values.js';
import type { Settings } from '../config.js';
import { MAX_NODE_IDS } from '../lease/lease-state.js';
import { type ScaleEvent, type ScaleOutcome, scaleCluster } from '../lease/scale.js';
import type { StoreSession } from '../lease/store-session.js';
import { counted } from './counted.js';
import { ExitCode } from './exit-codes.js';
import type { Io } from './io.js';
import { holdersText } from './narrow-holders.js';
import { SignalRelay } from './signal-relay.js';
import { formatSpan } from './span.js';
import { complain, onStore, say } from './store-command.js';

/** What `scale` is to do. */
export interface ScaleCommandOptions {
  /** How many node ids there are to be. */
  readonly size: number;
  /** How long to wait for the holders to make wider ids, in milliseconds. */
  readonly waitTimeoutMs: number;
}

/** How long `scale` waits unless it is told, in milliseconds: some renewals of an ordinary lease. */
const WAIT_TIMEOUT_MS = 60_000;

/** `nodelease scale N`: gives the cluster more node ids. Resolves to the exit code. */
export function scaleCommand(options: ScaleCommandOptions, settings: Settings, io: Io): Promise<number> {
  return onStore(settings, io, (session) => scale(session, options, io));
}

/**
 * Gives the cluster more node ids, and says what is waited for.
 *
 * @throws {ConfigError} when the cluster has more of them already
 * @throws {StoreUnusableError} when a lease object is damaged and its holder's ids matter
 * @throws {StoreError} when the store gives no answer, or refuses
 * @throws {Interrupted} when a signal arrives: what has been done stays, and is gone on with by the next call
 */
export async function scale(session: StoreSession, { size, waitTimeoutMs }: ScaleCommandOptions, io: Io): Promise<number> {
  const signals = new SignalRelay(io.signals);
  try {
    const outcome = await scaleCluster({
      ...{ session, clock: io.clock, random: io.random, size, waitTimeoutMs, signal: signals.interrupted },
      onEvent: (event) => complain(io, progress(event)),
    });
    return report(outcome, size, session.store.url, io);
  } catch (error) {
    // A request that a signal has given up fails in its own words.
    signals.interrupted.throwIfAborted();
    throw error;
  } finally {
    signals.close();
  }
}

function progress(event: ScaleEvent): string {
  const { idWidth } = event;
  if (event.type === 'adopted')
    return `every holder makes unique ids with ${idWidth} bits for the node id now, after ${formatSpan(event.tookMs)}`;
  const { holders } = event;
  const who = holdersText(holders);
  return `waiting for ${counted(holders.length, 'holder')} to make unique ids with ${idWidth} bits for the node id: ${who}`;
}

function report(outcome: ScaleOutcome, size: number, url: string, io: Io): number {
  switch (outcome.kind) {
    case 'no-cluster':
      complain(io, `there is no cluster at ${url} yet: nodelease init --nodes ${size} makes one`);
      return ExitCode.storeUnusable;
    case 'not-adopted': {
      const { idWidth, holders } = outcome;
      complain(
        io,
        `the cluster at ${url} has ${outcome.size} node ids still: ${counted(holders.length, 'holder')} did not go over to ${idWidth} bits for the ` +
          `node id in time: ${holdersText(holders)}; that ${idWidth} bits are wanted stays published, nodelease scale ${size} goes on from there`,
      );
      return ExitCode.acquireTimeout;
    }
    case 'scaled': {
      const { from, to, idWidth, widened, created } = outcome;
      const written = `${counted(created, 'lease object')} written`;
      if (from === to) say(io, `the cluster at ${url} has ${to} node ids already: ${created > 0 ? written : 'nothing to do'}`);
      else say(io, `the cluster at ${url} has ${to} node ids now, and had ${from}: ${written}`);
      if (widened) say(io, `a node id takes ${idWidth} bits in unique ids`);
      return ExitCode.ok;
    }
  }
}

/**
 * Reads the number of node ids on the command line.
 *
 * @throws {ConfigError} when no cluster could have so many
 */
export function parseSize(text: string): number {
  return parseInteger(text, 'number of node ids', 1, MAX_NODE_IDS);
}

/**
 * Reads `--wait-timeout`, in milliseconds.
 *
 * @throws {ConfigError} when it is not a time
 */
export function parseWaitTimeout(text: string | undefined): number {
  if (text === undefined) return WAIT_TIMEOUT_MS;
  return parseDuration(text, '--wait-timeout', { most: [86_400_000, 'at most 24h'] });
}
