import { type NodeReport, warningOf } from '../../../node/wire/status-report.js';
import { formatDuration } from './format.js';

/** The states in which node ids are shown, in this order, and a sentence on each. */
export const STATE_MEANINGS = {
  held: 'A task holds it and renews it in time.',
  overdue: 'Its holder did not renew it in time. No task may take it before the grace period is over.',
  expired: 'Its holder has gone. Any task may take it.',
  damaged:
    'Its lease object is absent or unreadable. No task may take it until it is repaired: nodelease init --repair.',
  evicted: 'Taken from its holder by force. No task may take it while the old holder may still trust it.',
  free: 'No task holds it. Any task may take it.',
  retired: 'Taken out of use by scaling down.',
} as const;

/** How a node id is shown. */
export type NodeState = keyof typeof STATE_MEANINGS;

export const NODE_STATES = Object.keys(STATE_MEANINGS) as readonly NodeState[];

/**
 * How much longer the holder of a node id may trust its lease, in milliseconds; below 0 for one that is
 * overdue, undefined where there is nothing to run out. Both moments, that of the message and the one that is
 * asked for, are of the page's clock.
 */
export function leftMs({ expiresInMs }: NodeReport, receivedAt: number, at: number): number | undefined {
  return expiresInMs === null ? undefined : expiresInMs - Math.max(0, at - receivedAt);
}

/**
 * How a node id is to be shown when its lease has `left` milliseconds left. That it may be taken is only
 * believed when the server says so: the page may be behind.
 */
export function stateOf({ state, problem }: NodeReport, left: number | undefined): NodeState {
  if (state === 'held') return left === undefined || left > 0 ? 'held' : 'overdue';
  if (state === 'expired' || state === 'evicted' || state === 'retired') return state;
  return state === 'unreadable' || (state === 'absent' && problem !== null) ? 'damaged' : 'free';
}

/** How much longer a lease is valid, in words. */
export function leftText(state: NodeState, left: number | undefined, graceMs: number): string {
  if (left === undefined) return '';
  if (left > 0) return `${formatDuration(left)} left`;
  const untilFree = graceMs + left;
  if (state === 'overdue' && untilFree > 0) return `free in ${formatDuration(untilFree)}`;
  return `${formatDuration(-left)} over`;
}

/** The whole of a node id in one line, for screen readers. */
export function describeNode(node: NodeReport, state: NodeState): string {
  const { id, version, taskId, problem } = node;
  const parts = [`Node id ${id}`, state];
  if (taskId !== null) parts.push(`${state === 'held' || state === 'overdue' ? 'by' : 'last by'} ${taskId}`);
  parts.push(version > 0 ? `version ${version}` : 'never held');
  const warning = problem ?? warningOf(node);
  if (warning) parts.push(warning);
  return parts.join(', ');
}

/** Decides which node ids are shown. */
type NodeFilter = (node: NodeReport, state: NodeState) => boolean;

/**
 * Parses the text of the filter: words with spaces between, all of which must fit. `7` is that id, `10-20`
 * those from 10 to 20, `held` those in that state, `v3` those at version 3; anything else is a part of the
 * holder's name, in whatever case.
 */
export function parseFilter(text: string): NodeFilter {
  const words = text.trim().toLowerCase().split(/\s+/);
  const tests = words.filter((word) => word !== '').map(testOf);
  return (node, state) => tests.every((test) => test(node, state));
}

function testOf(word: string): NodeFilter {
  const [, from, to = from] = /^(\d{1,6})(?:-(\d{1,6}))?$/.exec(word) ?? [];
  if (from !== undefined) return ({ id }) => id >= Number(from) && id <= Number(to);
  const [, version] = /^v(\d{1,16})$/.exec(word) ?? [];
  return (node, state) =>
    state === word ||
    (version !== undefined && node.version === Number(version)) ||
    (node.taskId?.toLowerCase().includes(word) ?? false);
}

/** What holders know of the versions of other node ids, by their node id or by the other one. */
export type KnownVersions = ReadonlyMap<number, KnownVersion>;

interface KnownVersion {
  readonly known: 'current' | 'behind' | 'unknown';
  readonly version: number | undefined;
}

/**
 * Who knows whose version, seen from one node id. Only holders know anything.
 *
 * @returns `others`: what the holder of each other node id knows of this one's version; `own`: what the holder
 * of this one knows of the others that are held, empty without a holder
 */
export function knowledgeOf(node: NodeReport, all: readonly { readonly node: NodeReport }[]) {
  const others = new Map<number, KnownVersion>();
  const own = new Map<number, KnownVersion>();
  for (const { node: other } of all) {
    if (other.id === node.id || !isHeld(other)) continue;
    if (node.version > 0) others.set(other.id, known(other.knownNodes[node.id], node.version));
    if (isHeld(node)) own.set(other.id, known(node.knownNodes[other.id], other.version));
  }
  return { others, own };
}

/** How many of them are of each kind. */
export function tally(versions: KnownVersions): Readonly<Record<KnownVersion['known'], number>> {
  const counts = { current: 0, behind: 0, unknown: 0 };
  for (const { known } of versions.values()) counts[known] += 1;
  return counts;
}

/**
 * A version above the one that was seen is of a tenure that the page does not know yet: its holder is not
 * behind.
 */
function known(version: number | undefined, current: number): KnownVersion {
  if (version === undefined) return { known: 'unknown', version };
  return { known: version >= current ? 'current' : 'behind', version };
}

function isHeld({ state, taskId }: NodeReport) {
  return state === 'held' && taskId !== null;
}
