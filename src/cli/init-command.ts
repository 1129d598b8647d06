import { orAborted } from '../base/abort.js';
import type { Settings } from '../config.js';
import { ConfigError } from '../errors.js';
import { type InitializeReport, initializeCluster, type Repair, repairCluster } from '../lease/initialize.js';
import type { LeaseEvent } from '../lease/lease.js';
import type { StoreSession } from '../lease/store-session.js';
import { ClusterReader } from '../monitor/cluster-reader.js';
import { type Damage, damageOf } from '../monitor/damage.js';
import { initAllocatedCommand } from './allocated-init.js';
import { allocatedSettings } from './allocated-settings.js';
import { ExitCode } from './exit-codes.js';
import type { Io } from './io.js';
import { ProgressLine } from './progress-line.js';
import { SignalRelay } from './signal-relay.js';
import { complain, onStore, say } from './store-command.js';
import { formatDuration, formatSetting } from './text.js';

/** What `init` is to do besides creating what is missing. */
export interface InitOptions {
  /** Restores damaged lease objects instead. */
  readonly repair: boolean;
  /** A version that no tenure of a damaged node id has exceeded, for ids of which nothing else is known. */
  readonly aboveVersion?: number | undefined;
}

/**
 * `nodelease init`: creates the cluster's settings and all lease objects, or restores damaged ones. Resolves to the exit code.
 *
 * Where node ids come from ZooKeeper alone there is nothing to repair, and the caller has seen to it that nobody asks for that.
 */
export function initCommand(options: InitOptions, settings: Settings, io: Io): Promise<number> {
  const allocated = allocatedSettings(settings);
  if (allocated !== undefined) return initAllocatedCommand(allocated, io);
  return onStore(settings, io, (session) =>
    options.repair ? repair(session, options.aboveVersion, io) : initialize(session, settings, io),
  );
}

/** How many damaged node ids are named; the others are counted. */
const NAMED = 100;

/**
 * Creates what is missing, and shows how far it is where that takes time. A remote store is probed first where it has not passed a probe, for far longer where it has failed one.
 *
 * @throws {StoreUnusableError} when the probe finds a fault
 * @throws {StoreError} when the store gives no answer
 * @throws {Interrupted} when a signal arrives: what has been written stays, and the next call goes on from there
 */
export async function initialize(
  session: StoreSession,
  wanted: Pick<Settings, 'nodes' | 'durationMs' | 'graceMs'>,
  io: Io,
): Promise<number> {
  const report = await withProgress('writing lease objects', io, (onProgress, signal) =>
    initializeCluster({ session, clock: io.clock, random: io.random, wanted, signal, onProgress, thorough: true }, (event) =>
      warnOfOverruled(event, io),
    ),
  );
  for (const line of outcome(session.store.url, report)) say(io, line);
  // Objects that were all created by this very call are known to be sound.
  if (report.created.length === report.cluster.config.size) return ExitCode.ok;
  const found = await withProgress('reading lease objects', io, (onProgress, signal) => findDamage(session, io, onProgress, signal));
  // What the cluster has given up had an object as well, and needs it when it grows again.
  const lost = report.damaged.filter((id) => id >= report.cluster.config.size);
  const damage = [...found, ...lost.map((id) => ({ id, problem: 'lease object is absent although the cluster had this node id' }))];
  for (const { id, problem } of damage.slice(0, NAMED)) complain(io, `node id ${id}: ${problem}`);
  if (damage.length === 0) return ExitCode.ok;
  if (damage.length > NAMED) complain(io, `and ${damage.length - NAMED} more`);
  complain(io, `${damage.length} of ${report.cluster.config.peak} node ids cannot be used: nodelease init --repair restores them`);
  return ExitCode.storeUnusable;
}

type OnProgress = ProgressLine['update'];

/** Shows how far `work` is, and lets a signal end it. */
async function withProgress<T>(what: string, io: Io, work: (onProgress: OnProgress, signal: AbortSignal) => Promise<T>): Promise<T> {
  const signals = new SignalRelay(io.signals);
  const line = new ProgressLine(io, { what });
  try {
    // Not everything that is under way heeds the signal.
    return await orAborted(
      work((progress) => line.update(progress), signals.interrupted),
      signals.interrupted,
    );
  } catch (error) {
    // A request that a signal has given up fails in its own words.
    signals.interrupted.throwIfAborted();
    throw error;
  } finally {
    line.end();
    signals.close();
  }
}

async function findDamage(session: StoreSession, io: Io, onProgress: OnProgress, signal: AbortSignal): Promise<readonly Damage[]> {
  const { nodes, hints } = await new ClusterReader(session, io.clock, { onProgress }).look(signal);
  return hints === undefined ? [] : damageOf({ cluster: hints.cluster, nodes });
}

function outcome(url: string, { cluster: { config }, clusterCreated, created }: InitializeReport): string[] {
  const written = `${created.length} lease ${created.length === 1 ? 'object' : 'objects'} written`;
  const settings = `duration ${formatSetting(config.durationMs)}, grace ${formatSetting(config.graceMs)}`;
  if (clusterCreated) return [`created a cluster of ${config.size} node ids at ${url} (${settings})`, written];
  const existing = `the cluster at ${url} has ${config.size} node ids (${settings})`;
  return created.length > 0 ? [existing, written] : [`${existing}: nothing to do`];
}

function warnOfOverruled(event: LeaseEvent, io: Io): void {
  if (event.type !== 'setting-overruled') return;
  const show = (value: number) => (event.setting === 'nodes' ? String(value) : formatSetting(value));
  complain(
    io,
    `warning: --${event.setting} ${show(event.own)} is overruled: the cluster exists, and its stored ${show(event.stored)} counts`,
  );
}

/**
 * Restores damaged lease objects.
 *
 * @param aboveVersion see {@link InitOptions}
 * @throws {StoreUnusableError} when there is no cluster
 * @throws {StoreError} when the store gives no answer
 */
export async function repair(session: StoreSession, aboveVersion: number | undefined, io: Io): Promise<number> {
  const onWait = (ms: number) => complain(io, `watching damaged lease objects for ${formatDuration(ms)}: somebody may hold them`);
  const repairs = await repairCluster({ session, clock: io.clock, aboveVersion, onWait });
  if (repairs.length === 0) say(io, `no lease object at ${session.store.url} is damaged: nothing to do`);
  for (const done of repairs) sayRepair(done, io);
  return repairs.every(({ version }) => version !== undefined) ? ExitCode.ok : ExitCode.storeUnusable;
}

const WHY_KEPT: Readonly<Record<NonNullable<Repair['kept']>, string>> = {
  recent:
    'it was written within the last duration and grace, so that somebody may hold it: stop whoever writes there, and try again after that time',
  unknown: 'nothing is known of its versions: add --above-version N, where N is at least the highest version that was ever used',
  changed: 'it changed meanwhile: try again',
};

function sayRepair({ id, problem, version, kept = 'changed' }: Repair, io: Io): void {
  const what = problem.startsWith('lease object') ? problem : `lease object ${problem}`;
  if (version !== undefined) say(io, `node id ${id}: ${what}: restored at version ${version}`);
  else complain(io, `node id ${id}: ${what}: not restored, ${WHY_KEPT[kept]}`);
}

/**
 * Reads `--above-version`.
 *
 * @throws {ConfigError} when it is not a version
 */
export function parseAboveVersion(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
  if (Number.isNaN(value)) throw new ConfigError('--above-version', text, 'a whole number from 0 to 999999999999999');
  return value;
}
