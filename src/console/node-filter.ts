import { NODE_STATES, type NodeState } from './node-state.js';
import type { WireNode } from './wire.js';

/** Decides which node ids are shown. */
export type NodeFilter = (node: WireNode, state: NodeState) => boolean;

/**
 * Reads what somebody filters by: words with spaces between, all of which must fit. `7` is that id, `10-20` those from 10 to 20, `held` those in that
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
