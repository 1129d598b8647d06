import { describe, expect, it } from 'vitest';
import { leapt } from '../../core/lease/model/lease-state.js';
import type { NodeStatus } from '../../core/lease/operate/inspect.js';
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
const held: NodeStatus = {
  ...vacant,
  state: 'held',
  version: 1,
  taskId: 'a',
  durationMs: 3_000,
  age: { min: 1_000, max: 1_000 },
};
const overdue: NodeStatus = { ...held, age: { min: 3_100, max: 3_100 } };
const released: NodeStatus = { ...vacant, state: 'released', version: 1 };

describe('a change of a lease between two scans', () => {
  it('is an acquisition when a task holds an id at a version that was not seen held before', () => {
    const acquired = { kind: 'acquired', nodeId: 0, version: 1, taskId: 'a', previousTaskId: null };
    expect(leaseChanges([], [held])).toMatchObject([acquired]);
    expect(leaseChanges([vacant], [held])).toMatchObject([acquired]);
    expect(leaseChanges([released], [{ ...held, version: 2 }])).toMatchObject([{ ...acquired, version: 2 }]);
  });

  it('is a take-over if the previous holder may have let it expire, otherwise an acquisition of a released id', () => {
    const next = { ...held, version: 2, taskId: 'b' };
    const change = { nodeId: 0, version: 2, taskId: 'b', previousTaskId: 'a' };
    for (const was of [overdue, { ...overdue, state: 'expired' } as const]) {
      expect(leaseChanges([was], [next], { sinceMs: 1_000 })).toMatchObject([
        { kind: 'taken-over', ...change },
      ]);
    }
    expect(leaseChanges([held], [next], { sinceMs: 1_000 })).toMatchObject([{ kind: 'acquired', ...change }]);
    expect(leaseChanges([held], [next], { sinceMs: 2_001 })).toMatchObject([
      { kind: 'taken-over', ...change },
    ]);
    expect(leaseChanges([held], [next])).toMatchObject([{ kind: 'taken-over', ...change }]);
  });

  it('is no take-over with a whole duration between the scans: the previous holder may have released it', () => {
    const next = { ...held, version: 2, taskId: 'b' };
    expect(leaseChanges([held], [next], { sinceMs: 3_001 })).toMatchObject([
      { kind: 'acquired', text: 'b acquired node id 0 at version 2' },
    ]);
    expect(leaseChanges([overdue], [next], { sinceMs: 60_000 })).toMatchObject([
      { kind: 'taken-over', previousTaskId: 'a' },
    ]);
  });

  it('is a number of tenures if the version grew by more than one, without a previous task', () => {
    const now = { ...held, version: 40, taskId: 'task-119' };
    const was = { ...held, version: 9, taskId: 'task-26' };
    const text = 'task-119 holds node id 0 at version 40: up to 31 tenures since the last look';
    const change = { kind: 'acquired', version: 40, taskId: 'task-119', previousTaskId: null, text };
    for (const before of [was, { ...was, age: overdue.age }, { ...released, version: 9 }]) {
      for (const sinceMs of [1_000, 1_300_000])
        expect(leaseChanges([before], [now], { sinceMs })).toEqual([{ ...change, nodeId: 0 }]);
    }
    const gone = { ...released, version: 40 };
    expect(leaseChanges([was], [gone])).toMatchObject([{ kind: 'released', previousTaskId: null }]);
    const evicted = 'node id 0 was taken away by force, its version is now 40';
    expect(leaseChanges([was], [{ ...gone, state: 'evicted' }])).toMatchObject([
      { kind: 'evicted', previousTaskId: null, text: evicted },
    ]);
    // With ids from ZooKeeper alone the versions are those of its changes.
    const between = { sinceMs: 1_000, countsVersions: false };
    expect(leaseChanges([{ ...was, age: overdue.age }], [now], between)).toMatchObject([
      { kind: 'taken-over', previousTaskId: 'task-26' },
    ]);
  });

  it('is one tenure where the version leaps, since the store has gone back', () => {
    const now = { ...held, version: leapt(1, Date.UTC(2027, 0)) + 1, taskId: 'b' };
    for (const was of [held, { ...released, version: 1 }])
      expect(leaseChanges([was], [now], { sinceMs: 1_000 })).toMatchObject([
        { kind: 'acquired', text: `b acquired node id 0 at version ${now.version}` },
      ]);
  });

  it('is an eviction when the version rises without a tenure', () => {
    const evicted = { kind: 'evicted', nodeId: 0, version: 2, taskId: null, previousTaskId: 'a' };
    expect(leaseChanges([held], [{ ...released, state: 'evicted', version: 2 }])).toMatchObject([evicted]);
    const was = { ...overdue, timestamp: 5 };
    expect(leaseChanges([was], [{ ...released, version: 2, timestamp: 5 }])).toMatchObject([evicted]);
    expect(leaseChanges([was], [{ ...released, version: 2, timestamp: 9 }])).toMatchObject([
      { ...evicted, kind: 'released', previousTaskId: null },
    ]);
    expect(
      leaseChanges([{ ...released, state: 'evicted', version: 2 }], [{ ...released, version: 2 }]),
    ).toEqual([]);
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
    expect(leaseChanges([held], [released])).toMatchObject([
      { kind: 'released', nodeId: 0, version: 1, previousTaskId: 'a' },
    ]);
  });

  it('is reported once when a lease expires', () => {
    expect(leaseChanges([held], [overdue])).toMatchObject([
      { kind: 'overdue', nodeId: 0, version: 1, taskId: 'a' },
    ]);
    expect(leaseChanges([overdue], [{ ...overdue, state: 'expired' }])).toEqual([]);
  });

  it('is nothing when a lease was merely renewed', () => {
    expect(leaseChanges([held], [{ ...held, age: { min: 0, max: 0 } }])).toEqual([]);
    expect(leaseChanges([overdue], [held])).toEqual([]);
    expect(leaseChanges([released], [released])).toEqual([]);
  });
});
