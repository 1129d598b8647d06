import { type NodeReport, warningOf } from '../../../node/wire/status-report.js';

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
  const [, version] = /^v(\d{1,15})$/.exec(word) ?? [];
  return (node, state) =>
    state === word ||
    (version !== undefined && node.version === Number(version)) ||
    (node.taskId?.toLowerCase().includes(word) ?? false);
}
