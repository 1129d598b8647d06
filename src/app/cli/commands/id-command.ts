import { anySignal, orAborted } from '../../../core/base/abort.js';
import { ConfigError } from '../../../core/base/errors.js';
import { formatId, type IdFormat } from '../../../core/id/id-format.js';
import { IdsExhaustedError } from '../../../core/id/id-time.js';
import type { UniqueIdGenerator } from '../../../core/id/unique-id-generator.js';
import type { Lease } from '../../../core/lease/model/lease.js';
import type { HeldNode } from '../../../node/runtime/hold-node.js';
import { installedTracer } from '../../../node/runtime/open-telemetry-tracer.js';
import { mayHaveSdk } from '../../../node/runtime/preloaded-sdk.js';
import { type Call, interruptible, logFailure } from '../../kit/call.js';
import { ExitCode, exitCodeOfSignal, type Io } from '../../kit/io.js';
import { leaseLog, logSource, taskNamesOf, warnIfPrivate } from '../../kit/log/lease-log.js';
import { type Logger, loggerFor } from '../../kit/log/logger.js';
import { formatSetting } from '../../kit/terminal/text.js';
import { environmentName, type Settings } from '../../settings/settings.js';
import { fixedLayout, type LayoutName } from './decode-command.js';

/** The options of `id`, as they are on the command line. */
interface IdOptions {
  readonly count?: number;
  readonly format?: IdFormat;
  readonly layout?: LayoutName;
  readonly epoch?: number;
  readonly logLevel?: string;
}

/** How many ids are written at once: enough for speed, few enough for memory. */
const CHUNK = 4_096;
/**
 * How long there is no id before that is logged for the first time, and how often it is logged again, in
 * milliseconds.
 */
const SAY_AFTER_MS = 5_000;
const SAY_AGAIN_MS = 60_000;

/**
 * `nodelease id`: acquires a node id, prints unique ids that are made with it, and releases it. A reader that
 * closes the pipe early ends it with 141, as it ends other programs.
 *
 * @throws {ConfigError} also when the node id has no room in the layout
 */
export async function idCommand({ options, settings, io }: Call<IdOptions>): Promise<number> {
  const wanted = readIdOptions(options, io.env);
  const log = await loggerFor(wanted.quiet ? { ...settings, logLevel: 'warn' } : settings, io);
  try {
    return await interruptible(io, async (interrupted) => {
      const node = await hold(settings, io, interrupted, log);
      try {
        return await answer(node.lease, wanted, io, interrupted, log);
      } finally {
        await node.end({ workEnded: true });
      }
    });
  } catch (error) {
    return logFailure(error, log);
  }
}

/**
 * Checks what `id` is asked for, before anything is acquired for it.
 * @throws {ConfigError} naming the option
 */
export function readIdOptions(options: Call<IdOptions>['options'], env: Io['env']) {
  const { count = 1, format = 'decimal', layout = 'cluster16', epoch, logLevel, json } = options;
  const name = environmentName('node-id');
  // Two calls with the same fixed id would make the same ids, and so would the program that has it.
  if (env[name])
    throw new ConfigError(
      name,
      env[name],
      'none (nodelease id has to acquire a node id, so that its ids are unique)',
    );
  return {
    /** 1 … 10^9. */
    count,
    format,
    /** Whether each line is a JSON object. */
    json: json === true,
    /** Undefined for `cluster16`, which has as many bits for a node id as the cluster says. */
    layout: fixedLayout(layout, epoch),
    /** No log level is given: for a script that wants the ids alone, only failures are logged. */
    quiet: logLevel === undefined && !env[environmentName('log-level')],
  };
}

/** Which ids are wanted. */
type WantedIds = ReturnType<typeof readIdOptions>;

async function hold(settings: Settings, io: Io, signal: AbortSignal, log: Logger): Promise<HeldNode> {
  const { clock, random, env, execArgv } = io;
  const { provider, store } = settings;
  const names = await taskNamesOf(settings, io, log, signal);
  logSource(settings, log);
  if (provider === 'store') warnIfPrivate(store, log, 'another call may print the same ids');
  const { holdNode } = await import('../../../node/runtime/hold-node.js');
  return holdNode({
    ...settings,
    // Nothing is announced: ZooKeeper is of use only where it gives out the node ids.
    zookeeper: provider === 'zookeeper' ? settings.zookeeper : undefined,
    ...names,
    clock,
    random,
    signal,
    onLeaseEvent: leaseLog(log.child({ taskId: names.taskId })),
    tracer: mayHaveSdk(execArgv, env.NODE_OPTIONS) ? await installedTracer(clock) : undefined,
  });
}

async function answer(
  lease: Lease,
  wanted: WantedIds,
  io: Io,
  interrupted: AbortSignal,
  log: Logger,
): Promise<number> {
  const { layout } = wanted;
  const { uniqueIds } = await import('../../../core/id/lease-ids.js');
  // By the store's clock, which the ids depend on.
  await lease.tenureTime?.prepare(interrupted);
  const now = lease.tenureTime?.now() ?? 0;
  if (layout !== undefined && layout.epochMs > now)
    throw new ConfigError('--epoch', String(layout.epochMs), `a time in the past: before ${Math.floor(now)}`);
  const ids = await uniqueIds(lease, { signal: interrupted, layout });
  const ending = anySignal(interrupted, lease.signal);
  const onDrought = ({ detail, waitMs }: IdsExhaustedError) => {
    const unit = waitMs < 1_000 ? 1 : 1_000;
    const left = formatSetting(Math.ceil(waitMs / unit) * unit);
    log.warn({ waitMs }, `no unique id for now, waiting: ${detail} (${left} or more to go)`);
  };
  try {
    return (await printIds(ids, wanted, io, ending.signal, onDrought))
      ? ExitCode.ok
      : exitCodeOfSignal('SIGPIPE');
  } finally {
    ending.release();
  }
}

/**
 * Prints ids, one on a line, as fast as the generator makes them and the reader takes them. Resolves to false
 * when the reader goes too early.
 *
 * @param onDrought gets why there has been no id for 5 s, and then once a minute
 * @throws {LeaseLostError} when the lease is lost: the ids printed before are good
 * @throws `signal.reason` as soon as `signal` aborts
 */
export async function printIds(
  ids: Pick<UniqueIdGenerator, 'fill'>,
  { count, format, json }: Pick<WantedIds, 'count' | 'format'> & Pick<Call['options'], 'json'>,
  io: Io,
  signal: AbortSignal,
  onDrought: (lack: IdsExhaustedError) => void,
): Promise<boolean> {
  const line = (id: bigint) => (json ? `{"id":"${formatId(id, format)}"}` : formatId(id, format));
  const chunk = new BigUint64Array(Math.min(count, CHUNK));
  let sayAt = io.clock.monotonic() + SAY_AFTER_MS;
  for (let left = count; left > 0; ) {
    signal.throwIfAborted();
    let made = Math.min(left, CHUNK);
    let lack: IdsExhaustedError | undefined;
    try {
      ids.fill(chunk, 0, made);
    } catch (error) {
      if (!(error instanceof IdsExhaustedError)) throw error;
      made = error.filled;
      lack = error;
    }
    if (made > 0) {
      io.stdout(`${Array.from(chunk.subarray(0, made), line).join('\n')}\n`);
      if (!(await orAborted(io.taken(), signal))) return false;
    }
    left -= made;
    const now = io.clock.monotonic();
    // After the write: a slow reader is no lack of ids.
    if (made > 0) sayAt = now + SAY_AFTER_MS;
    if (lack === undefined) continue;
    if (now >= sayAt) {
      onDrought(lack);
      sayAt = now + SAY_AGAIN_MS;
    }
    await io.clock.sleep(Math.min(lack.waitMs, sayAt - now), signal);
  }
  return true;
}
