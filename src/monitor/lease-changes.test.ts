import { describe, expect, it } from 'vitest';
import type { NodeStatus } from '../lease/inspect.js';
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

describe('what happened to leases between two looks', () => {
  it('is an acquisition when somebody holds an id at a version that nobody was seen to hold', () => {
    const acquired = { kind: 'acquired', id: 0, version: 1, taskId: 'a' };
    expect(leaseChanges([], [held])).toEqual([acquired]);
    expect(leaseChanges([vacant], [held])).toEqual([acquired]);
    expect(leaseChanges([held], [{ ...held, version: 2, taskId: 'b' }])).toEqual([{ ...acquired, version: 2, taskId: 'b' }]);
  });

  it('is a release when a held id has no holder any more', () => {
    expect(leaseChanges([held], [released])).toEqual([{ kind: 'released', id: 0, version: 1, taskId: 'a' }]);
  });

  it('is told once when a lease runs out', () => {
    expect(leaseChanges([held], [overdue])).toEqual([{ kind: 'overdue', id: 0, version: 1, taskId: 'a' }]);
    expect(leaseChanges([overdue], [{ ...overdue, state: 'expired' }])).toEqual([]);
  });

  it('is nothing when a lease was merely renewed', () => {
    expect(leaseChanges([held], [{ ...held, age: { min: 0, max: 0 } }])).toEqual([]);
    expect(leaseChanges([overdue], [held])).toEqual([]);
    expect(leaseChanges([released], [released])).toEqual([]);
  });
});
