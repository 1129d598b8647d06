import { describe, expect, it } from 'vitest';
import type { NodeStatus } from '../lease/operate/inspect.js';
import { leaseChanges } from './lease-changes.js';

const vacant: NodeStatus = {
  id: 0,
  state: 'vacant',
  version: 0,
  taskId: undefined,
  age: { min: 0, max: 0 },
  durationMs: undefined,
  timestamp: undefined,
  knownNodes: {},
  idWidth: undefined,
  problem: undefined,
};
const held: NodeStatus = { ...vacant, state: 'held', version: 1, taskId: 'a', durationMs: 3_000, age: { min: 1_000, max: 1_000 } };
const overdue: NodeStatus = { ...held, age: { min: 3_100, max: 3_100 } };
const released: NodeStatus = { ...vacant, state: 'released', version: 1 };

describe('what happened to leases between two scans', () => {
  it('is an acquisition when a task holds an id at a version that was not seen held before', () => {
    const acquired = { kind: 'acquired', nodeId: 0, version: 1, taskId: 'a', previousTaskId: null };
    expect(leaseChanges([], [held])).toMatchObject([acquired]);
    expect(leaseChanges([vacant], [held])).toMatchObject([acquired]);
    expect(leaseChanges([released], [{ ...held, version: 2 }])).toMatchObject([{ ...acquired, version: 2 }]);
  });

  it('is a take-over when the one before may have let it expire, and else an acquisition of what was given back meanwhile', () => {
    const next = { ...held, version: 2, taskId: 'b' };
    const change = { nodeId: 0, version: 2, taskId: 'b', previousTaskId: 'a' };
    for (const was of [overdue, { ...overdue, state: 'expired' } as const]) {
      expect(leaseChanges([was], [next], { sinceMs: 1_000 })).toMatchObject([{ kind: 'taken-over', ...change }]);
    }
    expect(leaseChanges([held], [next], { sinceMs: 1_000 })).toMatchObject([{ kind: 'acquired', ...change }]);
    expect(leaseChanges([held], [next], { sinceMs: 2_001 })).toMatchObject([{ kind: 'taken-over', ...change }]);
    expect(leaseChanges([held], [next])).toMatchObject([{ kind: 'taken-over', ...change }]);
  });

  it('is an eviction when the version rises without a tenure', () => {
    const evicted = { kind: 'evicted', nodeId: 0, version: 2, taskId: null, previousTaskId: 'a' };
    expect(leaseChanges([held], [{ ...released, state: 'evicted', version: 2 }])).toMatchObject([evicted]);
    const was = { ...overdue, timestamp: 5 };
    expect(leaseChanges([was], [{ ...released, version: 2, timestamp: 5 }])).toMatchObject([evicted]);
    expect(leaseChanges([was], [{ ...released, version: 2, timestamp: 9 }])).toMatchObject([{ ...evicted, kind: 'released' }]);
    expect(leaseChanges([{ ...released, state: 'evicted', version: 2 }], [{ ...released, version: 2 }])).toEqual([]);
  });

  it('is damage once, and its repair', () => {
    const broken: NodeStatus = { ...vacant, state: 'unreadable', problem: 'garbage' };
    expect(leaseChanges([held], [broken])).toMatchObject([
      { kind: 'damaged', nodeId: 0, version: 0, text: 'node id 0 is damaged: garbage' },
    ]);
    expect(leaseChanges([broken], [broken])).toEqual([]);
    const repaired: NodeStatus = { ...released, state: 'evicted', version: 4 };
    expect(leaseChanges([broken], [repaired])).toMatchObject([{ kind: 'restored', nodeId: 0, version: 4 }]);
  });

  it('is a release when a held id has no holder any more', () => {
    expect(leaseChanges([held], [released])).toMatchObject([{ kind: 'released', nodeId: 0, version: 1, previousTaskId: 'a' }]);
  });

  it('is told once when a lease runs out', () => {
    expect(leaseChanges([held], [overdue])).toMatchObject([{ kind: 'overdue', nodeId: 0, version: 1, taskId: 'a' }]);
    expect(leaseChanges([overdue], [{ ...overdue, state: 'expired' }])).toEqual([]);
  });

  it('is nothing when a lease was merely renewed', () => {
    expect(leaseChanges([held], [{ ...held, age: { min: 0, max: 0 } }])).toEqual([]);
    expect(leaseChanges([overdue], [held])).toEqual([]);
    expect(leaseChanges([released], [released])).toEqual([]);
  });
});
