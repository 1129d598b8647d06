import type { AcquireOptions } from '../acquire.js';
import { anySignal } from '../base/abort.js';
import type { Settings } from '../config.js';
import { ConfigError, explain } from '../errors.js';
import type { IdsExhaustedError } from '../id/id-error.js';
import type { UniqueIdGenerator } from '../id/unique-id-generator.js';
import type { Lease } from '../lease/lease.js';
import { defaultTaskId } from '../task-id.js';
import { reportCommandFailure } from './command-failure.js';
import { ExitCode, exitCodeOfSignal } from './exit-codes.js';
import type { WantedIds } from './id-options.js';
import { printIds } from './id-printer.js';
import type { Io } from './io.js';
import { leaseLog } from './lease-log.js';
import { type Logger, loggerFor } from './logger.js';
import { SignalRelay } from './signal-relay.js';
import { formatSetting } from './text.js';

/**
 * `nodelease id`: acquires a node id, prints unique ids that are made with it, and gives it back. Resolves to the exit code; whatever
 * goes wrong has been logged by then. A reader that has read enough ends it with 141, as it ends others.
 *
 * @throws {ConfigError} when a setting turns out to be unusable, or the node id has no room in the layout, for the caller to report
 */
export async function idCommand(wanted: WantedIds, settings: Settings, io: Io): Promise<number> {
  const signals = new SignalRelay(io.signals);
  const log = await loggerFor(wanted.quiet ? { ...settings, logLevel: 'warn' } : settings, io);
  io.onWarning((warning) => log.warn(explain(warning)));
  try {
    const options = await acquireOptions(settings, io, signals.interrupted, log);
    const { acquire } = await import('../acquire.js');
    const lease = await acquire(options);
    try {
      return await answer(lease, wanted, io, signals.interrupted, log);
    } finally {
      await lease.release();
    }
  } catch (error) {
    return reportCommandFailure(error, log);
  } finally {
    signals.close();
  }
}

async function acquireOptions(settings: Settings, io: Io, signal: AbortSignal, log: Logger): Promise<AcquireOptions> {
  const { provider, store, endpoint, region, nodes, durationMs, graceMs, acquireTimeoutMs, settingsIntervalMs, waitPollMs, zookeeper } =
    settings;
  const taskId = settings.taskId ?? (await defaultTaskId({ ...io, signal, warn: (message) => log.warn(message) }));
  const common: AcquireOptions = {
    ...{ taskId, signal, onLost: 'signal', onEvent: leaseLog(log.child({ taskId })) },
    ...(acquireTimeoutMs !== undefined && { acquireTimeoutMs }),
  };
  if (provider === 'zookeeper' && zookeeper !== undefined) {
    const { connect, auth, sessionTimeoutMs } = zookeeper;
    return { ...common, provider, zookeeper: { connect: connect.text, sessionTimeoutMs, ...(auth !== undefined && { auth }) } };
  }
  if (store.kind === 'memory') log.warn('memory: is private to this process: another call may print the same ids. It is for trials only');
  return {
    ...common,
    store: store.url,
    ...(nodes !== undefined && { nodes }),
    ...(durationMs !== undefined && { durationMs }),
    ...(graceMs !== undefined && { graceMs }),
    ...(settingsIntervalMs !== undefined && { settingsIntervalMs }),
    ...(waitPollMs !== undefined && { waitPollMs }),
    ...(endpoint !== undefined && { endpoint }),
    ...(region !== undefined && { region }),
  };
}

async function answer(lease: Lease, wanted: WantedIds, io: Io, interrupted: AbortSignal, log: Logger): Promise<number> {
  const ids = await generatorFor(lease, wanted, interrupted);
  const ending = anySignal(interrupted, lease.signal);
  const tell = ({ detail, waitMs }: IdsExhaustedError) => {
    log.warn({ waitMs }, `no unique id for now, waiting: ${detail} (${formatSetting(inSeconds(waitMs))} or more to go)`);
  };
  try {
    return (await printIds(ids, wanted, io, ending.signal, tell)) ? ExitCode.ok : exitCodeOfSignal('SIGPIPE');
  } finally {
    ending.release();
  }
}

/** Whole ones, where it is a matter of seconds. */
function inSeconds(ms: number): number {
  return ms < 1_000 ? Math.ceil(ms) : Math.ceil(ms / 1_000) * 1_000;
}

async function generatorFor(lease: Lease, { layout }: WantedIds, signal: AbortSignal): Promise<UniqueIdGenerator> {
  const { uniqueIds } = await import('../id/lease-ids.js');
  // By the store's clock: nothing here rests on this host's.
  await lease.tenureTime?.prepare(signal);
  const now = lease.tenureTime?.now() ?? 0;
  if (layout !== undefined && layout.epochMs > now)
    throw new ConfigError('--epoch', String(layout.epochMs), `a time in the past: before ${Math.floor(now)}`);
  return uniqueIds(lease, { signal, ...(layout !== undefined && { layout }) });
}
