import { ConfigError } from '../../../core/base/errors.js';
import { MAX_NODE_IDS } from '../../../core/lease/model/lease-state.js';
import { scaleCluster } from '../../../core/lease/operate/scale.js';
import type { RetiringHolder, ScaleEvent, ScaleOutcome } from '../../../core/lease/operate/scaling.js';
import { readCluster } from '../../../core/lease/session/cluster-store.js';
import { whileStoreIsBusy } from '../../../core/lease/session/store-retry.js';
import type { StoreSession } from '../../../core/lease/session/store-session.js';
import { parseInteger } from '../../../core/settings/setting.js';
import { nothingAt, refuseLock } from '../../../core/store/lock-url.js';
import { ZooKeeperError } from '../../../zookeeper/client/zookeeper.js';
import { complain, fail, say, sayJson } from '../../kit/answer.js';
import { type Call, connectTo, interruptible, onStore } from '../../kit/call.js';
import { ExitCode, type Io, UsageError } from '../../kit/io.js';
import { formatDuration, formatSetting, pluralize, someOf } from '../../kit/terminal/text.js';
import { environmentName, readSettings, type ZooKeeperSettings } from '../../settings/settings.js';
import { holdersText } from '../status/status-table.js';

/** The options of `scale`, in milliseconds. */
interface ScaleOptions {
  readonly waitTimeout?: number;
  readonly drainTimeout?: number;
}

/** What `scale` is to do. */
type ScaleTarget = ReturnType<typeof scaleTarget>;

/** Looks for fixed node ids among these, from the first to before the second. */
type CheckStatic = (ids: readonly [from: number, to: number], signal: AbortSignal) => Promise<void>;

/** What the complaints about the number call it. */
const SIZE = 'number of node ids';
/** The minimum time between two lines of progress, in milliseconds. */
const LINE_EVERY_MS = 2_000;

/** `nodelease scale N`: gives the cluster more node ids, or fewer. */
export function scaleCommand(call: Call<ScaleOptions>, text: string): Promise<number> {
  const { io } = call;
  const target = scaleTarget(text, call.options);
  checkOwnId(target.size, io);
  const { provider, zookeeper } = call.settings;
  if (provider === 'zookeeper') {
    throw new UsageError(
      'scale is about lease objects in a store: with the provider zookeeper node ids grow in number by themselves',
    );
  }
  // One node id makes it a lock again.
  if (target.size > 1) refuseLock(call.settings.store);
  return onStore(call, (session) =>
    scale(session, target, io, zookeeper && staticCheck(session, zookeeper, io)),
  );
}

/** Reads the command line. @throws {ConfigError} naming what cannot be */
export function scaleTarget(
  size: string,
  { waitTimeout = 60_000, drainTimeout = 600_000, json }: Call<ScaleOptions>['options'],
) {
  return {
    /** How many node ids there are to be. */
    size: parseInteger(size, SIZE, 1, MAX_NODE_IDS),
    /** How long to wait for the holders to make wider ids, in milliseconds. */
    waitTimeoutMs: waitTimeout,
    /** How long the holders of node ids that go have to give them back, in milliseconds; 0 for not at all. */
    drainTimeoutMs: drainTimeout,
    /** Whether the answer is JSON. */
    json,
  };
}

/**
 * Refuses a size that leaves out the fixed node id in this command's own environment.
 * @throws {ConfigError}
 */
function checkOwnId(size: number, { env, hostname }: Io) {
  const name = environmentName('node-id');
  const { nodeId } = readSettings({ flags: {}, env: { [name]: env[name] }, hostname });
  if (nodeId === undefined || nodeId < size) return;
  throw new ConfigError(
    SIZE,
    size,
    `at least ${nodeId + 1}, for ${name} makes ${nodeId} a fixed node id in use`,
  );
}

/**
 * Changes the number of node ids, and shows the progress.
 *
 * @param checkStatic is called before anything is written, where the cluster is to have fewer node ids
 * @throws {StoreUnusableError} when a lease object is damaged and its holder's ids matter
 * @throws {StoreError}
 * @throws {Interrupted} when a signal arrives: the next call continues from there
 */
export async function scale(
  session: StoreSession,
  target: ScaleTarget,
  io: Io,
  checkStatic?: CheckStatic,
): Promise<number> {
  const { size, drainTimeoutMs } = target;
  const show = scaleProgress(io);
  // Whether the cluster has its smaller size already, so that only the node ids beyond it are left to be
  // released.
  let isShrunk = false;
  const onEvent = (event: ScaleEvent) => {
    isShrunk ||= event.type !== 'waiting' && event.type !== 'adopted' && event.type !== 'damaged';
    show(event);
  };
  return interruptible(io, async (signal) => {
    try {
      const read = () => readCluster(session, { signal });
      const cluster = checkStatic && (await whileStoreIsBusy({ ...io, signal })(read));
      if (cluster !== undefined && size < cluster.config.size)
        await checkStatic?.([size, cluster.config.size], signal);
      const outcome = await scaleCluster({ ...io, ...target, session, signal, onEvent });
      return reportScaled(outcome, target, session.store.url, io);
    } catch (error) {
      if (isShrunk) {
        const again = `nodelease scale ${size} --drain-timeout ${formatSetting(drainTimeoutMs)}`;
        const state = `the cluster has ${pluralize(size, 'node id')} already, and holders of others know that they are to give them back; ${again}`;
        complain(io, `${signal.aborted ? 'interrupted' : 'not finished'}: ${state} goes on`);
      }
      throw error;
    }
  });
}

/**
 * How to make sure that no node id of a range is in use as a fixed one. Only those are found that are
 * announced in the discovery tree at this moment. It throws {ConfigError} when one is, {ZooKeeperError}
 * when that is unknown, {StoreError}.
 */
function staticCheck(session: StoreSession, settings: ZooKeeperSettings, io: Io): CheckStatic {
  return async (ids, signal) => {
    const { staticNodes } = await import('./static-nodes.js');
    const zookeeper = await connectTo(settings, io);
    try {
      const found = await staticNodes({ zookeeper, session, ids, signal });
      const highest = found.at(-1);
      if (highest === undefined) return;
      const who = highest.taskId === undefined ? 'a task' : `task ${highest.taskId}`;
      throw new ConfigError(
        SIZE,
        ids[0],
        `at least ${highest.id + 1}, for node id ${highest.id} is in use without a lease: ${who} announces it at ${settings.connect.text} ` +
          '(a fixed id; or what is left of a task that was killed, which goes by itself within some seconds)',
      );
    } catch (error) {
      if (!(error instanceof ZooKeeperError) || signal.aborted) throw error;
      const what = `no check was possible for fixed node ids of ${ids[0]} and above, and nothing was changed`;
      throw new ZooKeeperError(what, error.fault, error.outcome, undefined, error);
    } finally {
      await zookeeper.close();
    }
  };
}

/** The listener of `scaleCluster` that shows on standard error how far it has got, in few lines. */
export function scaleProgress(io: Io): (event: ScaleEvent) => void {
  let shownAt = io.clock.monotonic();
  let isDraining = false;
  return (event) => {
    const now = io.clock.monotonic();
    // Frequent events. The first line on draining has named all holders.
    const isOften = event.type === 'retired' || (event.type === 'draining' && isDraining);
    if (isOften && now - shownAt < LINE_EVERY_MS) return;
    shownAt = now;
    isDraining ||= event.type === 'draining';
    complain(io, line(event));
  };
}

function line(event: ScaleEvent): string {
  switch (event.type) {
    case 'adopted':
      return `every holder makes unique ids with ${event.idWidth} bits for the node id now, after ${formatDuration(event.tookMs)}`;
    case 'waiting': {
      const { idWidth, holders } = event;
      const who = holdersText(holders);
      return `waiting for ${pluralize(holders.length, 'holder')} to make unique ids with ${idWidth} bits for the node id: ${who}`;
    }
    case 'shrunk':
      return `the cluster has ${pluralize(event.to, 'node id')} from now on, and had ${event.from}: a holder of another one learns of it at its next renewal`;
    case 'retired':
      return `${event.retired} of ${pluralize(event.total, 'lease object')} retired`;
    case 'draining': {
      const { holders, leftMs } = event;
      const until = leftMs > 0 ? `, and for ${formatDuration(leftMs)} at the most` : '';
      return `waiting for ${pluralize(holders.length, 'holder')} to give a node id back${until}: ${retiringText(holders)}`;
    }
    case 'forced': {
      const { id, taskId, version } = event.holder;
      return `node id ${id} is taken away from task ${taskId}, which has not given it back in time: the task loses version ${version}, and stops at its next renewal`;
    }
    case 'damaged':
      return `node id ${event.id}: its lease object ${event.problem}: left as it is (nodelease init --repair restores it)`;
  }
}

/** Reports the outcome. Returns its exit code. */
function reportScaled(outcome: ScaleOutcome, { size, json }: ScaleTarget, url: string, io: Io): number {
  switch (outcome.kind) {
    case 'no-cluster':
      return fail(io, 'CLUSTER_MISSING', nothingAt(url, size));
    case 'not-adopted': {
      const { idWidth, holders } = outcome;
      const who = `${pluralize(holders.length, 'holder')} did not go over to ${idWidth} bits for the node id in time: ${holdersText(holders)}`;
      const rest = `that ${idWidth} bits are wanted stays published, nodelease scale ${size} goes on from there`;
      const text = `the cluster at ${url} has ${outcome.size} node ids still: ${who}; ${rest}`;
      return fail(io, 'WAIT_TIMEOUT', text);
    }
    case 'superseded': {
      const why = `another command has changed the number of node ids meanwhile, and its number applies; nodelease scale ${size} changes it again`;
      return fail(io, 'CLUSTER_CHANGED', `the cluster at ${url} has ${outcome.size} node ids: ${why}`);
    }
    case 'scaled':
      return reportSize(outcome, url, io, json);
  }
}

function reportSize(
  { kind, ...outcome }: Extract<ScaleOutcome, { kind: 'scaled' }>,
  url: string,
  io: Io,
  json = false,
): number {
  const { from, to, idWidth, widened, created, reopened, retired, forced, damaged } = outcome;
  const changes = [
    created > 0 && `${pluralize(created, 'lease object')} written`,
    reopened > 0 && `${pluralize(reopened, 'retired lease object')} made acquirable again`,
    retired > 0 && `${pluralize(retired, 'lease object')} retired`,
  ];
  const done = changes.filter(Boolean).join(', ');
  const cluster = `the cluster at ${url} has ${pluralize(to, 'node id')}`;
  if (json) sayJson(io, { store: url, ...outcome });
  else if (from === to) say(io, `${cluster} already: ${done || 'nothing to do'}`);
  else say(io, `${cluster} now, and had ${from}: ${done || 'all lease objects are there'}`);
  if (!json && forced.length > 0) say(io, `taken from their holders by force: ${retiringText(forced)}`);
  if (!json && widened) say(io, `a node id takes ${idWidth} bits in unique ids`);
  if (damaged.length === 0) return ExitCode.ok;
  const ids = someOf(damaged.map(({ id }) => String(id)));
  const left = `${pluralize(damaged.length, 'lease object')} left as damaged: ${ids}`;
  return fail(io, 'CLUSTER_DAMAGED', `${left}; nodelease init --repair restores them`);
}

/** Who holds which node id: `8 (task-a), 9 (task-b)`. */
function retiringText(holders: readonly RetiringHolder[]): string {
  return someOf(holders.map(({ id, taskId }) => `${id} (${taskId})`));
}
