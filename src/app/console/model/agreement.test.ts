import { expect, it } from 'vitest';
import type { TreeReport } from '../../../node/wire/tree-report.js';
import { agreementText } from './agreement.js';

function text(held: readonly number[], shown: readonly number[] | undefined): string {
  const nodes = shown?.map((nodeId) => ({ nodeId })) as TreeReport['nodes'] | undefined;
  const tree: TreeReport | null = nodes
    ? { zookeeper: 'zk', path: '/discovery', exists: true, nodes, services: [], endpoints: [], foreign: [] }
    : null;
  return agreementText(
    { state: 'ok', problem: null, nodes: held.map((id) => ({ id, state: 'ok', version: 1 })) },
    tree,
  );
}

it('discovery agrees with the leases where there are some, and every node in the tree has one', () => {
  expect(text([0, 1], [0, 1])).toBe('agrees with the leases');
});

it('nodes in the tree without a lease are counted, and without any lease nothing agrees', () => {
  expect(text([], [0, 1, 2, 3])).toBe('4 of 4 nodes in the tree without a lease');
  expect(text([0, 1], [0, 1, 7])).toBe('1 of 3 nodes in the tree without a lease');
  expect(text([], [])).toBe('no lease to compare it with');
  expect(text([], undefined)).toBe('no lease to compare it with');
});
