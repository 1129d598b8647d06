import { expect, it } from 'vitest';
import type { NodeReport } from '../../../node/wire/status-report.js';
import { knowledgeOf, type NodeState, parseFilter, tally } from './node-state.js';

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
  [{ ...facts, id: 99, version: 1_883_000_000_000_001, taskId: 'restored' }, 'held'],
];

it.each([
  ['7', [7]],
  ['7-20', [7, 12]],
  ['overdue', [12]],
  ['free', [70]],
  ['v3', [7, 12]],
  ['v1883000000000001', [99]],
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

function held(id: number, version: number, knownNodes: Record<number, number>): NodeReport {
  const facts = { ageMs: null, expiresInMs: 1_000, timestamp: null, idWidth: 8, problem: null };
  return { id, state: 'held', version, taskId: `task-${id}`, knownNodes, ...facts };
}

const seen = [
  held(0, 1, { 1: 2, 2: 1 }),
  held(1, 2, { 0: 1 }),
  held(2, 1, { 1: 1 }),
  { ...held(3, 1, { 1: 2 }), state: 'released', taskId: null } as const,
].map((node) => ({ node }));
const [, second, , fourth] = seen.map(({ node }) => node) as [NodeReport, NodeReport, NodeReport, NodeReport];

it('has for each holder whether it knows the version of a node id, an older one, or no version', () => {
  const { others } = knowledgeOf(second, seen);
  expect([...others]).toEqual([
    [0, { known: 'current', version: 2 }],
    [2, { known: 'behind', version: 1 }],
  ]);
  expect(tally(others)).toEqual({ current: 1, behind: 1, unknown: 0 });
});

it('has what the holder itself knows of the other held node ids', () => {
  expect(tally(knowledgeOf(second, seen).own)).toEqual({
    current: 1,
    behind: 0,
    unknown: 1,
  });
  expect(knowledgeOf(fourth, seen).own.size).toBe(0);
});

it('no task lags behind that knows of a tenure before the page does', () => {
  expect(knowledgeOf(held(1, 1, {}), seen).others.get(0)?.known).toBe('current');
});
