import { expect, it } from 'vitest';
import { checkKnownNodes } from './known-nodes.js';
import { LeaseLostError, LeaseReleasedError, LeaseRetiringError, waitingText } from './lease.js';
import { graceAfterLoss, leaseTiming } from './lease-timing.js';
import { LockLostError, LockReleasedError } from './lock-lost.js';
import { stickyMark } from './sticky.js';

const lost = (reason: LeaseLostError['reason']) => new LeaseLostError(3, 7, reason, 1_000, 'so it is', 'why');

it.each([
  ['LEASE_LOST', () => lost('taken'), 'lease of node id 3 (version 7) is lost: so it is'],
  ['LEASE_RELEASED', () => new LeaseReleasedError(3, 7), 'lease of node id 3 (version 7) has been released'],
  [
    'LEASE_RETIRING',
    () => new LeaseRetiringError(3, 7, 2),
    'node id 3 (version 7) is being retired: the cluster has 2 node ids now',
  ],
  [
    'LEASE_RETIRING',
    () => new LeaseRetiringError(3, 7, 1),
    'node id 3 (version 7) is being retired: the cluster has 1 node id now',
  ],
  [
    'LOCK_LOST',
    () => new LockLostError('report', 9n, 'paused', 1_000, 'so it is'),
    'lock report (token 9) is lost: so it is',
  ],
  ['LOCK_RELEASED', () => new LockReleasedError('report', 9n), 'lock report (token 9) has been released'],
])('an error says which tenure has ended, and why: %s', (code, error, message) => {
  expect(error()).toMatchObject({ code, message });
});

it('a loss has its cause', () => {
  expect(lost('denied').cause).toBe('why');
});

it.each([
  ['unreachable', 480],
  ['denied', 480],
  ['taken', 0],
  ['paused', 0],
] as const)(
  'work may end in order in four fifths of what is left, if no other task can hold the id: %s',
  (reason, ms) => {
    expect(graceAfterLoss(lost(reason), 400)).toBe(ms);
    expect(graceAfterLoss(lost(reason), 1_400)).toBe(0);
  },
);

it.each([
  [1_000, 1_000 / 6, 1_000 / 60, 1_000 / 15],
  [4_800, 500, 80, 320],
  [15_000, 1_250, 200, 1_000],
  [86_400_000, 5_000, 200, 2_000],
])(
  'a request of a lease of %i ms has a share of it, within bounds, and so has a pause',
  (durationMs, requestTimeoutMs, first, max) => {
    expect(leaseTiming(durationMs)).toMatchObject({ requestTimeoutMs, backoff: { first, max } });
  },
);

it('known nodes are versions by node ids', () => {
  for (const known of [{}, { 0: 0, 65527: 3 }]) checkKnownNodes(known);
  for (const bad of [null, 7, { x: 1 }, { x1: 1 }, { '1x': 1 }, { 123456: 1 }, { 1: -1 }, { 1: 1, 2: 'x' }])
    expect(() => checkKnownNodes(bad)).toThrow('versions: expected an object of versions by their node ids');
});

it('a waiting task says why it waits', () => {
  expect(waitingText({ type: 'waiting', sleepMs: 1 })).toBe('no node id is free: waiting');
  expect(waitingText({ type: 'waiting', sleepMs: 1, why: 'so it is' })).toBe(
    'no node id is available yet, waiting: so it is',
  );
});

it('a sticky key is known by 16 hex digits of its SHA-256', () => {
  expect(stickyMark('abc')).toBe('ba7816bf8f01cfea');
});
