import type { WireNode } from './wire.js';

/**
 * How a node id is shown. `overdue`: its holder has not renewed it in time, no task may take it yet. `expired`: it may be taken. `free`: whether
 * it was never held, given back, or has no object yet. `damaged`: it cannot be used until it is repaired.
 */
export type NodeState = 'held' | 'overdue' | 'expired' | 'free' | 'evicted' | 'retired' | 'damaged';

/** All of them, in the order in which they are shown. */
export const NODE_STATES = ['held', 'overdue', 'expired', 'damaged', 'evicted', 'free', 'retired'] as const satisfies readonly NodeState[];

/** What each of them means, for people. */
export const STATE_TITLES: Readonly<Record<NodeState, string>> = {
  held: 'held',
  overdue: 'overdue',
  expired: 'expired',
  free: 'free',
  evicted: 'evicted',
  retired: 'retired',
  damaged: 'damaged',
};

/** A sentence on each of them. */
export const STATE_MEANINGS: Readonly<Record<NodeState, string>> = {
  held: 'A task holds it and renews it in time.',
  overdue: 'Its holder did not renew it in time. Nobody may take it before the grace period is over.',
  expired: 'Its holder has gone. Any task may take it.',
  free: 'Nobody holds it. Any task may take it.',
  evicted: 'Taken from its holder by force. Nobody may take it while the old holder may still trust it.',
  retired: 'Taken out of use by scaling down.',
  damaged: 'Its lease object is absent or unreadable. Nobody may take it until it is repaired: nodelease init --repair.',
};

/**
 * How much longer the holder of a node id may trust its lease, in milliseconds, at a moment of the page's clock; below 0 for one that is
 * overdue, undefined where there is nothing to run out.
 *
 * @param receivedAt when the page was told of the node, on the same clock
 */
export function leftMs({ expiresInMs }: WireNode, receivedAt: number, at: number): number | undefined {
  return expiresInMs === null ? undefined : expiresInMs - Math.max(0, at - receivedAt);
}

/**
 * How a node id is to be shown when its lease has `left` milliseconds left. That it may be taken is only believed when the server says so: the page
 * may be behind.
 */
export function stateOf(node: WireNode, left: number | undefined): NodeState {
  switch (node.state) {
    case 'held':
      return left === undefined || left > 0 ? 'held' : 'overdue';
    case 'expired':
    case 'evicted':
    case 'retired':
      return node.state;
    case 'unreadable':
      return 'damaged';
    case 'absent':
      return node.problem === null ? 'free' : 'damaged';
    default:
      return 'free';
  }
}

/** The whole of a node id in one line, for screen readers. */
export function describeNode({ id, version, taskId, problem }: WireNode, state: NodeState): string {
  const parts = [`Node id ${id}`, STATE_TITLES[state]];
  if (taskId !== null) parts.push(`${state === 'held' || state === 'overdue' ? 'by' : 'last by'} ${taskId}`);
  parts.push(version > 0 ? `version ${version}` : 'never held');
  if (problem !== null) parts.push(problem);
  return parts.join(', ');
}

/** Decides which node ids are shown. */
export type NodeFilter = (node: WireNode, state: NodeState) => boolean;

/**
 * Parses the text of the filter: words with spaces between, all of which must fit. `7` is that id, `10-20` those from 10 to 20, `held` those in that
 * state, `v3` those at version 3; anything else is a part of the holder's name, in whatever case.
 */
export function parseFilter(text: string): NodeFilter | undefined {
  const words = text.trim().toLowerCase().split(/\s+/);
  const tests = words.filter((word) => word !== '').map(testOf);
  return tests.length === 0 ? undefined : (node, state) => tests.every((test) => test(node, state));
}

function testOf(word: string): NodeFilter {
  const [, from, to] = /^(\d{1,6})(?:-(\d{1,6}))?$/.exec(word) ?? [];
  if (from !== undefined) return ({ id }) => (to === undefined ? id === Number(from) : id >= Number(from) && id <= Number(to));
  const [, version] = /^v(\d{1,15})$/.exec(word) ?? [];
  const named = NODE_STATES.find((state) => state === word);
  return (node, state) => {
    if (named !== undefined && state === named) return true;
    if (version !== undefined && node.version === Number(version)) return true;
    return node.taskId?.toLowerCase().includes(word) ?? false;
  };
}
