import { anySignal, orAborted } from '../../base/abort.js';
import { ConfigError, explain } from '../../base/errors.js';
import { defaultTaskId } from '../../base/task-id.js';
import { formatId } from '../../id/id-format.js';
import { IdsExhaustedError } from '../../id/id-time.js';
import type { UniqueIdGenerator } from '../../id/unique-id-generator.js';
import type { Lease } from '../../lease/model/lease.js';
import type { AcquireOptions } from '../../runtime/acquire.js';
import type { Settings } from '../../settings/settings.js';
import { ExitCode, exitCodeOfSignal } from '../exit-codes.js';
import { leaseLog } from '../log/lease-log.js';
import { type Logger, loggerFor } from '../log/logger.js';
import type { Io } from '../terminal/io.js';
import { formatSetting } from '../terminal/text.js';
import { reportCommandFailure } from './command-failure.js';
import type { WantedIds } from './id-options.js';
import { interruptible } from './store-command.js';

/** How many ids are written at once: enough for speed, few enough for memory. */
const CHUNK = 4_096;
/** How long there is no id before that is told for the first time, and how often it is told again, in milliseconds. */
const TELL_AFTER_MS = 5_000;
const TELL_AGAIN_MS = 60_000;

/**
 * `nodelease id`: acquires a node id, prints unique ids that are made with it, and releases it. Resolves to the exit code; a failure has been
 * logged by then. A reader that closes the pipe early ends it with 141, as it ends other programs.
 *
 * @throws {ConfigError} when a setting is unusable, or the node id has no room in the layout, for the caller to report
 */
export async function idCommand(wanted: WantedIds, settings: Settings, io: Io): Promise<number> {
  const log = await loggerFor(wanted.quiet ? { ...settings, logLevel: 'warn' } : settings, io);
  io.onWarning((warning) => log.warn(explain(warning)));
  try {
    return await interruptible(io, async (interrupted) => {
      const options = await acquireOptions(settings, io, interrupted, log);
      const { acquire } = await import('../../runtime/acquire.js');
      const lease = await acquire(options);
      try {
        return await answer(lease, wanted, io, interrupted, log);
      } finally {
        await lease.release();
      }
    });
  } catch (error) {
    return reportCommandFailure(error, log);
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

/** Rounded up to whole seconds from one second on. */
function inSeconds(ms: number): number {
  return ms < 1_000 ? Math.ceil(ms) : Math.ceil(ms / 1_000) * 1_000;
}

async function generatorFor(lease: Lease, { layout }: WantedIds, signal: AbortSignal): Promise<UniqueIdGenerator> {
  const { uniqueIds } = await import('../../id/lease-ids.js');
  // By the store's clock, which the ids depend on.
  await lease.tenureTime?.prepare(signal);
  const now = lease.tenureTime?.now() ?? 0;
  if (layout !== undefined && layout.epochMs > now)
    throw new ConfigError('--epoch', String(layout.epochMs), `a time in the past: before ${Math.floor(now)}`);
  return uniqueIds(lease, { signal, ...(layout !== undefined && { layout }) });
}

/**
 * Prints ids, one on a line, as fast as the generator makes them and the reader takes them. Resolves to false when the reader has gone before the
 * last one.
 *
 * @param onDrought is told why there has been no id for 5 s, and then once a minute
 * @throws {LeaseLostError} when the lease is lost: the ids printed before are good
 * @throws `signal.reason` as soon as `signal` aborts
 */
export async function printIds(
  ids: Pick<UniqueIdGenerator, 'fill'>,
  { count, format }: Pick<WantedIds, 'count' | 'format'>,
  io: Pick<Io, 'stdout' | 'taken' | 'clock'>,
  signal: AbortSignal,
  onDrought: (lack: IdsExhaustedError) => void,
): Promise<boolean> {
  const chunk = new BigUint64Array(Math.min(count, CHUNK));
  let tellAt = io.clock.monotonic() + TELL_AFTER_MS;
  for (let left = count; left > 0; ) {
    signal.throwIfAborted();
    const { made, lack } = make(ids, chunk, Math.min(left, CHUNK));
    if (made > 0) {
      io.stdout(`${Array.from(chunk.subarray(0, made), (id) => formatId(id, format)).join('\n')}\n`);
      if (!(await orAborted(io.taken(), signal))) return false;
    }
    left -= made;
    const now = io.clock.monotonic();
    // After the write: a slow reader is no lack of ids.
    if (made > 0) tellAt = now + TELL_AFTER_MS;
    if (lack === undefined) continue;
    if (now >= tellAt) {
      onDrought(lack);
      tellAt = now + TELL_AGAIN_MS;
    }
    await io.clock.sleep(Math.min(lack.waitMs, tellAt - now), signal);
  }
  return true;
}

/** Makes as many ids as there are now, with the reason why there are no more. */
function make(ids: Pick<UniqueIdGenerator, 'fill'>, chunk: BigUint64Array, count: number): { made: number; lack?: IdsExhaustedError } {
  try {
    ids.fill(chunk, 0, count);
    return { made: count };
  } catch (error) {
    if (!(error instanceof IdsExhaustedError)) throw error;
    return { made: error.filled, lack: error };
  }
}
