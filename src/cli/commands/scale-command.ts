import { ConfigError, StoreUnusableError } from '../../base/errors.js';
import { MAX_NODE_IDS } from '../../lease/model/lease-state.js';
import { scaleCluster } from '../../lease/operate/scale.js';
import { readCluster } from '../../lease/session/cluster-store.js';
import type { StoreSession } from '../../lease/session/store-session.js';
import { environmentName, type Settings, type ZooKeeperSettings } from '../../settings/settings.js';
import { parseDuration, parseInteger } from '../../settings/values.js';
import { ZooKeeperError } from '../../zookeeper/zookeeper-error.js';
import type { Io } from '../terminal/io.js';
import { reportScaled, ScaleProgress, unfinishedText } from './scale-report.js';
import { complain, interruptible, onStore } from './store-command.js';
import { connectTo } from './zookeeper-command.js';

/** What `scale` is to do. */
export interface ScaleCommandOptions {
  /** How many node ids there are to be. */
  readonly size: number;
  /** How long to wait for the holders to make wider ids, in milliseconds. */
  readonly waitTimeoutMs: number;
  /** How long the holders of node ids that go have to give them back, in milliseconds. */
  readonly drainTimeoutMs: number;
}

/** Looks for fixed node ids from the first one to the one before the second, as {@link checkStaticNodes} does. */
export type CheckStatic = (ids: readonly [from: number, to: number], signal: AbortSignal) => Promise<void>;

/** The default of `--wait-timeout`, in milliseconds: some renewals of an ordinary lease. */
const WAIT_TIMEOUT_MS = 60_000;
/** The default of `--drain-timeout`, in milliseconds. */
const DRAIN_TIMEOUT_MS = 600_000;
const MAX_TIMEOUT = { most: [86_400_000, 'at most 24h'] } as const;

/** `nodelease scale N`: gives the cluster more node ids, or fewer. Resolves to the exit code. */
export function scaleCommand(options: ScaleCommandOptions, settings: Settings, io: Io): Promise<number> {
  const { zookeeper } = settings;
  return onStore(settings, io, (session) => {
    const check: CheckStatic | undefined = zookeeper && ((ids, signal) => checkStaticNodes(session, zookeeper, ids, io, signal));
    return scale(session, options, io, check);
  });
}

/**
 * Changes the number of node ids, and shows the progress.
 *
 * @param checkStatic is called before anything is written, where the cluster is to have fewer node ids
 * @throws {ConfigError} when no cluster could have so many
 * @throws {StoreUnusableError} when a lease object is damaged and its holder's ids matter
 * @throws {StoreError} when the store gives no answer, or refuses
 * @throws {Interrupted} when a signal arrives: the next call goes on from there
 */
export async function scale(session: StoreSession, options: ScaleCommandOptions, io: Io, checkStatic?: CheckStatic): Promise<number> {
  const { size, drainTimeoutMs } = options;
  const { clock, random } = io;
  const progress = new ScaleProgress(io, clock);
  return interruptible(io, async (signal) => {
    try {
      const cluster = checkStatic && (await readCluster(session, { signal }));
      if (cluster !== undefined && size < cluster.config.size) await checkStatic?.([size, cluster.config.size], signal);
      const outcome = await scaleCluster({ ...options, session, clock, random, signal, onEvent: progress.tell });
      return reportScaled(outcome, size, session.store.url, io);
    } catch (error) {
      if (progress.isShrunk) complain(io, unfinishedText(signal.aborted ? 'interrupted' : 'not finished', size, drainTimeoutMs));
      throw error;
    }
  });
}

/**
 * Makes sure that none of these node ids is in use as a fixed one. Only those are found that are announced in the discovery tree at this moment.
 *
 * @throws {ConfigError} when one is
 * @throws {StoreUnusableError} when that cannot be told
 * @throws {StoreError} when the store gives no answer
 */
async function checkStaticNodes(
  session: StoreSession,
  settings: ZooKeeperSettings,
  ids: readonly [from: number, to: number],
  io: Io,
  signal: AbortSignal,
): Promise<void> {
  const { staticNodes } = await import('../run/static-nodes.js');
  const zookeeper = await connectTo(settings, io);
  try {
    const found = await staticNodes({ zookeeper, session, ids, signal });
    const highest = found.at(-1);
    if (highest === undefined) return;
    const who = highest.taskId === undefined ? 'somebody' : `task ${highest.taskId}`;
    throw new ConfigError(
      'number of node ids',
      ids[0],
      `at least ${highest.id + 1}, for node id ${highest.id} is in use without a lease: ${who} announces it at ${settings.connect.text} ` +
        '(a fixed id; or what is left of a task that was killed, which goes by itself within some seconds)',
    );
  } catch (error) {
    if (!(error instanceof ZooKeeperError) || signal.aborted) throw error;
    throw new StoreUnusableError(`whether a node id from ${ids[0]} on is in use as a fixed one cannot be told, and nothing was changed`, {
      cause: error,
    });
  } finally {
    await zookeeper.close();
  }
}

/**
 * Makes sure that the fixed node id in this command's own environment stays within the cluster's size.
 *
 * @throws {ConfigError} when it does not
 */
export function checkOwnId(size: number, fixed: number | undefined): void {
  if (fixed === undefined || fixed < size) return;
  throw new ConfigError(
    'number of node ids',
    size,
    `at least ${fixed + 1}, for ${environmentName('node-id')} makes ${fixed} a fixed node id in use`,
  );
}

/** Reads the number of node ids. @throws {ConfigError} when no cluster could have so many */
export function parseSize(text: string): number {
  return parseInteger(text, 'number of node ids', 1, MAX_NODE_IDS);
}

/** Reads `--wait-timeout`, in milliseconds. @throws {ConfigError} when it is not a time */
export function parseWaitTimeout(text: string | undefined): number {
  return text === undefined ? WAIT_TIMEOUT_MS : parseDuration(text, '--wait-timeout', MAX_TIMEOUT);
}

/** Reads `--drain-timeout`, in milliseconds; 0 for not waiting at all. @throws {ConfigError} when it is not a time */
export function parseDrainTimeout(text: string | undefined): number {
  return text === undefined ? DRAIN_TIMEOUT_MS : parseDuration(text, '--drain-timeout', MAX_TIMEOUT);
}
