import { describe, expect, it } from 'vitest';
import type { LeaseReading } from './inspect.js';
import { SharedKnowledge } from './shared-knowledge.js';

function reading(version: number, count = 16): LeaseReading {
  const knownNodes = Object.fromEntries(Array.from({ length: count }, (_, id) => [id, version]));
  const times = { timestamp: 1, durationMs: 1, acquiredAt: 0, narrowIdsUntil: undefined };
  return { kind: 'lease', lease: { kind: 'held', taskId: 'a', version: 1, knownNodes, nonce: 'n', renewal: 1, idWidth: 8, ...times } };
}

function knownOf(read: LeaseReading) {
  if (read.kind !== 'lease' || read.lease.kind !== 'held') throw new Error('not held');
  return read.lease.knownNodes;
}

describe('what nodes know of each other', () => {
  it('is kept once for those that know the same', () => {
    const knowledge = new SharedKnowledge();
    const first = knownOf(knowledge.shared(reading(1)));
    for (let version = 2; version <= 16; version += 1) knowledge.shared(reading(version));
    expect(knownOf(knowledge.shared(reading(1)))).toBe(first);
  });

  it('is forgotten when sixteen others were seen since', () => {
    const knowledge = new SharedKnowledge();
    const first = knownOf(knowledge.shared(reading(1)));
    for (let version = 2; version <= 17; version += 1) knowledge.shared(reading(version));
    const again = knownOf(knowledge.shared(reading(1)));
    expect(again).toEqual(first);
    expect(again).not.toBe(first);
  });
});
