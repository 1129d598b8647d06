import { describe, expect, it } from 'vitest';
import { SharedKnowledge } from './inspect.js';

const known = (version: number) => Object.fromEntries(Array.from({ length: 16 }, (_, id) => [id, version]));

describe('known nodes', () => {
  it('are kept once for holders that know the same', () => {
    const knowledge = new SharedKnowledge();
    const first = knowledge.shared(known(1));
    for (let version = 2; version <= 16; version += 1) knowledge.shared(known(version));
    expect(knowledge.shared(known(1))).toBe(first);
  });

  it('are forgotten after sixteen different ones', () => {
    const knowledge = new SharedKnowledge();
    const first = knowledge.shared(known(1));
    for (let version = 2; version <= 17; version += 1) knowledge.shared(known(version));
    const again = knowledge.shared(known(1));
    expect(again).toEqual(first);
    expect(again).not.toBe(first);
  });
});
