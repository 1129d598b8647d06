import { expect, it } from 'vitest';
import type { TreeReport } from '../../../node/wire/cluster-snapshot.js';
import {
  agreementText,
  clockTime,
  counted,
  drainingText,
  eventAgo,
  eventText,
  formatDuration,
  formatOffset,
  formatSetting,
  formatShort,
} from './format.js';

it.each([
  [-5, '0.0 s'],
  [3_290, '3.2 s'],
  [9_999, '9.9 s'],
  [48_900, '48 s'],
  [60_000, '1 min'],
  [245_000, '4 min 5 s'],
  [3_600_000, '1 h'],
  [7_800_000, '2 h 10 min'],
  [86_400_000, '1 d'],
  [273_600_000, '3 d 4 h'],
])('a span of %d ms is %s', (ms, text) => expect(formatDuration(ms)).toBe(text));

it('a setting is shown exactly', () =>
  expect([500, 1_500, 15_000, 90_000, 3_600_000].map(formatSetting)).toEqual([
    '500 ms',
    '1.5 s',
    '15 s',
    '90 s',
    '1 h',
  ]));

it('a count of one is in the singular', () =>
  expect([0, 1, 2_000].map((count) => counted(count, 'service'))).toEqual([
    '0 services',
    '1 service',
    '2,000 services',
  ]));

it('a short span has three digits at most', () =>
  expect([0.42, 18.4, 999, 1_250].map(formatShort)).toEqual(['0.4 ms', '18 ms', '999 ms', '1.3 s']));

it.each([
  [[0, 0], 'the same as this host’s'],
  [[-420, 580], 'within 580 ms of this host’s'],
  [[2_000, 3_000], '2 s to 3 s ahead of this host’s'],
  [[-40, -12], '12 ms to 40 ms behind this host’s'],
] as const)('an offset of %j is %s', (offset, text) => expect(formatOffset(offset)).toBe(text));

const holder = (id: number) => ({ id, version: 1, taskId: `task-${id}` });

it('who holds ids that the cluster has given up is named, and counted where there are many', () => {
  expect(drainingText({ draining: [] })).toEqual([]);
  expect(drainingText({ draining: [holder(8), { ...holder(9), taskId: null }] })).toEqual([
    'draining: 8 by task-8, 9 by a task without a name',
  ]);
  expect(drainingText({ draining: Array.from({ length: 100 }, (_, index) => holder(8 + index)) })).toEqual([
    'draining: 8 by task-8, 9 by task-9, 10 by task-10 and 97 more',
  ]);
});

it('an event is as old as the scan that saw it; after a gap it may be as old as the scan before', () => {
  const at = Date.UTC(2026, 0, 1, 12);
  const event = {
    id: 1,
    kind: 'acquired' as const,
    nodeId: 3,
    version: 40,
    taskId: 'a',
    previousTaskId: null,
    text: 'it happened',
  };
  const texts = (since: number | null, now: number) => [
    eventText({ ...event, at, since }),
    eventAgo({ ...event, at, since }, at + now),
  ];
  expect(texts(at - 1_000, 14_900)).toEqual(['it happened', '14 s ago']);
  expect(texts(null, 100)).toEqual(['it happened', 'just now']);
  const since = at - 20 * 60_000;
  expect(texts(since, 14_900)).toEqual([
    `it happened (last look: ${clockTime(since)})`,
    'up to 20 min 14 s ago',
  ]);
});

function agreement(held: readonly number[], shown: readonly number[] | undefined): string {
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
  expect(agreement([0, 1], [0, 1])).toBe('agrees with the leases');
});

it('nodes in the tree without a lease are counted, and without any lease nothing agrees', () => {
  expect(agreement([], [0, 1, 2, 3])).toBe('4 of 4 nodes in the tree without a lease');
  expect(agreement([0, 1], [0, 1, 7])).toBe('1 of 3 nodes in the tree without a lease');
  expect(agreement([], [])).toBe('no lease to compare it with');
  expect(agreement([], undefined)).toBe('no lease to compare it with');
});
