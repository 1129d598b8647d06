import { describe, expect, it } from 'vitest';
import { hexPair } from '../tree-paths.js';
import { MOST_GROUPS, TakenIds } from './taken-ids.js';

const names = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => hexPair(from + i));

function taken(groups: Readonly<Record<number, readonly string[]>>): TakenIds {
  const ids = new TakenIds(new Set(Object.keys(groups).map(Number)));
  for (const [group, members] of Object.entries(groups)) ids.note(Number(group), members);
  return ids;
}

describe('the free ids', () => {
  it('begin at 8, since the first eight are reserved, whether or not somebody uses those', () => {
    expect(taken({}).free(0, MOST_GROUPS)).toBe(8);
    expect(taken({ 0: ['00', '07'] }).free(0, MOST_GROUPS)).toBe(8);
    expect(taken({ 0: ['00', '07', '08'] }).free(0, MOST_GROUPS)).toBe(9);
  });

  it('begin at the first gap', () => {
    expect(taken({ 0: [...names(0x08, 0x20), ...names(0x22, 0x30)] }).free(0, MOST_GROUPS)).toBe(0x21);
  });

  it('go on in the next group where one is full', () => {
    expect(taken({ 0: names(8, 255) }).free(0, MOST_GROUPS)).toBe(0x100);
    expect(taken({ 0: names(8, 255), 1: names(0, 255), 2: ['00'] }).free(0, MOST_GROUPS)).toBe(0x201);
  });

  it('leave as many to others as stand before us in the line, over the bounds of groups', () => {
    const ids = taken({ 0: ['08', '0A'], 1: ['00'] });
    expect([0, 1, 2, 245, 246, 500, 501].map((rank) => ids.free(rank, MOST_GROUPS))).toEqual([9, 11, 12, 255, 0x101, 0x1ff, 0x200]);
  });

  it('are not certain in a group that exists and was not looked at', () => {
    const ids = new TakenIds(new Set([0, 1]));
    ids.note(0, ['08']);
    expect([0, 1, 2].map((group) => ids.knows(group))).toEqual([true, false, true]);
    expect([ids.free(246, MOST_GROUPS), ids.free(247, MOST_GROUPS)]).toEqual([0xff, 0x100]);
  });

  it('are none where the last group that there may be is full', () => {
    expect(taken({ 0: names(8, 255) }).free(0, 1)).toBeUndefined();
    expect(taken({ 0: names(8, 254) }).free(1, 1)).toBeUndefined();
    expect(
      taken(Object.fromEntries(Array.from({ length: 256 }, (_, group) => [group, names(0, 255)]))).free(0, MOST_GROUPS),
    ).toBeUndefined();
  });

  it('are not taken by names that are no ids, and are by such in lower case', () => {
    expect(taken({ 0: ['8', '008', 'lock', '0G'] }).free(0, MOST_GROUPS)).toBe(8);
    expect(taken({ 0: [...names(8, 9), '0a', '0B'] }).free(0, MOST_GROUPS)).toBe(12);
  });
});
