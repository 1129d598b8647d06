import { expect, it } from 'vitest';
import { shareAnswer } from './share-answer.js';

it('asks once for all callers, and again after a failure', async () => {
  let asked = 0;
  const ask = shareAnswer(async () => {
    asked += 1;
    if (asked === 1) throw new Error('away');
    return asked;
  });
  const first = [ask(), ask()];
  for (const each of first) await expect(each).rejects.toThrow('away');
  expect(await Promise.all([ask(), ask()])).toEqual([2, 2]);
  expect(await ask()).toBe(2);
});
