import { describe, expect, it } from 'vitest';
import { inOrder } from './contest.js';
import { createFence } from './fence.js';

describe('the order of contenders', () => {
  it("is that of what follows the recipe's name, whatever comes before it", () => {
    const names = ['_c_b-lock-0000000002', '_c_z-lock-0000000000', '_c_a-lock-x-lock-0000000001'];
    expect(inOrder('/p', names, ['lock-'])).toEqual([names[1], names[2], names[0]]);
    expect(
      inOrder('/p', ['_c_b-__READ__0000000001', '_c_a-__WRIT__0000000000'], ['__READ__', '__WRIT__']),
    ).toEqual(['_c_a-__WRIT__0000000000', '_c_b-__READ__0000000001']);
  });

  it('is refused where a znode is not of the recipe', () => {
    expect(() => inOrder('/p', ['_c_a-lock-0000000000', 'ready'], ['lock-'])).toThrow(
      '/p has a child "ready", which is not of this recipe: expected names with "lock-"',
    );
  });
});

describe('a fence', () => {
  it('lets the newest holder through, and none before it', () => {
    const fence = createFence(4n);
    expect([fence.pass(5n), fence.pass(5n), fence.pass(4n), fence.pass(7n), fence.newest]).toEqual([
      true,
      true,
      false,
      true,
      7n,
    ]);
  });

  it('names a token that is none', () => {
    expect(() => createFence().pass(0n)).toThrow('token: expected a fencing token: a bigint above 0, got 0');
  });
});
