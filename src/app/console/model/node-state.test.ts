import { expect, it } from 'vitest';
import type { NodeReport } from '../../../node/wire/status-report.js';
import { type NodeState, parseFilter } from './node-state.js';

const facts = {
  state: 'held',
  ageMs: null,
  expiresInMs: 1_000,
  timestamp: null,
  knownNodes: {},
  idWidth: 8,
  problem: null,
} as const;
const nodes: readonly (readonly [NodeReport, NodeState])[] = [
  [{ ...facts, id: 7, version: 3, taskId: 'Orders-a' }, 'held'],
  [{ ...facts, id: 12, version: 3, taskId: 'billing-7' }, 'overdue'],
  [{ ...facts, id: 70, version: 0, taskId: null }, 'free'],
];

it.each([
  ['7', [7]],
  ['7-20', [7, 12]],
  ['overdue', [12]],
  ['free', [70]],
  ['v3', [7, 12]],
  ['orders', [7]],
  ['billing-7', [12]],
  ['v3 held', [7]],
  ['  V3   ORDERS ', [7]],
  ['absent', []],
])('%j shows %j', (text, ids) => {
  const filter = parseFilter(text);
  expect(nodes.filter(([node, state]) => filter(node, state)).map(([{ id }]) => id)).toEqual(ids);
});

it('nothing filters nothing', () =>
  expect(nodes.every(([node, state]) => parseFilter('  ')(node, state))).toBe(true));
