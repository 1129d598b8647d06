import { expect, it } from 'vitest';
import type { NodeStatus } from '../../core/lease/operate/inspect.js';
import { tenuresOf } from './tenures.js';

const NODE: NodeStatus = {
  ...{ id: 3, state: 'vacant', version: 0, taskId: undefined, age: undefined, durationMs: undefined },
  ...{ timestamp: undefined, knownNodes: {}, idWidth: undefined, problem: undefined },
};
const word = (version: number, acquiredAt: number) =>
  [version, acquiredAt, acquiredAt + 1].map((number) => number.toString(36)).join('/');

it.each<[string, Partial<NodeStatus>, number | null]>([
  ['was never held', {}, 0],
  ['was never held, and is retired', { state: 'retired' }, 0],
  ['has its first holder', { state: 'held', version: 1, taskId: 'a', acquiredAt: 100 }, 0],
  [
    'still has its first tenure',
    { state: 'released', version: 2, history: `${word(2, 50)}/r/b ${word(1, 9)}/x/a` },
    0,
  ],
  [
    'has forgotten its first tenures',
    { state: 'released', version: 5, history: `${word(5, 70)}/r/b ${word(4, 60)}/r/a` },
    60,
  ],
  ['has a holder, and its history is lost', { state: 'held', version: 5, taskId: 'a', acquiredAt: 100 }, 100],
  ['has a holder that does not say since when', { state: 'held', version: 5, taskId: 'a' }, null],
  ['is free, and its history is lost', { state: 'released', version: 5 }, null],
  ['has no object', { state: 'absent' }, null],
  ['has an object that cannot be read', { state: 'unreadable' }, null],
])('the tenures of a node id that %s are known since the right time', (_, node, expected) => {
  expect(tenuresOf({ ...NODE, ...node }).knownSince).toBe(expected);
});
