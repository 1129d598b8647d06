import { describe, expect, it } from 'vitest';
import type { ClusterStatus, NodeStatus } from '../../../core/lease/operate/inspect.js';
import type { AllocatedStatus } from '../../../node/monitor/allocated-status.js';
import { wholeCluster } from '../../../node/monitor/listed-cluster.js';
import { allocatedTable, statusTable } from './status-table.js';

function node(id: number, more: Partial<NodeStatus> = {}): NodeStatus {
  const unknown = {
    age: undefined,
    durationMs: undefined,
    timestamp: undefined,
    knownNodes: {},
    idWidth: 8,
    problem: undefined,
  };
  return { ...unknown, id, state: 'held', version: 4_294_967_300 + id, taskId: `task-${id}`, ...more };
}

function status(nodes: readonly NodeStatus[], groups: readonly number[] = [0]): AllocatedStatus {
  return { groups, idWidth: 8, nodes };
}

describe('the table of node ids that come only from ZooKeeper', () => {
  it('has the columns of leases in a store', () => {
    const cluster = {
      size: 1,
      durationMs: 1,
      graceMs: 1,
      idWidth: 8,
      bootstrapped: true,
    } as ClusterStatus['cluster'];
    for (const screen of [undefined, { columns: 120, rows: 24, color: true }]) {
      const [ours] = allocatedTable(status([node(0)]), 'zk:1', { screen });
      const [theirs] = statusTable(wholeCluster({ cluster, nodes: [node(0)] }), { screen });
      expect(ours).toBe(theirs);
    }
  });

  it('leaves empty what ZooKeeper does not have, and counts below what there is', () => {
    const nodes = [
      node(0, { idWidth: 9 }),
      node(1, { state: 'evicted' }),
      node(300, { state: 'unreadable', version: 0, taskId: undefined, problem: 'no data' }),
    ];
    expect(allocatedTable({ ...status(nodes, [0, 1]), idWidth: 10 }, 'zk:1', { screen: undefined })).toEqual([
      ' ID  STATE          VERSION  TASK    AGE  EXPIRES IN  PROBLEM',
      '  0  held        4294967300  task-0',
      '  1  evicted     4294967301  task-1',
      '300  unreadable           -                           no data',
      'held 1, damaged 1, evicted 1; 2 groups (00 to 01), node ids 10 bits wide',
    ]);
    expect(allocatedTable(status([], []), 'zk:1', { screen: undefined }).at(-1)).toBe(
      'held 0, damaged 0; 0 groups, node ids 8 bits wide',
    );
  });

  it('says how wide ids ever were here, and that no task is waited for because of that', () => {
    const lines = allocatedTable({ ...status([node(0)]), idWidth: 9 }, 'zk:1', { screen: undefined });
    expect(lines[0]).toMatch(/^ID {2}STATE/);
    expect(lines.at(-1)).toBe('held 1, damaged 0; 1 group (00), node ids 9 bits wide');
  });

  it('says above, while a further group is being opened, who does not make wider unique ids yet', () => {
    const nodes = [node(0, { idWidth: 9 }), node(1), node(2, { state: 'evicted', idWidth: undefined })];
    const lines = allocatedTable({ ...status(nodes, [0, 1]), idWidth: 9 }, 'zk:1', { screen: undefined });
    expect(lines[0]).toBe(
      'growing: node ids are to take 9 bits in unique ids, 1 holder not there yet: 1 (task-1, 8 bits)',
    );
    expect(lines[1]).toMatch(/^ID {2}STATE/);
    const small = allocatedTable({ ...status(nodes, [0, 1]), idWidth: 9 }, 'zk:1', {
      screen: { columns: 80, rows: 6, color: false },
      maxLines: 5,
    });
    expect(small).toHaveLength(5);
    expect(small.at(-2)).toBe('… and 2 more (nodelease status --all shows them)');
  });

  it('keeps within a terminal, with the most important ids', () => {
    const nodes = Array.from({ length: 300 }, (_, id) => node(id));
    nodes[250] = node(250, { state: 'evicted', taskId: 'x'.repeat(100) });
    nodes[299] = node(299, { problem: 'its data names node id 5' });
    const lines = allocatedTable(status(nodes), 'zk:1', {
      screen: { columns: 80, rows: 12, color: false },
      maxLines: 11,
    });
    expect(lines).toHaveLength(11);
    expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(80);
    expect(lines.slice(1, -2).map((line) => Number.parseInt(line, 10))).toEqual([0, 1, 2, 3, 4, 5, 250, 299]);
    expect(lines.at(-2)).toBe('… and 292 more (nodelease status --all shows them)');
    expect(lines.at(-1)).toMatch(/^held 298, damaged 1, evicted 1; /);
  });

  it('lets nothing of a server reach the terminal as a command', () => {
    const screen = { columns: 120, rows: 24, color: false };
    const lines = allocatedTable(status([node(0, { taskId: 'a\x1b[2Jb' })]), 'zk:1', { screen });
    expect(lines.join('\n')).not.toContain('\x1b');
  });
});
