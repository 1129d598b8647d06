import type { Clock } from '../../base/clock.js';
import type { RetiringHolder, ScaleEvent, ScaleOutcome } from '../../lease/operate/scaling.js';
import { ExitCode } from '../exit-codes.js';
import { holdersText } from '../status/narrow-holders.js';
import type { Io } from '../terminal/io.js';
import { formatDuration, formatSetting, pluralize, someOf } from '../terminal/text.js';
import { complain, say } from './store-command.js';

/** The minimum time between two lines of progress, in milliseconds. */
const LINE_EVERY_MS = 2_000;

/** Shows the progress of a change of the number of node ids on standard error, in few lines. */
export class ScaleProgress {
  #toldAt: number;
  #isDraining = false;
  /** Whether the cluster has its smaller size already, so that only the node ids beyond it are left to be given back. */
  isShrunk = false;

  constructor(
    private readonly io: Pick<Io, 'stderr'>,
    private readonly clock: Pick<Clock, 'monotonic'>,
  ) {
    this.#toldAt = clock.monotonic();
  }

  /** The listener of `scaleCluster`. */
  readonly tell = (event: ScaleEvent): void => {
    this.isShrunk ||= event.type !== 'waiting' && event.type !== 'adopted' && event.type !== 'damaged';
    // Frequent events. The first line on draining has named all holders.
    const isOften = event.type === 'retired' || (event.type === 'draining' && this.#isDraining);
    if (isOften && this.clock.monotonic() - this.#toldAt < LINE_EVERY_MS) return;
    this.#toldAt = this.clock.monotonic();
    this.#isDraining ||= event.type === 'draining';
    complain(this.io, line(event));
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
      return `the cluster has ${pluralize(event.to, 'node id')} from now on, and had ${event.from}: whoever holds another one is told at its next renewal`;
    case 'retired':
      return `${event.retired} of ${pluralize(event.total, 'lease object')} retired`;
    case 'draining': {
      const { holders, leftMs } = event;
      const until = leftMs > 0 ? `, and for ${formatDuration(leftMs)} at the most` : '';
      return `waiting for ${pluralize(holders.length, 'holder')} to give a node id back${until}: ${retiringText(holders)}`;
    }
    case 'forced': {
      const { id, taskId, version } = event.holder;
      return `node id ${id} is taken away from task ${taskId}, which has not given it back in time: its version is no more ${version}, and the task stops at its next renewal`;
    }
    case 'damaged':
      return `node id ${event.id}: its lease object ${event.problem}: left as it is (nodelease init --repair restores it)`;
  }
}

/** Reports the outcome. Returns its exit code. */
export function reportScaled(outcome: ScaleOutcome, size: number, url: string, io: Pick<Io, 'stdout' | 'stderr'>): number {
  switch (outcome.kind) {
    case 'no-cluster':
      complain(io, `there is no cluster at ${url} yet: nodelease init --nodes ${size} makes one`);
      return ExitCode.storeUnusable;
    case 'not-adopted': {
      const { idWidth, holders } = outcome;
      complain(
        io,
        `the cluster at ${url} has ${outcome.size} node ids still: ${pluralize(holders.length, 'holder')} did not go over to ${idWidth} bits for the ` +
          `node id in time: ${holdersText(holders)}; that ${idWidth} bits are wanted stays published, nodelease scale ${size} goes on from there`,
      );
      return ExitCode.acquireTimeout;
    }
    case 'superseded':
      complain(
        io,
        `the cluster at ${url} has ${outcome.size} node ids: somebody else has changed their number meanwhile, and that stands; ` +
          `nodelease scale ${size} changes it once more`,
      );
      return ExitCode.acquireTimeout;
    case 'scaled':
      return reportSize(outcome, url, io);
  }
}

type Scaled = Extract<ScaleOutcome, { kind: 'scaled' }>;

function reportSize(outcome: Scaled, url: string, io: Pick<Io, 'stdout' | 'stderr'>): number {
  const { from, to, idWidth, widened, forced, damaged } = outcome;
  const done = doneText(outcome);
  if (from === to) say(io, `the cluster at ${url} has ${pluralize(to, 'node id')} already: ${done ?? 'nothing to do'}`);
  else say(io, `the cluster at ${url} has ${pluralize(to, 'node id')} now, and had ${from}: ${done ?? 'all lease objects are there'}`);
  if (forced.length > 0) say(io, `taken from their holders by force: ${retiringText(forced)}`);
  if (widened) say(io, `a node id takes ${idWidth} bits in unique ids`);
  if (damaged.length === 0) return ExitCode.ok;
  const ids = damaged.map(({ id }) => String(id));
  complain(io, `${pluralize(damaged.length, 'lease object')} left as damaged: ${someOf(ids)}; nodelease init --repair restores them`);
  return ExitCode.storeUnusable;
}

/** What was written; undefined for nothing. */
function doneText({ created, reopened, retired }: Scaled): string | undefined {
  const parts = [
    ...(created > 0 ? [`${pluralize(created, 'lease object')} written`] : []),
    ...(reopened > 0 ? [`${pluralize(reopened, 'retired lease object')} made acquirable again`] : []),
    ...(retired > 0 ? [`${pluralize(retired, 'lease object')} retired`] : []),
  ];
  return parts.length === 0 ? undefined : parts.join(', ');
}

/** Who holds which node id: `8 (task-a), 9 (task-b)`. */
function retiringText(holders: readonly RetiringHolder[]): string {
  return someOf(holders.map(({ id, taskId }) => `${id} (${taskId})`));
}

/** The complaint of a call that ended after it had changed the number of node ids, and before the holders gave theirs back. */
export function unfinishedText(how: 'interrupted' | 'not finished', size: number, drainTimeoutMs: number): string {
  const again = `nodelease scale ${size} --drain-timeout ${formatSetting(drainTimeoutMs)}`;
  return `${how}: the cluster has ${pluralize(size, 'node id')} already, and holders of others know that they are to give them back; ${again} goes on`;
}
